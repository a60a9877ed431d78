# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A session that runs with another identity, and a file of a container that anyone in it may have written."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from samples import plan, request

from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh import installer as installers
from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh.container_files import ImageContents
from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh.installer import FileInstaller, Target
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ConflictError

LIVE = {"x": {"Id": "1", "State": "running"}}


def installer(content: bytes | None) -> FileInstaller:
    engine: Any = SimpleNamespace(read_file=lambda _container, _path: content)
    bundle: Any = SimpleNamespace(authority="ssh-ed25519 AAAA comment")
    return FileInstaller(engine, plan(request()), "a", bundle)


@pytest.mark.parametrize("content", [b"\xff\xfe\x80", b"", b"ssh-ed25519 BBBB", "größe".encode("latin-1")])
def test_another_authority_is_one_message_whatever_its_bytes_are(content: bytes) -> None:
    with pytest.raises(ConflictError, match="with an identity that this controller does not have"):
        installer(content)._refuse_stranger(LIVE)


@pytest.mark.parametrize("content", [None, b"ssh-ed25519 AAAA"])
def test_its_own_authority_is_no_stranger(content: bytes | None) -> None:
    installer(content)._refuse_stranger(LIVE)


def test_each_image_is_read_once_through_the_last_of_its_containers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each container keeps its own devices."""
    node, read, groups = tmp_path / "renderD128", [], []
    node.touch()
    os.chown(node, -1, 4321)
    contents = ImageContents(SimpleNamespace(place=lambda entries: entries))  # type: ignore[arg-type]
    monkeypatch.setattr(
        installers, "read_contents", lambda _engine, target, _session: read.append(target.engine_id) or contents
    )
    monkeypatch.setattr(
        installers, "file_entries", lambda *parts: groups.append((parts[3], parts[4].device_groups)) or []
    )
    container, gpu = plan(request()).main, ({"PathOnHost": str(node)},)
    targets = [
        Target(container, "1", "a", {"NUMBER": "1"}, gpu),
        Target(container, "2", "b", {"NUMBER": "2"}),
        Target(container, "3", "a", {"NUMBER": "3"}),
        Target(container, "4", "b", {"NUMBER": "4"}, gpu),
    ]
    installer(None).installation(targets, [])
    assert sorted(read) == ["3", "4"]
    assert [(one["NUMBER"], found) for one, found in groups] == [("1", (4321,)), ("2", ()), ("3", ()), ("4", (4321,))]


@pytest.mark.parametrize(
    ("found", "runs"),
    [
        ({"mode": 0o755}, True),
        ({"mode": 0o700}, False),
        (None, False),
        ({"mode": 1 << 27 | 0o777, "linkTarget": "/usr/bin/dash"}, True),
        ({"mode": 1 << 27 | 0o777, "linkTarget": "/lost/dash"}, False),
    ],
)
def test_a_shell_that_the_user_cannot_run_is_none(found: dict[str, Any] | None, runs: bool) -> None:
    folder = {"mode": 1 << 31 | 0o755}
    there: dict[str, Any] = {"/bin": folder, "/usr": folder, "/usr/bin": folder}
    there.update({"/bin/sh": found, "/usr/bin/dash": {"mode": 0o755}})
    assert installers.is_program(installers.Tree(there.get), "/bin/sh") is runs
