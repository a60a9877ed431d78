# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many agents: a launch over stub engines, which are reached by real SSH to this machine under many names.

The modules of all agents run on this machine, too, and take most of its processors. So the processor time and the memory of the
controller are measured on their own: of ansible-playbook and what it starts, without the other ends of the SSH connections.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "collections"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "drill"))

from samples import plan, request
from stub_engine import Engines, StubEngine, Swarm

from ansible_collections.cluster.compute.plugins.module_utils._shared import label
from ansible_collections.cluster.compute.plugins.module_utils._shared.constants import RUNTIME_VOLUME_PREFIX
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.runtime_scripts import runtime_scripts

ROOT = Path(__file__).resolve().parents[2]
SSHD = "/usr/sbin/sshd"
IMAGE = "cluster-compute/reference:1"
NAME = "many-agents"
LOOPBACK, ALIAS = "127.0.0.1", "bench"
MANAGERS = 3  # of the Swarm, as its documentation advises
PATIENCE = 30.0  # seconds for sshd to begin
PAUSE = 0.5  # seconds between two looks at the memory


@dataclass(frozen=True)
class Cost:
    """What a command costs: wall time, the controller's processor time in seconds, its largest memory in bytes; its output."""

    seconds: float
    cpu: float
    memory: int
    text: str


