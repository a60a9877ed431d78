# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The values of secrets: where they come from, and what a container gets."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.parsing.vault import VaultLib, VaultSecret

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.secrets import SecretFiles
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Secret, User
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError
from ansible_collections.cluster.compute.plugins.plugin_utils._client.secret_values import (
    delivery,
    plain_secrets,
    read_secrets,
    secret_files,
)

STRANGE = 'it\'s "so" $HOME `id` \\ größe'


def test_values_come_from_the_variable_and_from_files(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"\0binary\xff")
    wanted, path = [Secret("a"), Secret("b")], str(tmp_path / "key")
    given = [{"name": "a", "value": "x"}, {"name": "other", "value": "y"}]
    found = {"a": b"x", "b": b"\0binary\xff"}
    assert read_secrets(wanted, [*given, {"name": "b", "file": path}], DataLoader()) == found
    assert read_secrets(wanted, given, DataLoader(), {"b": path}) == found
    assert secret_files(wanted, [*given, {"name": "b", "file": path}, {"name": "c", "file": path}]) == {"b": path}


def test_a_file_of_ansible_vault_is_decrypted(tmp_path: Path) -> None:
    vault = [("default", VaultSecret(b"password"))]
    loader = DataLoader()
    loader.set_vault_secrets(vault)
    (tmp_path / "key").write_bytes(VaultLib(vault).encrypt("hidden text"))
    assert read_secrets([Secret("a")], None, loader, {"a": str(tmp_path / "key")}) == {"a": b"hidden text"}
    with pytest.raises(InputError, match="Ansible cannot read or decrypt it"):
        read_secrets([Secret("a")], None, DataLoader(), {"a": str(tmp_path / "key")})


@pytest.mark.parametrize(
    "given",
    [None, [], [{"name": "b", "value": "x"}], [{"name": "a", "file": ""}], [{"name": "b", "file": "/f"}], "text"],
)
def test_a_missing_value_is_asked_for(given: Any) -> None:
    with pytest.raises(InputError, match="session_secrets: a: \\(hidden\\): must be given again"):
        read_secrets([Secret("a")], given, DataLoader())


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere.*No such file"):
        read_secrets([Secret("a")], [{"name": "a", "file": str(tmp_path / "nowhere")}], DataLoader())


def test_a_file_is_bounded(tmp_path: Path) -> None:
    os.truncate(os.open(tmp_path / "large", os.O_CREAT | os.O_WRONLY), 1 << 30)
    with pytest.raises(InputError, match="must have 1 to 65536 bytes"):
        read_secrets([Secret("a")], [{"name": "a", "file": str(tmp_path / "large")}], DataLoader())


def test_a_session_without_secrets_reads_none() -> None:
    assert read_secrets([], [{"name": "a", "value": "x"}], None) == {}


def test_an_encrypted_value_of_earlier_releases_of_ansible_is_a_string() -> None:
    class AnsibleVaultEncryptedUnicode:
        def __str__(self) -> str:
            return "text"

    given = [{"name": "a", "value": AnsibleVaultEncryptedUnicode()}, "odd"]
    assert plain_secrets(given) == [{"name": "a", "value": "text"}, "odd"]
    assert plain_secrets("odd") == "odd"


def test_a_container_gets_files_for_the_user_and_the_variables_for_pid_1(tmp_path: Path) -> None:
    wanted = [Secret("token", environment="TOKEN"), Secret("key")]
    made = delivery(wanted, {"token": (STRANGE + "\n").encode(), "key": b"\0"})
    assert SecretFiles.from_parameter(made.to_parameter()) == made
    assert STRANGE not in repr(made)
    assert made.set_env.startswith('"TOKEN=it')
    with tarfile.open(fileobj=io.BytesIO(made.archive(User(uid=7, gid=8)))) as tar:
        entries = {entry.name: (entry.mode, entry.uid, entry.gid) for entry in tar}
        # Debian 12's Python 3.11.2 knows no filters.
        (tmp_path / ".environment").write_bytes(member.read() if (member := tar.extractfile(".environment")) else b"")
    assert list(entries)[-1] == ".complete"
    assert entries["token"] == entries["key"] == (0o400, 7, 8)
    assert {entries[name] for name in (".environment", ".set_env", ".complete")} == {(0o600, 0, 0)}
    script = '. %s/.environment; printf %%s "$TOKEN"' % tmp_path
    assert subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout == STRANGE
