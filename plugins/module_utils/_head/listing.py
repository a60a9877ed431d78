# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sessions and agents as a list shows them: the store's rows joined with what the engines report."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Dict, Iterable, List, Sequence

from ansible_collections.cluster.compute.plugins.module_utils._core import states
from ansible_collections.cluster.compute.plugins.module_utils._core.constants import LABEL
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json, Plan, Resources
from ansible_collections.cluster.compute.plugins.module_utils._core.reports import Agent, ObservedContainer
from ansible_collections.cluster.compute.plugins.module_utils._head.bookings import bookings
from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import show_session
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Row, Store
from ansible_collections.cluster.compute.plugins.module_utils._planning.plan import read_placement
from ansible_collections.cluster.compute.plugins.module_utils._planning.request import Request


def list_sessions(rows: Iterable[Row], agents: Sequence[Agent]) -> List[Json]:
    """Every session with its containers; ``degraded`` names those that a RUNNING one is without."""
    lives: Dict[str, ObservedContainer] = {live.id: live for agent in agents for live in agent.containers}
    return [_session(row, lives, agents) for row in rows]


def list_agents(store: Store, agents: Sequence[Agent]) -> List[Json]:
    """What each agent has and what is booked on it, launches included; who waits in the queue has nothing booked."""
    booked = bookings(store, agents)
    return [_agent(agent, booked[agent.name]) for agent in agents]


def _session(row: Row, lives: Dict[str, ObservedContainer], agents: Sequence[Agent]) -> Json:
    containers = _containers(row, lives, agents)
    lost = [one for one in containers if one["state"] != "running"]
    return {
        **show_session(row),
        **_shape(row, lives),
        "agents": list(dict.fromkeys(one["agent"] for one in containers)),
        "containers": containers,
        "degraded": [one["hostname"] for one in lost] if row.state == states.RUNNING else [],
        "command": next((one["batch"] for one in containers if "batch" in one), None),
        **_policies(row),
        "history": row.history,
        "request": Request.from_json(row.request).to_json() if row.state == states.PENDING else None,
    }


def _containers(row: Row, lives: Dict[str, ObservedContainer], agents: Sequence[Agent]) -> List[Json]:
    if row.state in states.ENDED:
        return []
    if not row.plan:
        return [_adopted(agent, live) for agent in agents for live in agent.containers if live.session == row.id]
    reachable = {agent.name for agent in agents if agent.reachable}
    listed = []
    for one in Plan.from_json(row.plan).containers:
        live = lives.get(one.id)
        gone = "missing" if one.agent in reachable else "unknown"
        shown = {"hostname": one.hostname, "agent": one.agent, "address": one.address, "rank": one.rank, "id": one.id}
        listed.append({**shown, **_condition(live, gone)})
    return listed


def _adopted(agent: Agent, live: ObservedContainer) -> Json:
    shown = {"hostname": live.hostname, "agent": agent.name, "address": live.data.get("address", ""), "id": live.id}
    return {**shown, "rank": int(live.data.get("rank") or 0), **_condition(live, "missing")}


def _condition(live: ObservedContainer | None, gone: str) -> Json:
    """A container's state; of one that has stopped also how it ended."""
    if live is None:
        return {"state": gone}
    if live.state == "running":
        batch = live.data.get("batch")
        return {"state": live.state, "batch": batch} if batch else {"state": live.state}
    killed = bool(live.data.get("oom_killed"))
    return {"state": live.state, "exit_code": live.data.get("exit_code"), "oom_killed": killed}


def _policies(row: Row) -> Json:
    """What is to happen to it by itself, at the next pass of schedule.yml."""
    session = (row.plan or {}).get("session") or {}
    names = ("on_failure", "terminate_when_done")
    return {name: session.get(name, default) for name, default in zip(names, ("keep", False))}


def _shape(row: Row, lives: Dict[str, ObservedContainer]) -> Json:
    """Size, mode, image and what each container holds: from the plan or the request, else from the labels."""
    if row.plan:
        plan = Plan.from_json(row.plan)
        return _shown(plan.session.size, plan.session.mode, plan.session.image, plan.main.resources)
    if row.request:
        request = Request.from_json(row.request)
        each = Resources(request.millicpus, request.memory, request.shm)
        return {**_shown(request.size, request.mode, request.image, each), "gpus": request.gpus}
    some = next((live for live in lives.values() if live.session == row.id), None)
    if some is None:
        return _shown(0, "", "", Resources())
    labels = some.data["labels"]
    size = len(read_placement(labels[LABEL + "session.placement"]))
    return _shown(size, labels[LABEL + "session.mode"], str(some.data.get("image") or ""), some.resources)


def _shown(size: int, mode: str, image: str, each: Resources) -> Json:
    gpus = round(sum(gpu.shares for gpu in each.gpus), 3)
    return {"size": size, "mode": mode, "image": image, "gpus": gpus, "each": each.to_json()}


def _agent(agent: Agent, booked: Sequence[Resources]) -> Json:
    return {
        "name": agent.name,
        "group": agent.group,
        "reachable": agent.reachable,
        "reason": agent.reason,
        "schedulable": agent.schedulable,
        "capacity": {"millicpus": agent.millicpus, "memory": agent.memory, "gpus": len(agent.gpus)},
        "used": {
            "millicpus": sum(one.millicpus for one in booked),
            "memory": sum(one.memory for one in booked),
            "gpus": sum(gpu.shares for one in booked for gpu in one.gpus),
        },
    }
