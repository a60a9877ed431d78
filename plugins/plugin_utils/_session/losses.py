# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Agents that are lost under a session: removed from the Swarm before the session moves, and cleaned when they are back."""

from __future__ import annotations

from typing import List, Mapping

from ...module_utils._shared import label
from ...module_utils._shared.constants import HOST, MULTI_NODE
from ...module_utils._shared.documents.decision import FencedAgent, Loss
from ...module_utils._shared.errors import ComputeError, StateError
from .._hosts.conductor import Play
from .._hosts.steps import (
    CONTAINERS_ABSENT,
    CONTAINERS_STOPPED,
    QUEUE_CLEANED,
    QUEUE_FENCED,
    SWARM_DESCRIBE,
    SWARM_FENCE,
    SWARM_JOIN,
    SWARM_LEAVE,
)
from .removal import remove_containers
from .reports import Reports

_NOT_CLEANED = "What sessions have left on %s was not removed: %s The next pass tries again."
_NO_WITNESS = "No manager of a Swarm answers to confirm that the lost host is down, so no container is made elsewhere"
_OTHER_WITNESS = (
    "The managers that answer are of another Swarm than the lost host, and cannot confirm that it is down, "
    "so no container is made elsewhere"
)
_UNFENCED = "; if you know that its containers have ended, set session_relocate_unfenced: true for a pass."
_REMEDY = "run `docker swarm leave --force` there, and then provision_agents.yml."


def fence_nodes(play: Play, reports: Reports, loss: Loss, *, unfenced: bool = False) -> None:
    """Make sure that nothing of a session runs on its lost agents. Raises ComputeError if the Swarm has not lost them, too.

    With ``unfenced``, a session on one host moves without that: the user knows that its containers have ended.
    """
    swarms = {name: loss.swarms.get(name, "") for name in loss.nodes}
    managers = {swarm: _manager(reports, swarm) for swarm in sorted(set(swarms.values()))}
    if not all(managers.values()) and (loss.shared or not unfenced):
        why = _OTHER_WITNESS if any(one.reachable and one.place.manager for one in reports.agents) else _NO_WITNESS
        raise StateError(why + ("." if loss.shared else _UNFENCED), play.head)
    for swarm, manager in managers.items():
        nodes = {name: node for name, node in loss.nodes.items() if swarms[name] == swarm}
        if manager:
            with play.phase("fence"):
                play.on(manager, SWARM_FENCE(nodes=nodes, swarm_id=swarm, removes=loss.shared))


def clean_up(play: Play, reports: Reports, fenced: Mapping[str, FencedAgent]) -> None:
    """Remove old containers of sessions that have moved from agents that are back, and let these join their Swarm again."""
    # The store may name any host of the inventory: only agents of this play are cleaned.
    for agent in [name for name in play.names if name in fenced]:
        try:
            with play.phase("clean"):
                _clean(play, reports, agent, _fenced_now(play, reports, agent, fenced[agent]))
        except ComputeError as error:
            play.warn(_NOT_CLEANED % (agent, error.message))


def _fenced_now(play: Play, reports: Reports, agent: str, found: FencedAgent) -> FencedAgent | None:
    """Return what is still to clean of what was ``found``: another controller may have cleaned, and moved sessions back, meanwhile."""
    own = QUEUE_FENCED(agents=[report.to_json() for report in reports.agents if report.name == agent])
    now = play.on_head(own).fenced.get(agent)
    if now is None:
        return None
    return FencedAgent(
        tuple(one for one in found.sessions if one in now.sessions), found.rejoins and now.rejoins, now.swarm
    )


def _clean(play: Play, reports: Reports, agent: str, found: FencedAgent | None) -> None:
    if found is None:
        return
    sessions = list(found.sessions)
    if sessions:
        remove_containers(play, [agent], CONTAINERS_ABSENT(sessions=sessions, over=sessions, network=True))
    # None leaves a Swarm because the store says so: an agent that answers says itself that it is in none.
    known = [one for one in reports.agents if one.name == agent and one.reachable]
    rejoins = found.rejoins and any(not (one.swarm or one.place.managers) for one in known)
    node = _rejoin(play, reports, agent, found.swarm) if rejoins else ""
    play.on_head(QUEUE_CLEANED(agent=agent, sessions=sessions, node=node))
    removed = "its old containers of sessions that have moved are removed" if sessions else ""
    joined = "it has joined its Swarm again" if rejoins else ""
    if removed or joined:
        play.show([f"{agent} is back: {', and '.join(filter(None, (removed, joined)))}."])


def _rejoin(play: Play, reports: Reports, agent: str, swarm: str) -> str:
    """Join again, and return the ID of the new node.

    The Swarm has removed the node. What other sessions still run there on overlay networks is cut off: it is stopped first.
    """
    lead = _manager(reports, swarm)
    if not lead:
        raise StateError(f"No manager of its Swarm answers: {_REMEDY}", agent)
    cut_off = _sessions_on_overlays(reports, agent)
    if cut_off:
        play.on(agent, CONTAINERS_STOPPED(sessions=cut_off))
    known = play.on(lead, SWARM_DESCRIBE(tokens=True))
    play.on(agent, SWARM_LEAVE())
    join = SWARM_JOIN(
        addresses=[play.address_of(agent)],
        cluster=known.swarm.cluster_id,
        remote=known.swarm.address,
        token=known.tokens["worker"],
    )
    return play.on(agent, join).swarm.node_id


def _sessions_on_overlays(reports: Reports, agent: str) -> List[str]:
    found = [one for report in reports.agents if report.name == agent for one in report.containers]
    return sorted({one.session for one in found if one.label(label.MODE) == MULTI_NODE and one.network != HOST})


def _manager(reports: Reports, swarm: str) -> str:
    """A manager of a Swarm that answers; empty without one. If it is not known which Swarm, all managers must be of one."""
    found = {agent.name: agent.swarm for agent in reports.agents if agent.reachable and agent.place.manager}
    if not swarm and len(set(found.values())) > 1:
        return ""
    return next((name for name, own in found.items() if swarm in ("", own)), "")
