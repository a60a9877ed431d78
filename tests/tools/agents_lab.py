# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Three hosts with an engine each, reached by SSH and provisioned by the collection's role, and faults for them.

The hosts are those of the molecule scenarios, but their image contains the packages of the engine already. The scenarios
test how a bare host becomes an agent.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import docker
from controller import LABEL, PLAYBOOK, ROOT, ROWS, Controller, Done, run, run_playbook
from docker.errors import NotFound
from locks import lock
from with_engine import SPARING, engine_host

SCENARIO = "multi_host"
NAMES = ("agent1", "agent2", "agent3")
SHARED = ROOT / "extensions/molecule/shared"
IMAGE = "cluster-compute-test/agent-engine:1"
# Debian suites of the hosts in turn, as in AGENT_SUITES=bookworm,trixie,trixie+containerd: the last of these has containerd's image store.
SUITES = tuple(os.environ.get("AGENT_SUITES", "bookworm").split(","))
REFERENCE = "cluster-compute/reference:1"
STORE = "file:/var/lib/cluster-compute/sessions.db?mode=rw"
# The data path port of a Swarm that exists before the role runs.
OTHER_PORT = 7789
# Seconds for an engine or a host to start, and for a script: they only end a wait that would not end.
STARTED = 600
# Room for two containers of one CPU on each.
ROOM: dict[str, Any] = {"agent_cpus": 2, "agent_memory": "2g"}
# That of a container whose image names none.
SYSTEM_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
START = f"rm -f /var/run/docker.pid; {SPARING} setsid nohup dockerd </dev/null >>/var/log/dockerd.log 2>&1 &"


@dataclass(frozen=True)
class Host:
    """What a host of the lab is made of."""

    suite: str
    has_containerd_store: bool

    @classmethod
    def of(cls, agent: str, suites: Sequence[str] = SUITES) -> Host:
        suite, _plus, store = suites[NAMES.index(agent) % len(suites)].partition("+")
        if store == "systemd":
            raise ValueError(
                "systemd would start the engines again that tests stop: use AGENT_SUITES without +systemd."
            )
        return cls(suite, store == "containerd")


