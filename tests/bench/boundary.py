#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the collection ends: a whole pass of schedule.yml over 100 hosts with stub engines, and 20 launches at once against one head.

500 sessions of ten owners wait, and 200 run. Each launch is a process that takes the two steps of a launch on the head, and measures
how long each of its transactions waits for the lock of the store. They begin together, which real launches rarely do.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "collections"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from many_agents import IMAGE, ManyAgents
from queue_pass import AGENTS, NOW, WAITING, added, fill, measure
from samples import context, request

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.payloads import (
    AgentSettings,
    container_body,
)
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._shared import states
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import AgentReport
from ansible_collections.cluster.compute.plugins.module_utils._steps.step import OF_HEAD, Head

RUNNING, FIT, LAUNCHES, RUNS, CPUS, PORTS = 200, 20, 20, 5, 8, 20000
Waits = list[float]
SHARED: list[Any] = []


@dataclass(frozen=True)
class Launch:
    """Seconds: the waits for the lock together, the whole, and the processor time."""

    wait: float
    seconds: float
    cpu: float


def main() -> int:
    """Print both."""
    passes()
    for name, is_waiting in (("an empty queue", False), ("500 waiting sessions", True)):
        runs = [launches(is_waiting) for _run in range(RUNS)]
        ranks = [statistics.quantiles([launch.wait for launch in run], n=100, method="inclusive") for run in runs]
        half, most = (statistics.median(rank[place] for rank in ranks) for place in (49, 98))
        cpu = statistics.median(launch.cpu for run in runs for launch in run)
        last = statistics.median(max(launch.seconds for launch in run) for run in runs)
        print(
            f"{LAUNCHES} launches at once, {name}: wait for the lock p50 {half:.2f} s, p99 {most:.2f} s; the last is recorded after "
            f"{last:.1f} s; CPU time of a launch on the head {cpu:.3f} s (medians of {RUNS} runs)",
            flush=True,
        )
    return 0


def passes() -> None:
    """Passes of one owner: with the first connection to each agent, without, and with sessions that fit."""
    with ManyAgents(AGENTS) as many:
        store = Store(str(many.state))
        agents = fill(store, 4, different=True, running=RUNNING, names=many.names)
        asking = replace(context(*agents), now=NOW + 60)
        seconds = statistics.median(measure(store, "user1", asking)[0] for _run in range(RUNS))
        print(f"a decision about {WAITING} waiting sessions: {seconds:.2f} s of CPU time", flush=True)
        with store.transaction(keep=False):
            plans = [row.plan for row in store.live() if row.plan]
        store.close()
        for plan in plans:
            for container in plan.containers:
                body = container_body(plan, container, AgentSettings())
                many.engine(container.agent).hold(container.name, json.dumps(body).encode())
        _pass(many, "first pass", RUNNING)
        _pass(many, "second pass", RUNNING)
        with Store.opened(str(many.state)) as store:
            for number in range(FIT):
                # All agents are this machine, so that no two may publish the same port.
                ports = f"{PORTS + number}-{PORTS + number}"
                asked = request(
                    name=f"fits-{number}",
                    owner="user1",
                    cpus=1,
                    memory="64m",
                    lifetime=3600,
                    port_range=ports,
                    image=IMAGE,
                )
                added(store, asked, f"20000000-0000-4000-8000-{number:012d}", time.time())
        _pass(many, f"pass in which {FIT} sessions fit", RUNNING + FIT)


def _pass(many: ManyAgents, what: str, runs: int) -> None:
    """A pass, after which so many sessions run."""
    cost, load = many.schedule(owner="user1", cpus=CPUS), os.getloadavg()[0]
    with Store.opened(str(many.state), read_only=True) as store:
        found = [row.state for row in store.live()]
    if (found.count(states.RUNNING), len(found)) != (runs, WAITING + runs):
        raise RuntimeError(
            f"{what}: {runs} of {WAITING + runs} sessions should run, not {found.count(states.RUNNING)} of {len(found)}"
        )
    print(
        f"{what} over {AGENTS} agents, {WAITING} wait, {RUNNING} run: {cost.seconds:.1f} s, controller {cost.cpu:.1f} s of CPU "
        f"time, {cost.memory / 1e6:.0f} MB (load {load:.0f})",
        flush=True,
    )


def launches(is_waiting: bool) -> list[Launch]:
    """Launches that begin together."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        agents = list(
            map(AgentReport.to_json, fill(store, 4, different=True, running=RUNNING, waits=WAITING * is_waiting))
        )
        store.close()
        processes = multiprocessing.get_context("fork")
        barrier = processes.Barrier(LAUNCHES, timeout=60)
        with ProcessPoolExecutor(LAUNCHES, processes, initializer=_begin, initargs=(barrier, folder, agents)) as pool:
            return list(pool.map(_launch, range(LAUNCHES)))


def _begin(*shared: Any) -> None:
    """What the launches of a process have in common."""
    SHARED[:] = shared


def _launch(number: int) -> Launch:
    """What a launch does on the head: its place, and the record that it runs."""
    barrier, folder, agents = SHARED
    asked = request(name=f"now-{number}", owner=f"user{number % 10}", cpus=1, memory="64m", lifetime=3600)
    holder = {"host": "controller", "user": asked.owner, "pid": number, "start": "1"}
    head = Head(folder)
    barrier.wait()
    begun, cpu = time.monotonic(), time.process_time()
    with _timed() as waits:
        placed = OF_HEAD.call("session.place", head, {"request": asked.to_json(), "holder": holder, "agents": agents})
        if placed["outcome"] != "placed":
            raise RuntimeError(f"{asked.name}: {placed['outcome']}: {placed['reason']}")
        change = {"id": placed["session"]["id"], "holder": holder}
        OF_HEAD.call("session.record", head, {"state": "running", "change": change})
    return Launch(sum(waits), time.monotonic() - begun, time.process_time() - cpu)


@contextmanager
def _timed() -> Iterator[Waits]:
    """The seconds that each transaction of this process waits for the store's lock."""
    found: Waits = []
    original = Store.transaction

    @contextmanager
    def transaction(store: Store, keep: bool = True) -> Iterator[Store]:
        begun = time.monotonic()
        with original(store, keep):
            found.append(time.monotonic() - begun)
            yield store

    Store.transaction = transaction  # type: ignore[method-assign]
    yield found


if __name__ == "__main__":
    sys.exit(main())
