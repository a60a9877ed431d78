# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Three agents with an overlay network: the engines alone, and this collection.

The agents are those of the tests, containers with an engine each on this machine. The floor for N is to create and start (and
then remove) a third of N containers on each agent at the same time, on one overlay network, with the Docker SDK alone.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "collections"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "drill"))

from agents_lab import NAMES, Agents, Lab

LABEL = "cluster.compute.bench"
PROOF = "Verifying SSH to "
SCRIPT = """
import sys, time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
import docker
count, state = int(sys.argv[1]), sys.argv[2]
client = docker.APIClient(version="auto", max_pool_size=8)
def make(number):
    body = client.create_host_config(network_mode="%(network)s", mem_limit="64m", nano_cpus=1000000000)
    made = client.create_container("%(image)s", command=["sleep", "600"], host_config=body, labels={"%(label)s": "%(network)s"})
    client.start(made["Id"])
def remove(identity):
    client.remove_container(identity, force=True)
listed = [one["Id"] for one in client.containers(all=True, filters={"label": "%(label)s=%(network)s"})]
begun = time.monotonic()
with ThreadPoolExecutor(8) as pool:
    list(pool.map(make, range(count)) if state == "present" else pool.map(remove, listed))
print(time.monotonic() - begun)
"""


# A new network could get a subnet that an engine still has from the last one.
REMOVED = "for _ in $(seq 150); do docker network inspect %(network)s >/dev/null 2>&1 || break; sleep 0.2; done"


def proof_seconds(folder: Path) -> float:
    """The seconds of the proof by SSH, from the trace of a launch in the session's folder."""
    events = json.loads((folder / "trace.json").read_text(encoding="utf-8"))["traceEvents"]
    return (
        sum(
            event["dur"]
            for event in events
            if event["ph"] == "X" and event["name"].startswith(PROOF) and event["cat"] == "task"
        )
        / 1e6
    )


class ThreeAgents:
    """The three hosts of the tests; they exist as long as the block."""

    def __init__(self, image: str, engine: str = "unix:///var/run/docker.sock") -> None:
        self._image = image
        self._lab = Lab()
        self._engine = engine
        self._folder = tempfile.TemporaryDirectory()

    def __enter__(self) -> ThreeAgents:
        self._lab.make()
        self._agents = Agents(Path(self._folder.name) / "own", self._engine, self._lab)
        return self

    def __exit__(self, *_error: object) -> None:
        try:
            self._agents.clean()
        finally:
            self._lab.destroy()
            self._folder.cleanup()

    def floor(self, size: int) -> tuple[float, float]:
        """Seconds of the slowest engine for the launch and for the end.

        Each has a network with a name of its own: rm succeeds while an engine still has the last one, whose name is taken until then.
        """
        network = f"bench-{uuid.uuid4().hex[:6]}-floor"
        label = f"{LABEL}={network}"
        self._shell(NAMES[0], f"docker network create -d overlay --attachable --label {label} {network}")
        try:
            return self._everywhere(size, network, "present"), self._everywhere(size, network, "absent")
        finally:
            self._shell(NAMES[0], f"docker network rm {network}")
            for agent in NAMES:
                self._shell(agent, REMOVED % {"network": network})

    def ours(self, size: int) -> tuple[float, float, float, float]:
        """Seconds of the launch, of the same command again, of the end, and of the proof in the launch."""
        name = f"bench-{size}"
        # No agent can hold all: the session is placed on three.
        amounts = {
            "session_cpus": 1,
            "agent_cpus": -(-size // len(NAMES)),
            "session_memory": "64m",
            "session_shm": "16m",
        }
        more = {"session_cluster_size": size, "session_cluster_mode": "multi-node", "session_strategy": "spread"}
        launch = self._timed(lambda: self._agents.launch(name, **more, **amounts).check())
        proof = proof_seconds(self._agents.artifacts / name)
        second = self._timed(lambda: self._agents.launch(name, **more, **amounts).check())
        return launch, second, self._timed(lambda: self._agents.terminate(name).check()), proof

    def grown(self) -> tuple[float, float]:
        """Seconds of the growth of a session from three containers to five, and of the launch of another one with two on two agents."""
        amounts = {"agent_cpus": 4, "session_cpus": 1, "session_memory": "64m", "session_shm": "16m"}
        grows = {**amounts, "session_cluster_mode": "multi-node", "session_per_agent": 2}
        self._agents.launch("bench-grows", session_cluster_size=3, **grows).check()
        growth = self._timed(lambda: self._agents.launch("bench-grows", session_cluster_size=5, **grows).check())
        two = {**grows, "session_per_agent": 1, "session_cluster_size": 2}
        launch = self._timed(lambda: self._agents.launch("bench-two", **two).check())
        for name in ("bench-grows", "bench-two"):
            self._agents.terminate(name).check()
        return growth, launch

    def _everywhere(self, size: int, network: str, state: str) -> float:
        script = SCRIPT % {"network": network, "image": self._image, "label": LABEL}
        shares = [size // len(NAMES) + (index < size % len(NAMES)) for index in range(len(NAMES))]

        def one(agent: str, share: int) -> float:
            return float(
                self._shell(agent, f"python3 - {share} {state} <<'END'\n{script}\nEND").strip().splitlines()[-1]
            )

        with ThreadPoolExecutor(len(NAMES)) as pool:
            return max(pool.map(one, NAMES, shares))

    def _shell(self, agent: str, script: str) -> str:
        return self._lab.shell(agent, script, timeout=600).check().text

    @staticmethod
    def _timed(work: Callable[[], object]) -> float:
        begun = time.monotonic()
        work()
        return time.monotonic() - begun
