# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command ``cluster-compute`` from a session file to the end of the session, as a user in a working directory types it."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_schema import checked
from controller import ROOT, SMALL, Controller, Done
from warm_playbook import run_warm, stand_in

COMMAND = str(ROOT / "extensions/command/cluster_compute")
PATIENCE = 180
WEB = {
    "name": "web",
    "port": 8000,
    "command": "echo begun; echo the page >index.html; exec python3 -m http.server $APP_PORT",
    "ready": "/",
}


@dataclass(frozen=True)
class User:
    """A user in a directory with an inventory and session files, and with a stand-in for ansible-playbook that imports nothing."""

    controller: Controller
    folder: Path
    python: Path

    def types(self, *words: str, code: int = 0) -> str:
        """The standard output of a command."""
        own = ["-e", f"@{self.controller.common}", "-e", f"session_artifacts={self.controller.artifacts}"]
        done = self.runs(*own, *words, folder=self.folder)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def runs(self, *words: str, folder: Path) -> subprocess.CompletedProcess[str]:
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
        command = [str(self.python), COMMAND, *words]
        unset = {name: text for name, text in self.environment.items() if name != "ANSIBLE_CONFIG"}
        return subprocess.run(command, cwd=folder, env=unset, timeout=PATIENCE, check=False, **streams)

    def plays(self, *arguments: str, folder: Path) -> Done:
        """A run of ansible-playbook."""
        return Done(*run_warm(self.environment, arguments, folder, PATIENCE))

    @property
    def environment(self) -> dict[str, str]:
        return without_settings(self.controller)

    def reads(self, verb: str, *words: str, code: int = 0, definition: str = "") -> Any:
        """The document of a command, which fits the schema."""
        return checked(definition or verb, self.types("--json", verb, *words, code=code))

    def write(self, file: str, **variables: Any) -> None:
        (self.folder / file).write_text(yaml.safe_dump({**SMALL, **variables}))


def without_settings(controller: Controller) -> dict[str, str]:
    """An environment with no setting of Ansible but the file of the checkout, which the command finds itself."""
    kept = {name: text for name, text in controller.environment.items() if not name.startswith("ANSIBLE_")}
    return {**kept, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}


@pytest.fixture(scope="module")
def user(engine_host: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    controller = Controller(tmp_path_factory.mktemp("controller") / "own", engine_host)
    folder = tmp_path_factory.mktemp("work")
    (folder / "hosts.yml").write_text((ROOT / "inventory/local.yml").read_text())
    programs = tmp_path_factory.mktemp("programs")
    # The command starts the program of Ansible that is beside its Python.
    (programs / "python").symlink_to(sys.executable)
    try:
        with stand_in(programs, without_settings(controller)):
            yield User(controller, folder, programs / "python")
    finally:
        controller.clean()


def test_a_forgotten_inventory_uses_no_machine(user: User, tmp_path: Path) -> None:
    """Neither the playbooks nor the command touch the machine that they run on."""
    before = user.controller.everything()
    for playbook in ("cluster_session", "provision_agents", "terminate", "sessions", "session_logs", "schedule"):
        command = [str(ROOT / f"playbooks/{playbook}.yml"), "-e", f"@{user.controller.common}"]
        done = user.plays(*command, "-e", "session_name=work", folder=tmp_path)
        assert done.code == 2
        assert "name one with -i FILE or ANSIBLE_INVENTORY. For this machine alone: -i " in done.text
    again = user.plays(str(ROOT / "playbooks/terminate.yml"), folder=user.folder)
    assert "with -i FILE or ANSIBLE_INVENTORY, as in -i hosts.yml. " in again.text
    refused = user.runs("down", "work", folder=tmp_path)
    assert (refused.returncode, "no inventory" in refused.stderr) == (2, True)
    assert user.controller.everything() == before


def test_a_session_from_its_file_to_its_end(user: User) -> None:
    user.write("train.yml", session_name="train", session_cluster_size=2, session_apps=[WEB])
    assert "would be launched" in user.types("up", "train.yml", "--check")
    assert user.reads("ls")["sessions"] == []
    [launched] = user.reads("up", "train.yml")["results"]
    assert (launched["session"]["session"]["state"], launched["changed"]) == ("RUNNING", True)
    _look(user)
    _work(user)
    _open(user)
    _queue(user)
    assert "Session train" in user.types("down", "train.yml")
    assert user.reads("ls")["sessions"] == []
    assert user.controller.engine() == {}


def _look(user: User) -> None:
    [listed] = user.reads("ls")["sessions"]
    assert (listed["name"], listed["state"], len(listed["containers"])) == ("train", "RUNNING", 2)
    assert user.reads("why", "train")["state"] == "RUNNING"
    assert user.types("why") == "Session train: RUNNING; every container is verified\n"
    assert user.reads("queue")["sessions"] == []
    logs = {log["hostname"]: log["text"] for log in user.reads("logs")["logs"]}
    assert "begun" in logs["main1"]
    assert "web: begun" in user.types("logs", "main1")
    used = user.reads("usage")["usage"]
    assert user.reads("usage", "--month", used[-1]["month"])["usage"][-1]["name"] == used[-1]["name"]
    assert user.reads("usage", "--month", "1999-12")["usage"] == []
    assert user.reads("usage", "--month", "1999", code=1, definition="failure")["failed"] is True
    assert user.reads("env")["environments"]
    assert user.reads("doctor")["fit"] is True


def _work(user: User) -> None:
    answer = user.reads("exec", "train", "--", "echo $RANK {{ x }}")
    assert [one["lines"] for one in answer["containers"]] == [["0 {{ x }}"], ["1 {{ x }}"]]
    assert "sub1: sub1" in user.types("exec", "--on", "sub1", "--", "hostname")
    failed = user.reads("exec", "train", "--", "exit 7", code=1)
    assert (failed["failed"], failed["exit_code"]) == (True, 7)
    (user.folder / "a b").write_text("one\n")
    assert len(user.reads("cp", "a b", "train.yml", "train:inbox", "--on", "sub1")["results"]) == 2
    user.types("cp", "train:inbox/a b", "back", "--on", "sub1")
    assert (user.folder / "back/sub1/a b").read_text() == "one\n"
    assert user.types("ssh", "train", "sub1", "--", "cat", "inbox/a b") == "one\n"
    user.types("ssh", "train", "--", "exit 5", code=5)
    assert user.reads("ssh", "--", "echo x; exit 6", code=6) == {"exit_code": 6, "stdout": "x\n", "stderr": ""}


def _open(user: User) -> None:
    [app] = user.reads("open", "train")["apps"]
    assert user.types("open", "train", "web", "--no-wait") == f"web {app['url']}\n"
    with urllib.request.urlopen(app["url"], timeout=30) as page:
        assert page.read() == b"the page\n"


def _queue(user: User) -> None:
    """A session that would fit alone waits beside the other."""
    user.write("late.yml", session_name="late", session_cpus=63.9)
    [waits] = user.reads("up", "late.yml", code=3)["results"]
    assert waits["sessions"][0]["state"] == "PENDING"
    [late] = user.reads("up", "late.yml", "--wait", "1", code=3)["results"]
    assert "late is still PENDING after 1 s" in late["msg"]
    assert "late of " in user.types("queue")
    assert user.reads("queue")["sessions"][0]["name"] == "late"
    assert user.types("why", "late").startswith("Session late: PENDING; turn 1 of the queue; ")
    [ended] = user.reads("down", "late")["results"]
    assert ended["sessions"][0]["state"] == "CANCELLED"
