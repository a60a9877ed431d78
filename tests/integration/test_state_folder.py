# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent role creates and removes the folder of the session store, and leaves other files in it alone."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path

import pytest
from controller import PLAYBOOK, ROOT, Done, run_playbook

from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json

LOGS = "3614fdf3-0e04-4a4b-9d5c-1f7c0a8e6b11"


def play(tmp_path: Path, tasks: str, folder: Path, *arguments: str) -> Done:
    role = {"name": "cluster.compute.agent", "tasks_from": tasks}
    task = {"ansible.builtin.include_role": role, "vars": {"agent_state_dir": str(folder)}}
    return _run(tmp_path, {"tasks": [task]}, *arguments)


def _run(tmp_path: Path, content: Json, *arguments: str) -> Done:
    book = tmp_path / "play.yml"
    book.write_text(json.dumps([{"hosts": "agents", "gather_facts": False, **content}]))
    variables = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_STDOUT_CALLBACK": "default"}
    return run_playbook([PLAYBOOK, "-i", "inventory/local.yml", str(book), *arguments], variables).check()


def filled(folder: Path, *names: str) -> Path:
    (folder / LOGS).mkdir(parents=True)
    for name in (f"{LOGS}/main1.log", "sessions.db", "sessions.db-journal", *names):
        (folder / name).write_text("x")
    return folder


@pytest.mark.parametrize("mode", [None, 0o700, 0o1777])
def test_the_folder_is_shared_with_the_group_of_the_engine_and_one_with_other_rights_keeps_them(
    engine_host: str, tmp_path: Path, mode: int | None
) -> None:
    folder = tmp_path / "state"
    if mode:
        folder.mkdir()
        folder.chmod(mode)
    gid = os.stat(engine_host.removeprefix("unix://")).st_gid if engine_host.startswith("unix://") else 0
    may_share = bool(gid) and (os.geteuid() == 0 or gid in os.getgroups())
    play(tmp_path, "store.yml", folder)
    found = folder.stat()
    if mode == 0o1777 or not may_share:
        assert stat.S_IMODE(found.st_mode) == (mode or 0o700)
    else:
        assert (stat.S_IMODE(found.st_mode), found.st_gid) == (0o2770, gid)
        assert stat.S_IMODE((folder / "sessions.db").stat().st_mode) == 0o660
    assert play(tmp_path, "store.yml", folder).changed == 0


def test_a_tag_provides_the_store_alone(engine_host: str, tmp_path: Path) -> None:
    role = {"role": "cluster.compute.agent", "vars": {"agent_state_dir": str(tmp_path / "state")}}
    done = _run(tmp_path, {"roles": [role]}, "--tags", "store")
    assert (tmp_path / "state").is_dir()
    named = re.findall(r"^TASK \[cluster.compute.agent : (.*?)\]", done.text, re.MULTILINE)
    assert "Share the session store with the users of the engine" in named
    assert not {"Add users to the group docker", "Install the SSH runtime", "Plan the reference image"} & {*named}


def test_all_of_the_store_is_removed(tmp_path: Path) -> None:
    folder = filled(tmp_path / "state")
    assert play(tmp_path, "absent_store.yml", folder, "--check").changed > 0
    assert (folder / LOGS / "main1.log").exists()
    play(tmp_path, "absent_store.yml", folder)
    assert not folder.exists()
    assert play(tmp_path, "absent_store.yml", folder).changed == 0


def test_what_is_not_the_stores_is_kept(tmp_path: Path) -> None:
    folder = filled(tmp_path / "srv", "precious", ".hidden")
    (folder / "data").mkdir()
    play(tmp_path, "absent_store.yml", folder)
    assert sorted(path.name for path in folder.iterdir()) == [".hidden", "data", "precious"]
