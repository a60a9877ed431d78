# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The devcontainer.json that a launch names: where it is, what it is, and what the session ignores of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from conducted import conducted

from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError
from ansible_collections.cluster.compute.plugins.plugin_utils._session.devcontainer import of_devcontainer

CONTENT = (
    '\ufeff{"image": "debian:13", "containerEnv": {"P": "${localWorkspaceFolder}"}, "features": {}, "\\u001b[31m": 1}'
)


@pytest.mark.parametrize(
    "place", [".devcontainer.json", ".devcontainer/devcontainer.json", ".devcontainer/a/devcontainer.json"]
)
def test_the_project_is_the_directory_above(tmp_path: Path, place: str) -> None:
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(CONTENT)
    play = conducted({}, session_devcontainer=str(path))
    assert of_devcontainer(play) == {"session_image": "debian:13", "session_environment": {"P": str(tmp_path)}}
    assert play.warnings == [f"{path}: a session does not support these keys, and ignores them: features, ."]


def test_without_a_file_nothing_is_read() -> None:
    assert of_devcontainer(conducted({})) == {}


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("absent", {}, "must be a file that the controller can read: No such file"),
        ("pipe", {}, "must be a regular file"),
        (".", {}, "must be a (regular file|file that the controller can read)"),
        ("binary", {}, "must be a file that the controller can read: it is not UTF-8"),
        ("large", {}, "must have at most 262144 characters"),
        ("pipe", {"session_like": "train"}, "must not be given with session_like"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, name: str, given: dict[str, Any], message: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "binary").write_bytes(b"{\xff}")
    (tmp_path / "large").write_text('{"image": "debian"}' + " " * (1 << 20))
    with pytest.raises(InputError, match=message):
        of_devcontainer(conducted({}, session_devcontainer=str(tmp_path / name), **given))
