# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two sessions over three agents under random moves of their user, an administrator and the world.

After each move, the engines and the list agree, what was not concerned runs as before, and in the end nothing is left. MINUTES sets
how long, and SEED the moves.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from agents_lab import NAMES, Agents, Lab
from broken_off import broken_off
from controller import ENDED, SMALL, Done, run_playbook
from lost_hosts import PATIENCE, bring_back
from own_objects import LABEL

MINUTES = float(os.environ.get("MINUTES", "15"))
SEED = int(os.environ.get("SEED", "1"))
# Three containers fit on each agent, and two hosts do not have room for both sessions at their largest size.
SHAPE = {
    **SMALL,
    "session_cluster_mode": "multi-node",
    "session_per_agent": 2,
    "session_cpus": 0.6,
    "session_lost_after": PATIENCE,
}
SESSIONS: dict[str, dict[str, Any]] = {
    "moves": {**SHAPE, "session_on_lost": "relocate", "session_on_failure": "restart"},
    "stays": SHAPE,
}
SIZES, BOUND = (1, 5), 3
MOVES = [*3 * ["launch", "scale", "pass"], *4 * ["broken"], *2 * ["power"], "kill", "remove", "other", "policy", "end"]
Row = dict[str, Any]


@pytest.fixture
def whole(agents: Agents, lab: Lab) -> Iterator[Lab]:
    """The lab, whose hosts are in one Swarm again afterwards."""
    yield lab
    for agent in NAMES:
        lab.thaw(agent)
    bring_back(agents, lab)


@dataclass(frozen=True)
class Box:
    """A container as its engine has it; ``started`` is empty unless it runs."""

    agent: str
    session: str
    name: str
    host: str
    id: str
    started: str
    addresses: tuple[str, ...]


