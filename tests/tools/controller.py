# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A controller for tests: runs the playbooks as a user does, with its own home, store, names, addresses and ports.

Everything that it creates on the engine carries its own owner, so that tests run beside a user's sessions and each other.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import textwrap
import uuid
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import docker
import yaml
from docker.errors import NotFound
from locks import claim
from own_objects import LABEL, OwnObjects
from playbook_runs import Interruption, kill_family
from warm_playbook import run_warm, warm_playbook

ROOT = Path(__file__).resolve().parents[2]
PLAYBOOK = str(Path(sys.executable).with_name("ansible-playbook"))
# Small, so that many fit beside other sessions; the capacity of the engine is overridden by a far larger one.
SMALL = {"session_cpus": "0.2", "session_memory": "64m", "session_shm": "16m"}
PATIENCE = 1800  # for what takes minutes at most: it only ends a run that would not end
ENDED = ("TERMINATED", "ERROR", "CANCELLED")
ROWS = "SELECT name, state, lease, reason FROM session WHERE owner = ? ORDER BY created, rowid"
# Each controller has 16 subnets in 10.208.0.0/12 and 36 ports of its own; engine_lab.py uses 10.213.0.0/16.
BLOCKS = [number for number in range(16 * 16) if number // 16 != 213 - 208]


@dataclass(frozen=True)
class Done:
    """The exit code and the output of a command."""

    code: int
    text: str

    def check(self) -> Done:
        assert self.code == 0, self.text
        return self

    @property
    def changed(self) -> int:
        """The number of tasks, over all hosts, that report a change."""
        return sum(int(count) for count in re.findall(r"^\S+ +: ok=\d+ +changed=(\d+)", self.text, re.MULTILINE))

    @property
    def message(self) -> str:
        """The error message of the last task that failed."""
        errors = re.findall(r"^\[ERROR\]: (.*)$", self.text, re.MULTILINE)
        if not errors:  # ansible-core before 2.19 shows the result alone
            results = re.findall(r"^fatal: \S+ FAILED! => *\n((?: {4}.*\n)+)", self.text, re.MULTILINE)
            assert results, self.text
            return str(yaml.safe_load(textwrap.dedent(results[-1]))["msg"])
        return re.sub(r"^Task failed: (Action failed: |Module failed: )?", "", str(errors[-1]))


@dataclass(frozen=True)
class Session:
    """A session as its user sees it: files and SSH."""

    controller: Controller
    name: str

    @property
    def folder(self) -> Path:
        return self.controller.artifacts / self.name

    @property
    def config(self) -> str:
        return str(self.folder / "ssh_config")

    @property
    def document(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads((self.folder / "session.json").read_text())
        return loaded

    @property
    def id(self) -> str:
        return str(self.document["session"]["id"])

    @property
    def addresses(self) -> list[str]:
        return [container["address"] for container in self.document["containers"]]

    def containers(self) -> dict[str, dict[str, Any]]:
        """What the engine reports about each container, by hostname, in rank order."""
        client = self.controller.client
        listed = client.containers(all=True, filters={"label": f"{LABEL}.name={self.name}"})
        own = [item for item in listed if item["Labels"][LABEL + ".owner"] == self.controller.owner]
        own.sort(key=lambda item: int(item["Labels"]["cluster.compute.container.rank"]))
        found = {}
        for item in own:
            with suppress(NotFound):  # it went after the list
                container = client.inspect_container(item["Id"])
                found[container["Config"]["Hostname"]] = container
        return found

    def ssh(self, host: str, command: str, *options: str, said: str | None = None) -> Done:
        return run(["ssh", "-F", self.config, *options, host, command], said=said)

    def say(self, host: str, command: str) -> str:
        """The output of a command in a container; the command must succeed."""
        return self.ssh(host, command).check().text.strip()


def run(command: Sequence[str], said: str | None = None, **options: Any) -> Done:
    """Run a command with stdout and stderr combined. On a timeout, everything that it has started is killed."""
    patience = options.pop("timeout", PATIENCE)
    source = subprocess.DEVNULL if said is None else subprocess.PIPE
    streams: dict[str, Any] = {"stdin": source, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, text=True, errors="replace", **streams, **options) as process:
        try:
            text, _none = process.communicate(said, timeout=patience)
        except BaseException:
            kill_family(process.pid)
            raise
    return Done(process.returncode, text)


def run_playbook(command: Sequence[str], environment: dict[str, str], cwd: Path = ROOT) -> Done:
    """Run a command line of ansible-playbook without the imports of the program."""
    return Done(*run_warm(environment, command[1:], cwd, PATIENCE))


@dataclass
class Controller:
    """The folder, the environment and the variables that the playbooks run with."""

    folder: Path
    host: str
    owner: str = field(default_factory=lambda: "test-" + uuid.uuid4().hex[:8])
    extra: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.client = docker.APIClient(base_url=self.host, version="auto", timeout=PATIENCE)
        self.home, self.artifacts, self.state = (self.folder / name for name in ("home", "artifacts", "state"))
        self.home.mkdir(parents=True)
        block, self.claim = claim("block", BLOCKS)
        self.ports = 20000 + 36 * block
        self.variables: dict[str, Any] = {
            "session_owner": self.owner,
            "session_artifacts": str(self.artifacts),
            "session_state_dir": str(self.state),
            "session_network_pool": [f"10.{208 + block // 16}.{16 * (block % 16)}.0/20"],
            "session_port_range": f"{self.ports}-{self.ports + 35}",
            "agent_cpus": 64,
            "agent_memory": "64g",
            **self.extra,
        }
        self.common = self.folder / "common.json"
        self.common.write_text(json.dumps(self.variables))

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "XDG_"))}
        own = {"HOME": str(self.home), "DOCKER_HOST": self.host, "PYTHONUNBUFFERED": "1", "COLUMNS": "400"}
        # The tests read the output of Ansible itself; tests of the callback set another one.
        ansible = {
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_INVENTORY": str(ROOT / "inventory/local.yml"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_STDOUT_CALLBACK": "default",
            # Steps on this machine leave one process for all controllers, as they do for the commands of one user.
            "ANSIBLE_REMOTE_TMP": str(ROOT / ".cache/remote"),
        }
        return {**kept, **own, **ansible}

    def command(self, playbook: str, *arguments: str, **variables: Any) -> list[str]:
        """The command line: ``-e name=value`` for plain words, and JSON for other values."""
        typed = []
        for name, value in variables.items():
            plain = isinstance(value, (str, int, float)) and re.fullmatch(r"[A-Za-z0-9./:-]+", str(value))
            typed += ["-e", f"{name}={value}" if plain else json.dumps({name: value})]
        return [PLAYBOOK, f"playbooks/{playbook}.yml", *arguments, "-e", f"@{self.common}", *typed]

    def play(self, playbook: str, *arguments: str, **variables: Any) -> Done:
        return run_playbook(self.command(playbook, *arguments, **variables), self.environment)

    def program(self, playbook: str, *arguments: str, **variables: Any) -> Done:
        """As ``play``, by the program that a user starts, which process lists show."""
        return run(self.command(playbook, *arguments, **variables), cwd=ROOT, env=self.environment)

    def launch(self, name: str, *arguments: str, **variables: Any) -> Done:
        return self.play("cluster_session", *arguments, **{"session_name": name, **SMALL, **variables})

    def launched(self, name: str, **variables: Any) -> Session:
        """Launch a session that must run afterwards."""
        self.launch(name, **variables).check()
        return Session(self, name)

    def terminate(self, name: str, *arguments: str) -> Done:
        return self.play("terminate", *arguments, session_name=name)

    def everywhere(self, session: str, script: str) -> Done:
        """Run a script in all containers of a session at once, as Ansible hosts of the inventory plugin."""
        inventory = self.folder / "own.sessions.yml"
        inventory.write_text(f"plugin: cluster.compute.sessions\nartifacts: {self.artifacts}\n")
        program = str(Path(PLAYBOOK).with_name("ansible"))
        command = [program, "-i", str(inventory), f"session_{session}", "-m", "ansible.builtin.shell", "-a", script]
        return run(command, cwd=ROOT, env=self.environment, timeout=600)

    def killed(self, playbook: str, phase: str, *, alone: bool = False, **variables: Any) -> None:
        """Run a playbook and kill it as soon as this phase is done: with all its child processes, or ``alone``."""
        interruption = Interruption(lambda line: line.startswith(phase), alone=alone)
        arguments = self.command(playbook, **variables)[1:]
        process = warm_playbook(self.environment)
        is_killed, text = process.interrupted(self.environment, arguments, ROOT, PATIENCE, interruption)
        assert is_killed, text

    def sessions(self, **variables: Any) -> list[dict[str, Any]]:
        """The sessions in the store, as a program reads them."""
        listed: list[dict[str, Any]] = self._listed(**variables)["sessions"]
        return listed

    def used_memory(self) -> int:
        """The memory that is booked on this machine, by all owners, in bytes."""
        return int(self._listed()["agents"][0]["used"]["memory"])

    def _listed(self, **variables: Any) -> dict[str, Any]:
        path = self.folder / "list.yml"
        path.write_text(_LIST)
        command = self.command("sessions", session_ended_too=True, **variables)
        command[1] = str(path)
        answer = run_playbook(command, self.environment).check().text
        found = re.search(r"^.*LISTED<<(.*)>>.*$", answer, re.MULTILINE)
        assert found, answer
        listed: dict[str, Any] = json.loads(bytes.fromhex(found.group(1)).decode())
        return listed

    def rows(self, owner: str = "") -> list[tuple[str, str, float, str]]:
        """Name, state, lease and reason of every session of an owner in the store, oldest first."""
        path = self.state / "sessions.db"
        if not path.exists():
            return []
        with closing(sqlite3.connect(f"file:{path}?mode=rw", uri=True, timeout=30)) as store:
            return list(store.execute(ROWS, (owner or self.owner,)))

    def engine(self, name: str = "") -> dict[str, str]:
        """Everything of this owner on the engine, or of a single session: containers with start times, networks, volumes."""
        return OwnObjects(self.client, self.owner).found(name)

    def kept(self) -> dict[str, str]:
        """The digest of each file of the artifacts, by path, besides the requests of ended sessions."""
        ended = self.artifacts / ".ended_requests"
        files = (path for path in sorted(self.artifacts.rglob("*")) if path.is_file() and path.parent != ended)
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

    def states(self) -> list[tuple[str, str]]:
        """Name and state of every session in the store, oldest first. The list of sessions asks every agent; this asks none."""
        return [(name, state) for name, state, _lease, _reason in self.rows()]

    def holding(self) -> list[tuple[str, str, float, str]]:
        """The sessions that hold resources or a lease."""
        return [row for row in self.rows() if row[1] not in ENDED or row[2]]

    def everything(self) -> tuple[Any, ...]:
        return self.engine(), self.kept(), self.holding()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.clean()

    def clean(self) -> None:
        """Remove everything of this owner, found by its labels, in any state."""
        OwnObjects(self.client, self.owner).remove()
        self.client.close()
        self.claim.close()
        shutil.rmtree(self.folder, ignore_errors=True)


_LIST = """
- hosts: agents
  gather_facts: false
  tasks:
    - cluster.compute.session_info:
      register: session_listed
      run_once: true
    - ansible.builtin.debug:
        msg: "LISTED<<{{ (session_listed | to_json).encode().hex() }}>>"
"""
