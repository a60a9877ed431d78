# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two accounts launch at once: nothing is booked twice and no quota is exceeded, at any of two samples a second.

The accounts are those of the controller and of the agents. The engines have GPUs that exist by name only: a hook of NVIDIA's runtime
that does nothing. The image comes from a registry that takes half a minute for it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import slow_registry
from agents_lab import NAMES, SHARED, Lab
from controller import Controller, Done
from ordinary_user import OrdinaryUser, ordinary_user, second_user

ROOM, LAUNCHES, PORT, PULL = 6, 10, 5999, 30
IMAGE = f"127.0.0.1:{PORT}/{slow_registry.NAME}"
PROGRAMS = [Path(__file__).resolve().parents[1] / "tools" / name for name in ("slow_registry.py", "booking_samples.py")]
# The hosts of other tests in this process stay meanwhile.
SCENARIO = "two_accounts"
HOOK = "/usr/bin/nvidia-container-runtime-hook"
SECOND = "useradd --create-home --groups docker --password '*' second && cp -r ~admin/.ssh ~second/ && chown -R second: ~second/.ssh"
POLICY = "/etc/cluster-compute/policy.json"
# Twenty playbooks on few cores.
LONG = 2400
# Sixty modules at once: sshd answers late, and it drops connections when many have not logged in yet.
PATIENT = ["ANSIBLE_TIMEOUT=300", "ANSIBLE_SSH_RETRIES=10"]
ASKED: dict[str, Any] = {
    "session_image": IMAGE,
    "session_cpus": 1,
    "session_memory": "64m",
    "session_shm": "16m",
    "session_gpus": 1,
    "session_apps": [{"name": "web", "port": 80}],
    "session_verify_timeout": 600,
    "session_apps_timeout": 600,
}


@dataclass(frozen=True)
class Account:
    """An account of the controller, with a key for an account of the agents and an inventory of some of them."""

    user: OrdinaryUser
    controller: Controller
    project: Path
    remote: str

    @property
    def name(self) -> str:
        return self.user.account.pw_name

    def play(self, playbook: str, **variables: Any) -> Done:
        folder = self.project / ".cache/molecule" / SCENARIO
        inventories = [folder / "inventory.json", SHARED / "agents.yml", SHARED / "addresses.py"]
        own = self.user.folder / "checkout" / SHARED.relative_to(SHARED.parents[2])
        paths = [str(own / path.name if path.parent == SHARED else path) for path in inventories]
        _program, *arguments = self.controller.command(playbook, ansible_user=self.remote, **variables)
        where = [f"MOLECULE_PROJECT_DIRECTORY={self.project}", f"MOLECULE_SCENARIO_NAME={SCENARIO}", *PATIENT]
        python = [str(self.user.folder / "venv/bin/python"), "-m", "ansible", "playbook"]
        command = ["env", *where, *python, *(word for path in paths for word in ("-i", path)), *arguments]
        return self.user.run(self.user.own_group, self.controller, command, timeout=LONG)

    def end_all(self) -> Done:
        return self.play("terminate", session_name="crowd-*", session_many=True)


@pytest.fixture(scope="module")
def lab(engine_host: str) -> Iterator[Lab]:
    """Three agents with a second account, GPUs that do nothing, and a slow registry each."""
    if os.geteuid() != 0 or shutil.which("useradd") is None:
        pytest.skip("this test needs root and useradd: it creates other users")
    made = Lab(SCENARIO)
    if not (os.environ.get("KEEP_LAB") and made.is_there()):
        made.make()
    try:
        for agent in NAMES:
            made.shell(agent, f"printf '#!/bin/sh\\n' >{HOOK}; chmod 755 {HOOK}; id second || ({SECOND})").check()
            made.stop_engine(agent)
        for agent in NAMES:
            made.start_engine(agent)
            for program in PROGRAMS:
                subprocess.run(["docker", "cp", program, f"{made.container(agent)}:/root/{program.name}"], check=True)
            _started(made, agent, "slow_registry.py", str(PORT), str(PULL))
        yield made
    finally:
        if not os.environ.get("KEEP_LAB"):
            made.destroy()


