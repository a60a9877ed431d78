# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The built archive in a fresh environment: installed as a user does, and used from a folder that is no checkout.

The virtual environment has the requirements of the archive alone, there is no ansible.cfg, and the inventory is the
archive's own, for the local machine.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from controller import SMALL, Controller, Done, Session, run

INSTALLED = ".ansible/collections/ansible_collections/cluster/compute"
PATTERN = "extensions/patterns/cluster_sessions/playbooks"


@dataclass(frozen=True)
class Installation:
    """A virtual environment, and a home folder with the installed collection."""

    controller: Controller
    programs: Path
    elsewhere: Path

    @property
    def collection(self) -> Path:
        return self.controller.home / INSTALLED

    def run(self, program: str, *arguments: str) -> Done:
        variables = self.controller.environment
        del variables["ANSIBLE_CONFIG"]
        variables["PATH"] = f"{self.programs}:{variables['PATH']}"
        return run([str(self.programs / program), *arguments], cwd=self.elsewhere, env=variables, timeout=600)

    def play(self, playbook: str, *arguments: str, inventory: str = "") -> Done:
        place = inventory or str(self.collection / "playbooks/inventory/local.yml")
        return self.run("ansible-playbook", "-i", place, playbook, "-e", f"@{self.controller.common}", *arguments)

    def launch(self, playbook: str, name: str, *arguments: str) -> Done:
        amounts = {"session_name": name, "session_cluster_size": 2, **SMALL}
        return self.play(playbook, "-e", json.dumps(amounts), *arguments)


@pytest.fixture(scope="module")
def installed(engine_host: str, tmp_path_factory: pytest.TempPathFactory, checkout: Path) -> Iterator[Installation]:
    """The archive's requirements and the archive, installed by the commands of the README."""
    folder = tmp_path_factory.mktemp("installed")
    build = [str(Path(sys.executable).with_name("ansible-galaxy")), "collection", "build", "--output-path", str(folder)]
    assert run(build, cwd=checkout).code == 0
    controller = Controller(folder / "controller", engine_host)
    made = Installation(controller, folder / "venv/bin", folder / "elsewhere")
    made.elsewhere.mkdir()
    try:
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
        archive = next(folder.glob("*.tar.gz"))
        subprocess.run(["tar", "xzf", str(archive), "-C", str(folder), "requirements.txt"], check=True)
        made.run("pip", "install", "--quiet", "-r", str(folder / "requirements.txt")).check()
        made.run("ansible-galaxy", "collection", "install", str(archive)).check()
        yield made
    finally:
        controller.clean()


def test_check_mode_shows_the_plan_and_changes_nothing(installed: Installation) -> None:
    shown = installed.launch("cluster.compute.cluster_session", "planned", "--check", "--diff").check()
    assert "Session planned: would be launched" in shown.text
    assert installed.controller.engine() == {}
    assert "[WARNING]" not in shown.text


def test_a_session_is_launched_used_and_ended(installed: Installation) -> None:
    launched = installed.launch("cluster.compute.cluster_session", "first").check()
    assert "Session first: RUNNING (cluster session, single-node)" in launched.text
    assert Session(installed.controller, "first").say("main1", "ssh sub1 hostname") == "sub1"
    assert installed.launch("cluster.compute.cluster_session", "first").check().changed == 0
    assert re.search(r"first +\S+ +RUNNING", installed.play("cluster.compute.sessions").check().text)
    installed.play("cluster.compute.terminate", "-e", "session_name=first").check()
    assert installed.controller.engine() == {}


def test_a_play_of_a_few_lines_launches_and_ends_a_session(installed: Installation) -> None:
    play = [
        "- hosts: agents",
        "  tasks:",
        "    - cluster.compute.session:",
        "        state: {{ state }}",
        "      vars: {session_name: lines, session_cluster_size: 2}",
    ]
    playbook, amounts = installed.elsewhere / "play.yml", json.dumps(SMALL)
    for state, containers in (("present", 2), ("absent", 0)):
        playbook.write_text("\n".join(play).replace("{{ state }}", state))
        assert installed.play(str(playbook), "-e", amounts).check().changed == 1
        assert len(Session(installed.controller, "lines").containers()) == containers
    assert installed.controller.engine() == {}


def test_the_pattern_launches_lists_and_ends_a_session_of_the_user_who_starts_the_job(installed: Installation) -> None:
    pattern = installed.collection / PATTERN
    common = json.loads(installed.controller.common.read_text())
    own = {name: value for name, value in common.items() if name != "session_owner"}
    installed.controller.common.write_text(json.dumps({**own, "awx_user_name": installed.controller.owner + "."}))
    try:
        installed.launch(str(pattern / "launch.yml"), "my-job").check()
        listed = installed.play(str(pattern / "list.yml"), "-e", "sessions_format=json").check()
        assert '"name": "my-job"' in listed.text.replace("\\", "")
        assert len(Session(installed.controller, "my-job").containers()) == 2
        installed.play(str(pattern / "end.yml"), "-e", "session_name=my-job").check()
    finally:
        installed.controller.common.write_text(json.dumps(common))
    assert installed.controller.engine() == {}


def test_an_inventory_without_agents_is_refused_with_one_that_exists(installed: Installation) -> None:
    """All playbooks use one action for this; test_command.py tries the others, from the checkout."""
    refused = installed.play("cluster.compute.terminate", "-e", "session_name=none", inventory="localhost,")
    assert refused.code != 0
    found = re.search(r"For this machine alone: -i (\S+)\.[\"\s]", refused.text)
    assert found, refused.text
    assert Path(found.group(1)).is_file()
