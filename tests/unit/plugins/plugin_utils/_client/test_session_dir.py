# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
import os
import re
import stat
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError, InputError
from ansible_collections.cluster.compute.plugins.plugin_utils._client.session_dir import Artifacts


@pytest.fixture
def artifacts(tmp_path: Path) -> Artifacts:
    return Artifacts(str(tmp_path / "base"), "train")


def mode(path: str) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


def test_files_are_private_and_written_once(artifacts: Artifacts) -> None:
    assert [artifacts.write("a", b"1"), artifacts.write("a", b"1"), artifacts.write("a", b"2")] == [True, False, True]
    assert artifacts.read("a") == b"2"
    assert [mode(artifacts.folder), mode(artifacts.folder + "/a")] == [0o700, 0o600]
    assert os.listdir(artifacts.folder) == ["a"]


def test_a_mode_that_was_changed_is_mended(artifacts: Artifacts) -> None:
    artifacts.write("a", b"1")
    os.chmod(artifacts.folder, 0o755)
    os.chmod(artifacts.folder + "/a", 0o644)

    assert artifacts.write("a", b"1")
    assert [mode(artifacts.folder), mode(artifacts.folder + "/a")] == [0o700, 0o600]


def test_many_at_once_agree_on_one_secret(artifacts: Artifacts) -> None:
    together = threading.Barrier(16)

    def derive(_number: int) -> str:
        together.wait()
        identity = artifacts.identity("session", create=True)
        return identity.authority if identity else ""

    with ThreadPoolExecutor(16) as pool:
        assert len(set(pool.map(derive, range(16)))) == 1
    assert os.listdir(artifacts.folder) == ["identity"]
    assert mode(artifacts.folder + "/identity") == 0o600


def test_nothing_is_made_unless_asked_for(artifacts: Artifacts) -> None:
    assert artifacts.identity("session", create=False) is None
    assert not os.path.exists(artifacts.base)


def test_a_damaged_secret_is_told(artifacts: Artifacts) -> None:
    artifacts.write("identity", b"rubbish\n")

    with pytest.raises(ComputeError, match="identity is damaged"):
        artifacts.identity("session", create=True)


def test_no_symlink_is_followed(artifacts: Artifacts, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    artifacts.write("a", b"1")
    os.unlink(artifacts.folder + "/a")
    os.symlink(precious, artifacts.folder + "/a")

    with pytest.raises(ComputeError, match="/train/a cannot be used"):
        artifacts.write("a", b"2")
    assert precious.read_text() == "mine"


def test_a_folder_that_is_a_symlink_is_refused(artifacts: Artifacts, tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "elsewhere").mkdir()
    os.symlink(tmp_path / "elsewhere", artifacts.folder)

    with pytest.raises(ComputeError, match="/train cannot be used"):
        artifacts.write("a", b"1")
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("name", ["", "..", ".hidden", "a/b"])
def test_only_plain_names(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        Artifacts(str(tmp_path), name)


def test_remove(artifacts: Artifacts) -> None:
    artifacts.write_json("session.json", {"b": 1, "a": 2})

    assert artifacts.read("session.json") == b'{\n  "a": 2,\n  "b": 1\n}\n'
    assert [artifacts.remove("one"), artifacts.remove("one")] == [True, False]
    assert not os.path.exists(artifacts.folder)
    assert os.path.isdir(artifacts.base)


def test_the_folder_is_one_session_s(artifacts: Artifacts) -> None:
    assert artifacts.session == ""
    artifacts.identity("one", create=True)
    artifacts.write("session.json", b"{}")

    assert artifacts.session == "one"
    with pytest.raises(
        ComputeError, match="/train belongs to session one; choose another name, or set session_artifacts"
    ):
        artifacts.identity("two", create=True)
    assert not artifacts.remove("two")
    assert sorted(os.listdir(artifacts.folder)) == ["identity", "session.json"]
    assert artifacts.remove("one")
    assert artifacts.session == ""


def test_a_session_with_a_damaged_secret_can_be_terminated(artifacts: Artifacts) -> None:
    artifacts.write("identity", b"rubbish\n")

    assert artifacts.remove("one")
    assert not os.path.exists(artifacts.folder)


def test_a_folder_with_other_files_is_left_alone(artifacts: Artifacts) -> None:
    os.makedirs(artifacts.folder, mode=0o755)
    Path(artifacts.folder, "main.py").write_text("work")

    with pytest.raises(
        InputError, match=r"^session_name: 'train': the directory .*/train has that name and contains main.py"
    ):
        _ = artifacts.session
    assert mode(artifacts.folder) == 0o755


def test_other_files_in_the_folder_stay(artifacts: Artifacts) -> None:
    artifacts.identity("one", create=True)
    Path(artifacts.folder, "notes").write_text("mine")
    Path(artifacts.folder, ".identity.0123456789abcdef").write_text("left by a writer that was killed")

    assert artifacts.remove("one")
    assert os.listdir(artifacts.folder) == ["notes"]


def failing(number: int) -> Callable[..., None]:
    def fail(*_arguments: object, **_options: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP])
def test_a_file_system_without_links_keeps_the_first_secret(
    number: int, artifacts: Artifacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", failing(number))
    test_many_at_once_agree_on_one_secret(artifacts)


@pytest.mark.parametrize("call", ["fsync", "rename", "link"])
def test_a_full_file_system_is_one_sentence_and_leaves_no_part(
    call: str, artifacts: Artifacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, call, failing(errno.ENOSPC))

    def write() -> None:
        artifacts.identity("session", create=True)
        artifacts.write("session.json", b"{}")

    with pytest.raises(ComputeError) as caught:
        write()
    # Ansible puts the host of the play before it.
    path = "On the controller, " + re.escape(artifacts.folder)
    assert re.fullmatch(
        path + "/[a-z.]+ cannot be used: No space left on device; correct that, .*directory\\.", caught.value.message
    )
    assert [name for name in os.listdir(artifacts.folder) if name.startswith(".identity.")] == []