def _started(lab: Lab, agent: str, program: str, *arguments: str) -> None:
    lab.shell(agent, f"pkill -f '[{program[0]}]{program[1:]}'")
    command = ["docker", "exec", "--detach", lab.container(agent), "python3", f"/root/{program}", *arguments]
    subprocess.run(command, check=True)


@contextmanager
def accounts(lab: Lab, host: str, agents: Sequence[str]) -> Iterator[list[Account]]:
    """Two accounts with the same pool of these agents, with room for six sessions."""
    each = ROOM // len(agents)
    gpus = [{"id": f"GPU-{number}"} for number in range(each)]
    with ordinary_user() as first, second_user(first) as other:
        room = {"agent_cpus": each, "agent_memory": f"{each}g", "agent_gpus": gpus}
        controller = Controller(first.folder / "controller", host, extra=room)
        for name in ("session_owner", "session_artifacts", "session_state_dir"):
            del controller.variables[name]
        controller.common.write_text(json.dumps(controller.variables))
        try:
            yield [
                Account(user, controller, _project(user, lab, agents), remote)
                for user, remote in ((first, "admin"), (other, "second"))
            ]
        finally:
            controller.clean()


def _project(user: OrdinaryUser, lab: Lab, agents: Sequence[str]) -> Path:
    """The lab as an account knows it: a key, and the addresses of the agents."""
    folder = user.home / "pool/.cache/molecule" / SCENARIO
    (folder / "addresses").mkdir(parents=True)
    for name in ("id_agents", "known_hosts", *(f"addresses/{agent}" for agent in agents)):
        shutil.copy(lab.folder / name, folder / name)
    groups = {"agents": {"hosts": {agent: {} for agent in agents}}, "head": {"hosts": {agents[0]: {}}}}
    (folder / "inventory.json").write_text(json.dumps(groups))
    subprocess.run(["chown", "-R", f"{user.account.pw_uid}:{user.account.pw_gid}", user.home / "pool"], check=True)
    return user.home / "pool"


@contextmanager
def sampled(lab: Lab, agents: Sequence[str], folder: Path) -> Iterator[dict[str, list[dict[str, Any]]]]:
    """What the agents had booked, by agent; the lists are filled at the end."""
    samples: dict[str, list[dict[str, Any]]] = {agent: [] for agent in agents}
    with ExitStack() as stack:
        running = []
        for agent in agents:
            file = stack.enter_context((folder / f"{agent}.jsonl").open("w"))
            command = ["docker", "exec", "-i", lab.container(agent), "python3", "/root/booking_samples.py"]
            running.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=file))
        try:
            yield samples
        finally:
            for process in running:
                process.communicate(timeout=60)
    assert [process.returncode for process in running] == [0] * len(agents)
    for agent in agents:
        samples[agent] += [json.loads(line) for line in (folder / f"{agent}.jsonl").read_text().splitlines()]


def once(values: Sequence[Any]) -> bool:
    return len(set(values)) == len(values)


def check_agent(containers: Sequence[dict[str, Any]], each: int) -> None:
    """No CPU, GPU, memory or port of an agent is booked twice."""
    resources = [container["resources"] for container in containers]
    assert sum(one["millicpus"] for one in resources) <= 1000 * each, containers
    assert sum(one["memory"] for one in resources) <= each << 30, containers
    assert once([gpu["id"] for one in resources for gpu in one["gpus"]]), containers
    assert once([port for container in containers for port in container["ports"]]), containers


def check(agent: str, sample: dict[str, Any], agents: Sequence[str]) -> None:
    """Nothing is booked twice on an engine, in the store, and on the engine of the store's agent and in the store together."""
    each = ROOM // len(agents)
    check_agent(sample["containers"], each)
    assert once(sample["subnets"]), sample
    planned = [container for session in sample["sessions"] for container in session["containers"]]
    for name in agents:
        mine = {container["id"]: container for container in planned if container["agent"] == name}
        check_agent(list(mine.values()), each)
        if name == agent:
            both = {**{container["id"]: container for container in sample["containers"]}, **mine}
            check_agent(list(both.values()), each)
    assert once([session["subnet"] for session in sample["sessions"] if session["subnet"]]), sample


