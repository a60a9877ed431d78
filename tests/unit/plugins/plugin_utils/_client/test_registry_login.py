# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's own login, as `docker login` leaves it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError
from ansible_collections.cluster.compute.plugins.plugin_utils._client.registry_login import login_for

ALICE = {"username": "alice", "password": "se:cret"}
BASIC = {"auth": base64.b64encode(b"alice:se:cret").decode()}
HELPER = """#!/bin/sh
read -r registry
case "$registry" in
    own.example) echo '{"Username": "alice", "Secret": "se:cret"}' ;;
    token.example) echo '{"Username": "<token>", "Secret": "t0ken"}' ;;
    *) echo "credentials not found in native keychain"; exit 1 ;;
esac
"""


def written(folder: Path, **config: Any) -> str:
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


@pytest.mark.parametrize(
    ("reference", "auths", "found"),
    [
        ("own.example/a:1", {"own.example": BASIC}, ALICE),
        ("own.example/a:1", {"https://own.example": BASIC}, ALICE),
        ("a:1", {"https://index.docker.io/v1/": BASIC}, ALICE),
        ("own.example/a:1", {"own.example": {"identitytoken": "t0ken"}}, {"identity_token": "t0ken"}),
        ("other.example/a:1", {"own.example": BASIC}, {}),
        ("own.example/a:1", {"own.example": {}}, {}),
        ("own.example/a:1", {"own.example": {"auth": "%%%"}}, {}),
    ],
)
def test_file(tmp_path: Path, reference: str, auths: dict[str, Any], found: dict[str, str]) -> None:
    assert login_for(reference, written(tmp_path, auths=auths)) == found


def test_helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "docker-credential-test"
    program.write_text(HELPER)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    folder = written(tmp_path, credsStore="test", credHelpers={"gone.example": "not-there"})
    assert login_for("own.example/a", folder) == ALICE
    assert login_for("token.example/a", folder) == {"identity_token": "t0ken"}
    assert login_for("other.example/a", folder) == {}
    assert login_for("gone.example/a", folder) == {}


def test_nothing_and_nonsense(tmp_path: Path) -> None:
    assert login_for("a", str(tmp_path)) == {}
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ComputeError, match=r"config\.json on the controller cannot be read"):
        login_for("a", str(tmp_path))