class ManyAgents:
    """Agents with stub engines and an sshd of this user; they exist as long as the block."""

    def __init__(self, agents: int) -> None:
        self.names = [f"agent{number:03d}" for number in range(1, agents + 1)]
        self._temporary = tempfile.TemporaryDirectory(prefix="bench-")
        self._folder = Path(self._temporary.name)
        self._port = _free_port()

    def __enter__(self) -> ManyAgents:
        edition = runtime_scripts().edition
        name = RUNTIME_VOLUME_PREFIX + "stub"
        labels = f"{label.RUNTIME}=stub\n{label.EDITION}={edition}"
        swarm = Swarm(IMAGE, {name: labels, name + "-complete": labels}, self.names[:MANAGERS])
        self._engines = Engines(self._folder, self.names, swarm).__enter__()
        self._sshd = self._started()
        self._write_inventory()
        return self

    def __exit__(self, *_error: object) -> None:
        for name in self.names:
            command = ["ssh", "-O", "exit", "-o", f"ControlPath={self._folder}/c-%n", *self._options(), "-p"]
            subprocess.run([*command, str(self._port), _address(name)], capture_output=True, check=False)
        self._sshd.terminate()
        self._sshd.wait()
        self._engines.__exit__()
        self._temporary.cleanup()

    def launch(self, size: int) -> Cost:
        """A session of so many containers; no agent can hold more than its share."""
        amounts = {"session_cpus": 1, "agent_cpus": -(-size // len(self.names)), "session_memory": "64m"}
        more = {"session_cluster_mode": "multi-node", "session_strategy": "spread", "session_cluster_size": size}
        return self.play("cluster_session.yml", {**amounts, **more})

    def end(self) -> Cost:
        return self.play("terminate.yml", {})

    def schedule(self, owner: str, cpus: int) -> Cost:
        """A pass over the queue of an owner; each agent has so many CPUs."""
        return self.play("schedule.yml", {"session_owner": owner, "agent_cpus": cpus})

    def engine(self, agent: str) -> StubEngine:
        return self._engines.engines[agent]

    @property
    def state(self) -> Path:
        """The directory of the session store."""
        return self._folder / "state"

    def play(self, playbook: str, variables: dict[str, object], *options: str) -> Cost:
        given = {"session_name": NAME, **variables}
        words = [word for name, value in given.items() for word in ("-e", f"{name}={value}")]
        program = str(Path(sys.executable).parent / "ansible-playbook")
        command = [program, f"playbooks/{playbook}", "-i", str(self._folder / "inventory.yml"), *words, *options]
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        popen = subprocess.Popen(command, cwd=ROOT, env=self._environment(), text=True, **streams)
        with popen as process, _memory(process.pid) as largest:
            text = process.communicate()[0]
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if process.returncode:
            # The recap has a line for each agent.
            raise SystemExit(f"{playbook} failed:\n{text.partition('PLAY RECAP')[0][-4000:]}")
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return Cost(time.monotonic() - begun, cpu, largest[0], text)

    def _environment(self) -> dict[str, str]:
        own = {
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_STDOUT_CALLBACK": "default",
            "ANSIBLE_SSH_CONTROL_PATH": f"{self._folder}/c-%%n",
            "HOME": str(self._folder),
        }
        return {**os.environ, **own}

    def _write_inventory(self) -> None:
        hosts = [
            f"    {name}: {{ansible_host: {_address(name)}, agent_docker_host: 'unix://{self._folder}/{name}.sock'}}"
            for name in self.names
        ]
        variables = {
            "ansible_port": self._port,
            "ansible_ssh_common_args": " ".join(self._options()),
            "ansible_python_interpreter": sys.executable,
            "session_state_dir": self.state,
            "session_provision": "false",
        }
        lines = [
            "agents:",
            "  hosts:",
            *hosts,
            "  vars:",
            *(f"    {name}: {value}" for name, value in variables.items()),
        ]
        (self._folder / "inventory.yml").write_text("\n".join(lines) + "\n")

    def _options(self) -> list[str]:
        known = f"-o UserKnownHostsFile={self._folder}/known_hosts -o StrictHostKeyChecking=yes -o HostKeyAlias={ALIAS}"
        return f"-F none -i {self._folder}/key -o IdentitiesOnly=yes -o HostName={LOOPBACK} {known}".split()

    def _started(self) -> subprocess.Popen[bytes]:
        """An sshd of this user for this user. Every name leads to the one loopback address."""
        for name in ("key", "host_key"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self._folder / name)]
            subprocess.run(command, check=True)
        public = (self._folder / "host_key.pub").read_text()
        (self._folder / "known_hosts").write_text(f"{ALIAS} {public}")
        options = {
            "ListenAddress": f"{LOOPBACK}:{self._port}",
            "HostKey": self._folder / "host_key",
            "AuthorizedKeysFile": self._folder / "key.pub",
            "PidFile": "none",
            "UsePAM": "no",
            "StrictModes": "no",
            "PasswordAuthentication": "no",
            "PermitRootLogin": "prohibit-password",
            "MaxStartups": 2 * len(self.names),
            # In a shell that seems to be another's child, bash does not read .bashrc: what this user has in it is no cost of a launch.
            "SetEnv": "SHLVL=1",
        }
        (self._folder / "sshd_config").write_text("".join(f"{name} {value}\n" for name, value in options.items()))
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        log = (self._folder / "sshd.log").open("wb")
        process = subprocess.Popen([SSHD, "-D", "-e", "-f", str(self._folder / "sshd_config")], stderr=log)
        deadline = time.monotonic() + PATIENCE
        while True:
            with socket.socket() as trying:
                if trying.connect_ex((LOOPBACK, self._port)) == 0:
                    return process
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"sshd did not begin: {(self._folder / 'sshd.log').read_text()}")
            time.sleep(0.1)


def _address(name: str) -> str:
    """A loopback address of the agent's own, so that each agent has a connection of its own."""
    return f"127.0.1.{int(name[len('agent') :])}"


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@contextmanager
def _memory(pid: int) -> Iterator[list[int]]:
    """The largest memory of a process and its descendants, each page counted once, in the one element of a list."""
    largest, stop = [0], threading.Event()

    def watch() -> None:
        while not stop.wait(PAUSE):
            largest[0] = max(largest[0], sum(map(_share, _tree(pid))))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield largest
    finally:
        stop.set()
        thread.join()


def _tree(pid: int) -> list[int]:
    found = [pid]
    for parent in found:
        try:
            found += map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split())
        except (OSError, ValueError):
            continue
    return found


def _share(pid: int) -> int:
    """The proportional set size of a process, in bytes."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:")), 0)


def plan_bytes(size: int, own: int) -> tuple[int, int]:
    """What one agent with ``own`` containers receives of the plan of a session: all bytes, and those of the list of names."""
    whole = plan(
        request(cluster_size=size, cluster_mode="multi-node"), [f"agent{rank // own:03d}" for rank in range(size)]
    )
    part = whole.part("agent001").to_parameter()
    return len(json.dumps(part)), len(json.dumps(part["peers"]))