def states(sample: dict[str, Any], owner: str = "") -> Counter[str]:
    return Counter(session["state"] for session in sample["sessions"] if owner in ("", session["owner"]))


def launched(pair: Sequence[Account], count: int) -> list[Done]:
    """All launches of both accounts at once."""
    with ThreadPoolExecutor(2 * count) as threads:
        jobs = [
            threads.submit(account.play, "cluster_session", session_name=f"crowd-{number}", **ASKED)
            for number in range(count)
            for account in pair
        ]
        return [job.result() for job in jobs]


def own(sample: dict[str, Any], pair: Sequence[Account]) -> dict[str, Any]:
    """A sample without the sessions of earlier owners, which have ended."""
    names = [account.name for account in pair]
    return {**sample, "sessions": [session for session in sample["sessions"] if session["owner"] in names]}


@dataclass(frozen=True)
class Pool:
    """Agents, the accounts that share them, and the most sessions that each account may have, by its name."""

    agents: Sequence[str]
    accounts: Sequence[Account]
    quotas: dict[str, int]


# With quotas, the room for six is filled, too, and neither account can have all of it.
@pytest.fixture(params=[(NAMES[:1], ROOM, ROOM), (NAMES, 4, 3)], ids=["one agent", "three agents and quotas"])
def pool(request: pytest.FixtureRequest, lab: Lab, engine_host: str) -> Iterator[Pool]:
    agents, first, other = request.param
    for agent in agents:
        lab.shell(agent, f"docker image rm --force {IMAGE}; docker image prune --force")
    with accounts(lab, engine_host, agents) as pair:
        names = [account.name for account in pair]
        policy = json.dumps({"owners": {names[0]: {"sessions": first}, names[1]: {"cpus": other}}})
        lab.shell(agents[0], f"mkdir -p {Path(POLICY).parent}; echo '{policy}' >{POLICY}; chmod 644 {POLICY}").check()
        try:
            yield Pool(agents, pair, {names[0]: first, names[1]: other})
        finally:
            with ThreadPoolExecutor(2) as threads:
                ended = list(threads.map(Account.end_all, pair))
            lab.shell(agents[0], f"rm -f {POLICY}")
        assert [done.code for done in ended] == [0, 0], "\n".join(done.text for done in ended)
        assert [lab.held(agent) for agent in agents] == [[] for _agent in agents]


def check_quotas(sample: dict[str, Any], quotas: dict[str, int]) -> None:
    """No owner has more than its quota, in the store or on this engine."""
    held = Counter(session["owner"] for session in sample["sessions"] for _container in session["containers"])
    on_engine = Counter(container["owner"] for container in sample["containers"])
    for owner, most in quotas.items():
        assert max(held[owner], on_engine[owner]) <= most, sample


def test_ten_launches_of_each_account_fill_the_room_for_six(pool: Pool, lab: Lab, tmp_path: Path) -> None:
    with sampled(lab, pool.agents, tmp_path) as samples:
        done = launched(pool.accounts, LAUNCHES)
    assert [each.code for each in done] == [0] * len(done), "\n".join(each.text for each in done if each.code)
    for agent in pool.agents:
        for sample in samples[agent]:
            check(agent, own(sample, pool.accounts), pool.agents)
            check_quotas(sample, pool.quotas)
    seen = [states(own(sample, pool.accounts)) for sample in samples[pool.agents[0]]]
    last = own(samples[pool.agents[0]][-1], pool.accounts)
    print(
        f"samples: {[len(each) for each in samples.values()]}; prepared at once: {max(each['PREPARING'] for each in seen)}"
    )
    print({owner: states(last, owner) for owner in pool.quotas}, {session["reason"] for session in last["sessions"]})
    assert seen[-1] == {"RUNNING": ROOM, "PENDING": 2 * LAUNCHES - ROOM}
    # The images were on their way for half a minute, while others were placed.
    assert sum(each["PREPARING"] >= 2 for each in seen) >= PULL, seen