class Lab:
    """The hosts, and the faults that tests cause on them."""

    names: Sequence[str] = NAMES
    variables: Mapping[str, Any] = {**ROOM, "lab_agent_engine": True}

    def __init__(self, scenario: str = SCENARIO, suites: Sequence[str] = SUITES) -> None:
        self.folder = ROOT / ".cache/molecule" / scenario
        self.suites = suites
        self.name = f"cluster-compute-test-{scenario}-{hashlib.sha1(str(self.folder).encode()).hexdigest()[:6]}"
        self.environment = {
            **{name: text for name, text in os.environ.items() if not name.startswith("ANSIBLE_")},
            "MOLECULE_PROJECT_DIRECTORY": str(ROOT),
            "MOLECULE_SCENARIO_NAME": scenario,
            "AGENT_SUITES": ",".join(suites),
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_STDOUT_CALLBACK": "default",
        }
        self.inventory = self.folder / "inventory.json"
        self.inventories = [
            word
            for path in (self.inventory, SHARED / "agents.yml", SHARED / "addresses.py")
            for word in ("-i", str(path))
        ]

    def make(self, *, has_swarm: bool = False) -> None:
        """Create the hosts, start their engines, load the reference image, and run the role, which joins them to a Swarm.

        With ``has_swarm``, the first host has a Swarm already, with another data path port.
        """
        self.make_hosts()
        if has_swarm:
            options = f"--advertise-addr {self.address(NAMES[0])} --data-path-port {OTHER_PORT}"
            self.shell(NAMES[0], f"docker swarm init {options}").check()
        self.play(ROOT / "playbooks/provision_agents.yml").check()

    def make_hosts(self) -> None:
        """Create the hosts, start their engines, and load the reference image."""
        self.write_inventory()
        self.destroy_leftovers()
        if not os.environ.get("IMAGES_READY"):
            self.make_images()
        self.create()
        with ThreadPoolExecutor(len(NAMES)) as threads:
            list(threads.map(self._make_engine, self.names))
        self.load_reference()

    def create(self) -> None:
        """Create the hosts, whose images exist."""
        self.play(SHARED / "create.yml", "--skip-tags", "images").check()

    def destroy(self) -> None:
        self.play(SHARED / "destroy.yml").check()

    def destroy_leftovers(self) -> None:
        """Destroy the hosts, in any state, that a killed run has left."""
        if run(["docker", "ps", "--all", "--quiet", "--filter", f"name=^{self.name}-"]).check().text:
            self.destroy()
            self.write_inventory()

    def is_there(self) -> bool:
        return all(self.shell(agent, "docker info").code == 0 for agent in NAMES)

    def play(self, playbook: Path, *arguments: str) -> Done:
        command = [PLAYBOOK, *self.inventories, str(playbook), *arguments]
        return run_playbook(command, self.environment)

    def container(self, agent: str) -> str:
        return f"{self.name}-{agent}"

    def address(self, agent: str) -> str:
        return (self.folder / "addresses" / agent).read_text().strip()

    @cached_property
    def port(self) -> int:
        """The data path port of the Swarm."""
        return int(self.shell(NAMES[0], "docker info --format '{{.Swarm.Cluster.DataPathPort}}'").check().text)

    @cached_property
    def _engine(self) -> docker.APIClient:
        """The engine of this machine, whose containers the hosts are."""
        return docker.APIClient(base_url=engine_host(), version="auto")

    def entry(self, agent: str) -> list[str]:
        """The beginning of a command that runs on a host, without SSH.

        It enters the namespaces of the host: for a ``docker exec``, the client, the engine and runc need 120 ms of a processor.
        Its processes are in no cgroup of the host, so engines, which a pause must stop, are started by ``docker exec``.
        """
        if process := self._process(agent):
            return ["nsenter", f"--target={process}", "--all", "env", "-i", "HOME=/root", SYSTEM_PATH]
        return ["docker", "exec", self.container(agent)]

    def _process(self, agent: str) -> int:
        """The first process of a host; 0 if the host is off or paused."""
        with suppress(NotFound):
            state = self._engine.inspect_container(self.container(agent))["State"]
            return int(state["Pid"]) if state["Running"] and not state["Paused"] else 0
        return 0

    def shell(self, agent: str, script: str, timeout: float = STARTED) -> Done:
        """Run a script on a host, as root."""
        return run([*self.entry(agent), "sh", "-c", script], timeout=timeout)

    def held(self, agent: str) -> list[str]:
        """Everything on a host's engine that carries the label of a session."""
        with self.engine(agent) as engine:
            labelled = {"label": LABEL}
            containers = [f"{one['Id']} {one['Names'][0][1:]}" for one in engine.containers(all=True, filters=labelled)]
            networks = [f"{one['Id']} {one['Name']}" for one in engine.networks(filters=labelled)]
            return containers + networks + [one["Name"] for one in engine.volumes(filters=labelled)["Volumes"] or ()]

    def placed(self, label: str) -> dict[str, str]:
        """The host of each container that runs and has a label, by hostname. Hosts that are off have none."""
        found = {}
        for agent in filter(self._process, self.names):
            with self.engine(agent) as engine:
                names = [one["Names"][0] for one in engine.containers(filters={"label": label})]
            found.update({name.split(".")[2]: agent for name in names})
        return found

    @contextmanager
    def engine(self, agent: str) -> Iterator[docker.APIClient]:
        """A host's engine, asked from outside: each program of Docker on the host would need 60 ms of a processor."""
        process = self._process(agent)
        assert process, f"{agent} is off or paused"
        client = docker.APIClient(base_url=f"unix:///proc/{process}/root/run/docker.sock", version="auto")
        try:
            yield client
        finally:
            client.close()

    @contextmanager
    def fabric(self, agents: Sequence[str]) -> Iterator[None]:
        """These hosts have, as long as the block, an interface on a network of their own, which the inventory names."""
        name, path = f"{self.name}-fabric", self.folder / "fabric.json"
        # The engine would take the first subnet that is free here. A host's own bridge may have the same one.
        subnet = f"198.18.{hashlib.sha256(self.name.encode()).digest()[0]}.0/24"
        label = f"cluster-compute-test={self.name}"
        run(["docker", "network", "create", "--subnet", subnet, "--label", label, name]).check()
        for agent in agents:
            run(["docker", "network", "connect", name, self.container(agent)]).check()
        hosts = {agent: {"agent_fabric": self._newest_interface(agent)} for agent in agents}
        path.write_text(json.dumps({"agents": {"hosts": hosts}}))
        self.inventories += ["-i", str(path)]
        try:
            yield
        finally:
            del self.inventories[-2:]
            path.unlink()
            for agent in agents:
                run(["docker", "network", "disconnect", "--force", name, self.container(agent)])
            run(["docker", "network", "rm", name]).check()

    def _newest_interface(self, agent: str) -> str:
        """The outer engine names interfaces in the order of connections, and no name again."""
        names = self.shell(agent, "ls /sys/class/net").check().text.split()
        return max((name for name in names if name.startswith("eth")), key=lambda name: int(name[3:]))

    # Faults

    def kill_engine(self, agent: str, when: str = "true") -> subprocess.Popen[str]:
        """Kill a host's engine, with its containers' shims, as soon as a condition holds there."""
        script = (
            f"until {when}; do sleep 0.1; done; pid=$(cat /var/run/docker.pid); kill -9 $pid; pkill -9 containerd; "
            "while kill -0 $pid 2>/dev/null; do sleep 0.1; done"
        )
        command = ["docker", "exec", self.container(agent), "sh", "-c", script]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def stop_engine(self, agent: str) -> None:
        """Stop a host's engine as its service does, and wait for its end."""
        stop = "pid=$(cat /var/run/docker.pid); kill -TERM $pid; while kill -0 $pid 2>/dev/null; do sleep 0.2; done"
        self.shell(agent, stop).check()

    def start_engine(self, agent: str) -> None:
        """Start a host's engine again and wait until it is back in its Swarm."""
        if self.shell(agent, "docker info").code != 0:
            self._start(agent)
        deadline = time.monotonic() + STARTED
        while "active" not in self.shell(agent, "docker info --format '{{.Swarm.LocalNodeState}}'").text.split():
            assert time.monotonic() < deadline, self.shell(agent, "tail -n 20 /var/log/dockerd.log").text
            time.sleep(0.5)
        ready = f"docker node ls --filter name={agent} --format '{{{{.Status}}}}'"
        while "Ready" not in self.shell(NAMES[0], ready).text and agent != NAMES[0]:
            assert time.monotonic() < deadline, f"{agent} is not ready in the Swarm"
            time.sleep(0.5)

    def _start(self, agent: str) -> None:
        run(["docker", "exec", self.container(agent), "sh", "-c", START]).check()

    def power_off(self, agent: str) -> None:
        """Cut the power of a host: everything on it ends at once, and only its disk stays."""
        run(["docker", "kill", self.container(agent)]).check()

    def power_on(self, agent: str) -> None:
        """Start a host that was powered off, and its engine. Its membership of the Swarm is as the Swarm wants it."""
        run(["docker", "start", self.container(agent)]).check()
        deadline = time.monotonic() + STARTED
        while self.shell(agent, "true").code != 0:
            assert time.monotonic() < deadline, f"{agent} does not start"
        self._start(agent)
        while self.shell(agent, "docker info").code != 0:
            assert time.monotonic() < deadline, self.shell(agent, "tail -n 20 /var/log/dockerd.log").text
            time.sleep(0.5)

    def freeze(self, agent: str) -> None:
        """Stop all processes of a host, as an unresponsive host does."""
        run(["docker", "pause", self.container(agent)]).check()

    def thaw(self, agent: str) -> None:
        run(["docker", "unpause", self.container(agent)])

    def make_images(self) -> None:
        """Build the images of the hosts, if this engine does not have them."""
        self.write_inventory()
        with lock("agent-image"):
            self.play(SHARED / "create.yml", "--tags", "images").check()

    def write_inventory(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        agents = {"hosts": {name: {} for name in self.names}, "vars": self.variables}
        self.inventory.write_text(json.dumps({"agents": agents, "head": {"hosts": {self.names[0]: {}}}}))

    def _make_engine(self, agent: str) -> None:
        options: dict[str, Any] = {"cgroup-parent": f"/cluster-compute-test/{self.name[21:]}-{agent}"}
        if Host.of(agent, self.suites).has_containerd_store:
            options["features"] = {"containerd-snapshotter": True}
        self.shell(agent, f"mkdir -p /etc/docker; echo '{json.dumps(options)}' > /etc/docker/daemon.json").check()
        if self.shell(agent, "docker info").code != 0:
            self._start(agent)
        deadline = time.monotonic() + STARTED
        while self.shell(agent, "docker info").code != 0:
            assert time.monotonic() < deadline, self.shell(agent, "tail -n 20 /var/log/dockerd.log").text
            time.sleep(0.5)

    def load_reference(self) -> None:
        """Give the engines of all hosts the reference image of this machine, by a file in the directory that they share."""
        file = self.folder / "shared/reference.tar"
        run(["docker", "save", "--output", str(file), REFERENCE]).check()
        try:
            with ThreadPoolExecutor(len(NAMES)) as threads:
                load = f"docker load --input /srv/shared/{file.name}"
                for done in threads.map(lambda agent: self.shell(agent, load), self.names):
                    done.check()
        finally:
            file.unlink()


class Agents(Controller):
    """A controller for the three hosts. The store is on agent1, the head."""

    def __init__(self, folder: Path, host: str, lab: Lab) -> None:
        self.lab = lab
        super().__init__(folder, host, extra=ROOM)
        del self.variables["session_state_dir"]
        self.common.write_text(json.dumps(self.variables))

    @property
    def environment(self) -> dict[str, str]:
        own = ("MOLECULE_PROJECT_DIRECTORY", "MOLECULE_SCENARIO_NAME", "AGENT_SUITES")
        here = super().environment
        del here["ANSIBLE_REMOTE_TMP"]
        return {**here, **{name: self.lab.environment[name] for name in own}}

    def command(self, playbook: str, *arguments: str, **variables: Any) -> list[str]:
        return super().command(playbook, *self.lab.inventories, *arguments, **variables)

    def rows(self) -> list[tuple[str, str, float, str]]:
        return self.stored(ROWS, self.owner)

    def stored(self, query: str, *values: str) -> list[Any]:
        """The answer of the store on the head."""
        script = f"import json, sqlite3; print(json.dumps(list(sqlite3.connect('{STORE}', uri=True, timeout=30).execute({query!r}, {values!r}))))"
        answer = run([*self.lab.entry(NAMES[0]), "python3", "-c", script]).check().text
        return [tuple(row) for row in json.loads(answer)]

    def held(self, agents: Sequence[str] = NAMES) -> dict[str, list[str]]:
        return {agent: self.lab.held(agent) for agent in agents}