@dataclass
class World:
    """``shaken`` names the hosts that are lost, or are back and no pass has seen them; ``torn`` the sessions whose last command was broken off."""

    agents: Agents
    lab: Lab
    other: Agents
    lost: str = ""
    frozen: bool = False
    shaken: set[str] = field(default_factory=set)
    torn: set[str] = field(default_factory=set)
    bounded: bool = False
    boxes: list[Box] = field(default_factory=list)
    rows: dict[str, Row] = field(default_factory=dict)
    hit: str = ""

    def look(self) -> None:
        self.rows = {row["name"]: row for row in self.agents.sessions() if row["state"] not in ENDED}
        self.boxes = [box for agent in NAMES if agent != self.lost for box in self.held(agent)]

    def held(self, agent: str) -> Iterator[Box]:
        listed = f"docker ps --all --quiet --filter label={LABEL}.owner={self.agents.owner}"
        text = self.lab.shell(agent, f"{listed} | xargs -r docker inspect --format '{{{{json .}}}}'").text
        for one in map(json.loads, filter(lambda line: line.startswith("{"), text.splitlines())):
            labels, networks = one["Config"]["Labels"], one["NetworkSettings"]["Networks"].values()
            started = one["State"]["StartedAt"] if one["State"]["Running"] else ""
            addresses = tuple(network["IPAddress"] for network in networks if network["IPAddress"])
            yield Box(
                agent, labels[LABEL], labels[LABEL + ".name"], one["Config"]["Hostname"], one["Id"], started, addresses
            )

    # Moves; each returns what is to be shown of it

    def launch(self, rng: random.Random) -> str:
        name = rng.choice(list(SESSIONS))
        row = self.rows.get(name)
        size = row["size"] if row else rng.randint(*SIZES)
        done = self.agents.launch(name, session_cluster_size=size, **SESSIONS[name])
        is_calm = row and row["state"] == "RUNNING" and not self.shaken
        assert not (is_calm and done.code), f"{name} is not repaired: {done.text}"
        return self.commanded(name, f"{name} {size}", done)

    def scale(self, rng: random.Random) -> str:
        name, size = rng.choice(sorted(self.rows) or list(SESSIONS)), rng.randint(*SIZES)
        done = self.agents.play("cluster_session", session_name=name, session_cluster_size=size, session_scale=True)
        return self.commanded(name, f"{name} {size}", done)

    def end(self, rng: random.Random) -> str:
        name = rng.choice(sorted(self.rows) or list(SESSIONS))
        return self.commanded(name, name, self.agents.terminate(name))

    def commanded(self, name: str, shown: str, done: Done) -> str:
        if not done.code:
            self.torn.discard(name)
        return f"{shown}, code {done.code}" + (f" ({done.message[:200]})" if done.code else "")

    def broken(self, rng: random.Random) -> str:
        name, size = rng.choice(list(SESSIONS)), rng.randint(*SIZES)
        playbook = rng.choice(("cluster_session", "cluster_session", "terminate"))
        shape = {"session_cluster_size": size, **SESSIONS[name]} if playbook == "cluster_session" else {}
        what, ended = broken_off(self.agents, rng, playbook, session_name=name, **shape)
        self.torn.add(name)
        return f"{playbook} {name} {size}, {what if ended.interrupted else 'not interrupted'}, code {ended.code}"

    def strike(self, rng: random.Random, command: str) -> str:
        up = [box for box in self.boxes if box.started]
        if not up:
            return "nothing"
        box = rng.choice(sorted(up, key=lambda box: (box.name, box.host)))
        self.hit = box.id
        self.lab.shell(box.agent, f"docker {command} {box.id}")
        return f"{box.name} {box.host} on {box.agent}"

    def power(self, rng: random.Random) -> str:
        if self.lost:
            return self.back()
        self.lost, self.frozen = rng.choice(NAMES[1:]), rng.random() < 0.5
        (self.lab.freeze if self.frozen else self.lab.power_off)(self.lost)
        self.shaken.add(self.lost)
        return f"{self.lost} {'freezes' if self.frozen else 'is off'}"

    def back(self) -> str:
        agent, self.lost = self.lost, ""
        if agent:
            (self.lab.thaw if self.frozen else self.lab.power_on)(agent)
        return f"{agent} is back"

    def schedule(self) -> str:
        self.agents.play("schedule").check()
        self.shaken &= {self.lost}
        return ""

    def second(self) -> str:
        """Another controller of the same user sees the same."""
        listed = self.other.sessions(session_owner=self.agents.owner)
        seen = {row["name"]: (row["state"], row["size"]) for row in listed if row["state"] not in ENDED}
        assert seen == {name: (row["state"], row["size"]) for name, row in self.rows.items()}
        return ""

    def policy(self) -> str:
        self.bounded = not self.bounded
        limits = {"owners": {self.agents.owner: {"containers": BOUND}}} if self.bounded else {}
        command = self.agents.command("provision_agents", "--limit", f"localhost,{NAMES[0]}", agent_policy=limits)
        run_playbook(command, self.agents.environment).check()
        return f"{BOUND if self.bounded else 'no'} bound"

    def move(self, rng: random.Random) -> None:
        what = rng.choice(MOVES)
        moves = {
            "kill": lambda: self.strike(rng, "kill"),
            "remove": lambda: self.strike(rng, "rm --force"),
            "pass": self.schedule,
            "other": self.second,
            "policy": self.policy,
        }
        boxes, rows, self.hit = self.boxes, self.rows, ""
        shaken = set(self.shaken)
        line = f"{what} {moves[what]() if what in moves else getattr(self, what)(rng)}"
        self.look()
        shown = (f"{name} {row['state']} {row['size']}-{len(row['degraded'])}" for name, row in self.rows.items())
        print(f"{line}: {', '.join(shown)}", flush=True)
        self.check(what == "pass")
        self.check_stayed(boxes, rows, shaken)
        booked, before = (sum(len(row["containers"]) for row in found.values()) for found in (self.rows, rows))
        assert not self.bounded or booked <= max(BOUND, before), f"{booked} of {BOUND} permitted"

    # What always holds

    def check(self, after_pass: bool) -> None:
        """No address and no container twice, nothing unknown, and a session has what the list does not report as lacking."""
        steady = [box for box in self.boxes if box.agent not in self.shaken]
        twice = Counter(address for box in steady for address in box.addresses)
        assert max(twice.values(), default=1) == 1, steady
        ids = {row["id"] for row in self.rows.values()}
        assert not after_pass or {box.session for box in self.boxes} <= ids, f"unknown: {self.boxes}"
        for name in SESSIONS:
            row = self.rows.get(name, {"id": "", "containers": [], "degraded": [], "size": 0, "state": ""})
            assert row["state"] != "RUNNING" or len(row["containers"]) == row["size"], row
            places = {(one["agent"], one["hostname"]) for one in row["containers"]}
            lacking = {place for place in places if place[1] in row["degraded"]}
            found = {(box.agent, box.host) for box in self.boxes if box.session == row["id"] and box.started}
            if row["state"] == "RUNNING":
                assert found & places == places - lacking, f"{found} {row}"
            if name not in self.torn:
                extra = {(box.agent, box.host) for box in steady if box.name == name} - places
                assert not extra, f"not in the list: {extra} {row}"

    def check_stayed(self, boxes: list[Box], rows: dict[str, Row], shaken: set[str]) -> None:
        """A container that runs before and after a move is the same one, with the same first process."""
        now = {box.id: box.started for box in self.boxes}
        for box in boxes:
            before, after = rows.get(box.name), self.rows.get(box.name)
            concerned = box.id == self.hit or box.agent in shaken | self.shaken or not box.started
            if concerned or not (before and after) or not (box.session == before["id"] == after["id"]):
                continue
            both = {one["hostname"] for one in before["containers"]} & {one["hostname"] for one in after["containers"]}
            if box.host in both and before["state"] == after["state"] == "RUNNING":
                assert now.get(box.id) == box.started, f"{box} did not stay: {self.boxes}"

    def finish(self) -> None:
        """All is ended, and nothing is left."""
        self.back()
        self.schedule()
        if self.bounded:
            self.policy()
        for name, state in self.agents.states():
            if state not in ENDED:
                self.agents.terminate(name).check()
        self.schedule()
        assert [one for one in self.agents.states() if one[1] not in ENDED] == []
        assert self.agents.held() == {name: [] for name in NAMES}
        assert self.agents.kept() == {}


def test_random_moves_keep_every_session_whole_or_say_what_it_lacks(
    agents: Agents, whole: Lab, tmp_path_factory: pytest.TempPathFactory
) -> None:
    print(f"SEED={SEED}")
    # The test may run longer than faulthandler_timeout: each move has its own deadline.
    faulthandler.cancel_dump_traceback_later()
    deadline = time.monotonic() + 60 * MINUTES
    number = 0
    with Agents(tmp_path_factory.mktemp("other") / "own", agents.host, whole) as other:
        world = World(agents, whole, other)
        while time.monotonic() < deadline:
            print(f"move {number}: ", end="", flush=True)
            world.move(random.Random(f"{SEED}-{number}"))
            number += 1
        world.finish()
