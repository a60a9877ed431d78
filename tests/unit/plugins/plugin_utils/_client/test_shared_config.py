# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file that the user's ssh includes."""

from __future__ import annotations

import fcntl
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from samples import plan, request

from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh.config_files import controller_config
from ansible_collections.cluster.compute.plugins.plugin_utils._client import shared_config
from ansible_collections.cluster.compute.plugins.plugin_utils._client.session_dir import Artifacts
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.files import lock_folder


def add(base: Path, name: str, running: bool = True) -> None:
    artifacts = Artifacts(str(base), name)
    made = plan(request(name=name, cluster_size=3), "aaa")
    artifacts.write("ssh_config", controller_config(made, "192.0.2.7", artifacts.folder).encode())
    if running:
        artifacts.write("session.json", b"{}")


def resolved(base: Path, host: str) -> dict[str, str]:
    """What ssh makes of a host."""
    command = ["ssh", "-G", "-F", str(base / "ssh_config"), host]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return dict(line.split(" ", 1) for line in lines if " " in line)


def names(base: Path) -> set[str]:
    lines = (base / "ssh_config").read_text().splitlines()
    return {name for line in lines if line.startswith("Host ") for name in line.split()[1:]}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "base").mkdir()
    return tmp_path / "base"


def test_two_sessions_have_names_of_their_own(base: Path) -> None:
    add(base, "train")
    add(base, "serve")
    assert shared_config.update(str(base)) == ""
    assert names(base) == {f"{session}.{host}" for session in ("train", "serve") for host in ("main1", "sub1", "sub2")}
    main, sub = resolved(base, "train.main1"), resolved(base, "train.sub2")
    assert (main["hostname"], main["hostkeyalias"], main.get("proxyjump")) == ("192.0.2.7", "main1", None)
    assert (sub["hostname"], sub["hostkeyalias"], sub["proxyjump"]) == ("sub2", "sub2", "train.main1")
    assert resolved(base, "serve.sub2")["identityfile"] == str(base / "serve" / "id_container")
    assert sub["stricthostkeychecking"] == "true"
    assert (base / "ssh_config").stat().st_mode & 0o777 == 0o600


def test_a_session_that_is_being_launched_or_has_ended_is_not_in_it(base: Path) -> None:
    add(base, "begins", running=False)
    add(base, "train")
    (base / "notes").mkdir()
    (base / "a file").write_text("mine")
    shared_config.update(str(base))
    assert names(base) == {"train.main1", "train.sub1", "train.sub2"}
    Artifacts(str(base), "train").remove("")
    assert shared_config.update(str(base)) == ""
    assert not (base / "ssh_config").exists(), "without a session, there is nothing to include"


def test_a_folder_with_a_space_needs_no_other_file(tmp_path: Path) -> None:
    base = tmp_path / "my base"
    add(base, "train")
    shared_config.update(str(base))
    sub = resolved(base, "train.sub1")
    assert sub["proxycommand"] == f"ssh -F '{base}/train/ssh_config' -W [%h]:%p main1"
    assert sub["identityfile"] == f"{base}/train/id_container"


def test_many_at_once_lose_no_session(base: Path) -> None:
    sessions = [f"session-{number}" for number in range(24)]

    def launch(name: str) -> str:
        add(base, name)
        return shared_config.update(str(base))

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(launch, sessions)) == {""}
    assert {name.rpartition(".")[0] for name in names(base)} == set(sessions)
    assert [name for name in os.listdir(base) if name.startswith(".")] == []


def test_what_a_killed_writer_has_left_goes(base: Path) -> None:
    (base / ".ssh_config.0123").write_text("half")
    add(base, "train")
    shared_config.update(str(base))
    assert [name for name in os.listdir(base) if name.startswith(".")] == []


def test_a_file_of_the_user_and_a_link_are_not_touched(base: Path, tmp_path: Path) -> None:
    (base / "ssh_config").write_text("Host mine\n")
    add(base, "train")
    assert "is not written: it is a file of yours. " in shared_config.update(str(base))
    assert (base / "ssh_config").read_text() == "Host mine\n"
    (base / "ssh_config").unlink()
    (tmp_path / "elsewhere").write_text(shared_config.MARK)
    (base / "ssh_config").symlink_to(tmp_path / "elsewhere")
    assert "is not written: " in shared_config.update(str(base))
    assert (tmp_path / "elsewhere").read_text() == shared_config.MARK


def test_a_folder_that_does_not_exist_is_not_made(tmp_path: Path) -> None:
    assert shared_config.update(str(tmp_path / "none")) == ""
    assert not (tmp_path / "none").exists()


def test_a_stopped_controller_does_not_stop_the_others(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(base, "train")
    monkeypatch.setattr(shared_config, "lock_folder", partial(lock_folder, seconds=0.2))
    handle = os.open(base, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        warning = shared_config.update(str(base))
    finally:
        os.close(handle)
    assert "another process has held its lock for 0.2 s" in warning
    assert shared_config.update(str(base)) == ""
