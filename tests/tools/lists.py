# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists as ``session_info`` returns them, made of agents and sessions in a store, for tests of tables and of the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from operator import mul
from pathlib import Path
from typing import Any

from samples import GIB, agent, carried_out, context, request
from store_sessions import turns_of

from ansible_collections.cluster.compute.plugins.module_utils._agent.devices import use_of_gpu
from ansible_collections.cluster.compute.plugins.module_utils._head.listing import list_agents, list_sessions
from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.session_view import time_left
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._head.usage import (
    available,
    held_on,
    list_groups,
    list_owners,
    sample,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared import states
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import (
    AgentReport,
    GpuUse,
    Measured,
    ObservedContainer,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.usage import AgentView, Amounts, Sample
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.view import SessionList
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.policy import QueueRules, SitePolicy

NOW = 1795280000.0
RULES = QueueRules()
OWNERS = ("alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi", "ivan", "judy")
NAMES = ("train", "sweep", "notebook", "evaluate", "preprocess")
# (name, owner, size, CPUs, memory, GPUs) of a small list.
FEW = (("train", "alice", 6, 2, "4g", 1), ("notebook", "bob", 1, 1, "2g", 0), ("sweep-1", "carol", 2, 4, "8g", 0))


def few_agents() -> list[AgentReport]:
    """Three agents, one of which has GPUs."""
    gpus = [f"GPU-{number}" for number in range(8)]
    return [
        agent("node1", cpus=16, memory=64 * GIB, gpus=gpus, address="192.0.2.11"),
        agent("node2", cpus=16, memory=64 * GIB, address="192.0.2.12"),
        agent("node3", cpus=8, memory=32 * GIB, address="192.0.2.13", schedulable=False),
    ]


def many_agents() -> list[AgentReport]:
    """Room for 280 small sessions on twenty agents."""
    return [agent(f"node{number:02}", cpus=32, memory=128 * GIB) for number in range(1, 21)]


def many(count: int) -> list[tuple[Any, ...]]:
    """Sessions of several owners and sizes."""
    return [
        (f"{NAMES[n % 5]}-{n:03}", OWNERS[n * n % 10], 1 + n % 4, (0.5, 1, 2)[n % 3], f"{1 + n % 3}g", 0)
        for n in range(count)
    ]


def listed(
    folder: Path, agents: Sequence[AgentReport], sessions: Sequence[tuple[Any, ...]], **variables: Any
) -> SessionList:
    """The list after each session has been launched; those without room wait. ``variables`` are of all requests."""
    store = Store(str(folder / "state"))
    present = tuple(agents)
    for number, (name, owner, size, cpus, memory, gpus) in enumerate(sessions):
        asked = request(
            name=name,
            owner=owner,
            cluster_size=size,
            cluster_mode="multi-node",
            cpus=cpus,
            memory=memory,
            gpus=gpus,
            **variables,
        )
        begun = NOW - 9 * 3600 + number * 60
        decision = launch(store, asked, context(*present, now=begun))
        if decision.plan is not None:
            present = carried_out(present, decision.plan)
            store.change(store.need(decision.session.id), states.RUNNING, begun + 4, "every container is verified")
    document = _document(store, [_measured(one) for one in present])
    store.close()
    return document


def _document(store: Store, agents: Sequence[AgentReport]) -> SessionList:
    rows = store.select(None, None, ended=True)
    turn = {identity: number for number, identity in enumerate(turns_of(store, agents, RULES, NOW), start=1)}
    sessions = [
        replace(one, time_left=time_left(one, NOW), turn=turn.get(one.id), reason=one.what_happened)
        for one in list_sessions(rows, agents)
    ]
    held = held_on(agents, store.ends_on(agents), store.held_plans())
    agent_rows = list_agents(held, agents)
    owners = [
        replace(one, available=available(SitePolicy(), {}, agent_rows, one.owner))
        for one in list_owners(store.live(), held)
    ]
    return SessionList(
        NOW,
        tuple(sessions),
        tuple(agent_rows),
        tuple(list_groups(agent_rows, None)),
        tuple(owners),
        tuple(history(agent_rows)),
    )


def history(agents: Sequence[AgentView]) -> list[Sample]:
    """Samples of 30 days, every half hour, with a night without any."""
    taken = []
    for number in range(1440):
        moment = NOW - 1800 * (1440 - number)
        if 60 < number % 480 < 80:
            continue
        levels = [0.5 + 0.4 * math.sin(number / (15 + 4 * place)) for place in range(3)]
        one = sample(agents, [], moment)
        whole = one.capacity
        used = Amounts(*map(mul, (whole.millicpus, whole.memory, whole.gpus), levels))
        measured = replace(one.measured, millicpus=used.millicpus * 0.6, memory=used.memory * 0.6)
        taken.append(replace(one, used=used, measured=measured))
    return taken


def _measured(host: AgentReport) -> AgentReport:
    """The agent, on which each container uses a third of its resources, and each GPU computes two fifths of the time."""
    gpus = tuple(GpuUse(gpu.id, 40, GIB, 80 * GIB) for gpu in host.capacity.gpus)

    def with_use(container: ObservedContainer) -> ObservedContainer:
        own = container.resources
        return replace(container, measured=Measured(own.millicpus // 3, own.memory // 3, use_of_gpu(own.gpus, gpus)))

    return replace(host, containers=tuple(with_use(one) for one in host.containers), gpu_use=gpus)
