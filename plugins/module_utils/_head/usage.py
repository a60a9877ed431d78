# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Count the bookings of agents and owners, and what an owner may still have, and sample them over time."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import Collection, Dict, Iterable, List, Mapping, Sequence, Set, Tuple

from .._shared import label, states
from .._shared.documents.plan import Plan, Resources
from .._shared.documents.report import AgentReport
from .._shared.documents.usage import NO_AMOUNTS, AgentView, Amounts, GroupView, OwnerView, Quota, Sample, SampledUse
from .._shared.errors import shorten_list
from .._shared.planning.capacity import FreeCapacity, held_in_all
from .._shared.planning.placement import free_of
from .._shared.planning.policy import SitePolicy
from .._shared.planning.policy_rules import Use, quota_left
from .._shared.text.table import busy_percents
from .session_record import SessionRecord, Termination

# What is booked, by agent and owner.
Holdings = Dict[str, Dict[str, List[Resources]]]
_UNLIMITED = Quota()


def held_on(agents: Sequence[AgentReport], ends: Mapping[str, Termination], plans: Iterable[Plan]) -> Holdings:
    """Return what each owner holds on each agent, from the ends of sessions, by ID, and the plans that hold something.

    It is every labelled container that the end of its session does not include, and every container that the store has placed
    and no engine shows yet.
    """
    found: Dict[Tuple[str, str], Tuple[str, Resources]] = {}
    for agent in agents:
        for observed in agent.containers:
            end = ends.get(observed.session)
            if end is None or not end.includes(observed):
                found[agent.name, observed.id] = (observed.label(label.OWNER), observed.resources)
    for plan in plans:
        for planned in plan.containers:
            found.setdefault((planned.agent, planned.id), (plan.session.owner, planned.resources))
    held: Holdings = {agent.name: {} for agent in agents}
    for (name, _id), (owner, resources) in found.items():
        held.setdefault(name, {}).setdefault(owner, []).append(resources)
    return held


def capacity_left(
    agents: Sequence[AgentReport], ends: Mapping[str, Termination], plans: Iterable[Plan]
) -> Dict[str, FreeCapacity]:
    """Return what is free on each agent, by its name."""
    held = held_on(agents, ends, plans)
    return {agent.name: free_of(agent, chain.from_iterable(held[agent.name].values())) for agent in agents}


def list_owners(rows: Sequence[SessionRecord], held: Holdings, asked: str | None = None) -> List[OwnerView]:
    """Every owner of a live session, and the one that is asked for, by name: sessions, containers and resources."""
    owners = {row.owner for row in rows} | {owner for booked in held.values() for owner in booked}
    owners |= {asked} if asked else set()
    waiting = Counter(row.owner for row in rows if row.state == states.PENDING)
    placed = Counter(row.owner for row in rows if row.state != states.PENDING)
    listed = []
    for owner in sorted(owners):
        mine = [resources for booked in held.values() for resources in booked.get(owner, ())]
        listed.append(OwnerView(owner, placed[owner], waiting[owner], len(mine), held_amounts(mine)))
    return listed


def list_groups(agents: Sequence[AgentView], owner: str | None, left: Quota = _UNLIMITED) -> List[GroupView]:
    """Every resource group of the agents of a list: its capacity, what is allocated of it, and the owner's part of that.

    An agent that cannot be reached adds nothing. ``left`` is what the quotas still leave to the owner: the owner may have the
    capacity at most, or what the owner has there and what is left.
    """
    listed = []
    for group in sorted({name for agent in agents for name in agent.groups}):
        mine = [agent for agent in agents if group in agent.groups]
        usable = [agent for agent in mine if agent.reachable]
        capacity = Amounts.sum_of(agent.capacity for agent in usable)
        own = Amounts.sum_of(agent.owners.get(owner, NO_AMOUNTS) for agent in usable) if owner else None
        used = Amounts.sum_of(agent.used for agent in usable)
        listed.append(GroupView(group, len(mine), capacity, used, own, left.most(capacity, own) if own else None))
    return listed


def available(policy: SitePolicy, use: Mapping[str, Use], agents: Sequence[AgentView], owner: str) -> Amounts:
    """Return what an owner may still have now: what is free in the permitted groups, at most what the quotas leave."""
    permitted = policy.limits_for(owner, "resource_groups")
    usable = [
        agent
        for agent in agents
        if agent.reachable
        and agent.schedulable
        and any(all(group in names for names in permitted) for group in agent.groups)
    ]
    left = quota_left(policy, use, owner)
    if 0 in (left.sessions, left.containers):
        return NO_AMOUNTS
    return left.most(Amounts.sum_of(agent.free for agent in usable))


def held_amounts(booked: Iterable[Resources]) -> Amounts:
    """The sum of what containers hold."""
    millicpus, memory, gpus = held_in_all(booked)
    return Amounts(millicpus, memory, round(gpus, 3))


def sample(agents: Sequence[AgentView], session_states: Sequence[str], now: float) -> Sample:
    """The sums over the agents of a list, and the number of sessions that are live and that wait."""
    usable = [agent for agent in agents if agent.reachable]
    measured = [agent.measured for agent in usable if agent.measured]
    percents = busy_percents(measured)
    return Sample(
        time=round(now, 3),
        capacity=Amounts.sum_of(agent.capacity for agent in usable),
        used=Amounts.sum_of(agent.used for agent in usable),
        measured=SampledUse(
            sum(each.millicpus for each in measured),
            sum(each.memory for each in measured),
            round(sum(percents) / len(percents), 1) if percents else None,
        ),
        live=sum(state != states.PENDING for state in session_states),
        waiting=sum(state == states.PENDING for state in session_states),
    )


def waits_on_mps(plan: Plan, others: Iterable[Plan], agents: Sequence[AgentReport]) -> List[str]:
    """A warning for each agent where MPS cannot serve the session and others at the same time: it serves one user ID at a time."""
    served = {agent.name for agent in agents if agent.gpu_sharing.kind == "mps"}
    mine, found = _with_parts(plan, served), []
    names: Dict[str, List[str]] = {}
    for other in others:
        if other.session.id != plan.session.id and other.session.user.uid != plan.session.user.uid:
            for agent in mine & _with_parts(other, served):
                names.setdefault(agent, []).append(f"{other.session.name} of {other.session.owner}")
    for agent in sorted(names):
        text = "%s: MPS serves one user ID at a time, and %s has another than session %s (%d): a program of one waits "
        text += "while one of the other uses the GPU; session_user gives sessions the same."
        found.append(text % (agent, shorten_list(sorted(names[agent]), 3), plan.session.name, plan.session.user.uid))
    return found


def _with_parts(plan: Plan, agents: Collection[str]) -> Set[str]:
    """The agents on which the session has a part of a GPU."""
    return {
        one.agent
        for one in plan.containers
        if one.agent in agents and any(gpu.shares < 1 for gpu in one.resources.gpus)
    }
