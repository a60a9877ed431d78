# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A session that runs gets another size: what is added has a place at once, or the session stays as it is.

The new plan is recorded in the transaction that found the place, with a lease. Until the containers run, the holder in the row also
has the former size: a growth that fails goes back to it. A controller that is killed meanwhile leaves a session that lacks
containers or has too many. The next command with either size completes the change or undoes it.
"""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from dataclasses import replace
from typing import Tuple

from .._core.documents import Json
from .._core.errors import StateError
from .._core.model import Plan
from .._planning.allocation import check_folders
from .._planning.placement import Placement, Shortfall, usable_ports
from .._planning.policy_rules import check_policy, over_quota
from .._planning.request import Request
from .._planning.resizing import check_subnet, growth_demand, resized, with_size
from .quotas import by_owner, uses
from .row import Row
from .store import Store
from .turns import Context, Turns
from .usage import held_plans

_FORMER = "former_size"


def former_size(row: Row) -> int:
    """The size before a growth that has not ended; 0 if the session does not grow."""
    return int((row.holder or {}).get(_FORMER) or 0)


def held_with(holder: Json, former: int) -> Json:
    """The holder of a session, with its size before the growth that has not ended."""
    return {**holder, **({_FORMER: former} if former else {})}


def change_size(store: Store, row: Row, plan: Plan, request: Request, context: Context) -> Plan:
    """The plan in the size of the request, recorded under a lease. Raises a ComputeError if what is added has no place."""
    if request.roles:
        message = (
            "Session %s has roles, whose sizes do not change while it runs: end it, and launch it with other sizes."
        )
        raise StateError(message % row.name, row.name)
    former, present = former_size(row) or plan.session.size, plan.session.size
    added = _placed(store, row, plan, request, context) if request.size > present else None
    row.plan = resized(
        plan,
        request,
        *([added] if added else []),
        taken_names=context.taken_names,
        rdma_ports={agent.name: usable_ports(agent) for agent in context.agents},
    )
    row.request, row.lease = request, context.now + context.lease
    row.holder = held_with(context.holder, former if request.size > former else 0)
    store.note(row, context.now, "the size was changed from %d to %d" % (present, request.size))
    store.book(row, context.now, again=True)
    return row.plan


def go_back(store: Store, row: Row, now: float) -> None:
    """After a growth that has failed, the session has its former size again."""
    size = former_size(row)
    if size and row.request and row.plan:
        row.request = with_size(row.request, size)
        row.plan = resized(row.plan, row.request, launch=row.launch)
        store.book(row, now, again=True)


def strangers(row: Row, plan: Plan, context: Context) -> Tuple[Tuple[str, str], ...]:
    """The hostname and the agent of each container of the session that its plan does not have."""
    known = {container.id for container in plan.containers}
    found = ((agent.name, one) for agent in context.agents for one in agent.containers if one.session == row.id)
    return tuple((one.hostname, agent) for agent, one in found if one.id not in known)


def _placed(store: Store, row: Row, plan: Plan, request: Request, context: Context) -> Placement:
    """The place of the containers that are added, behind all sessions that come before a new one in the queue."""
    check_policy(context.site, request)
    check_subnet(request, plan)
    own = replace(row, created=context.now)
    demand = growth_demand(request, plan, context.agents)
    turns = Turns(store, held_plans(store), context, [(own, request)], {row.id: demand})
    reason = over_quota(context.site, by_owner(uses(store, context.agents), {row.id}), request)
    found = turns.outcome(row.id)
    if reason or isinstance(found, Shortfall):
        raise StateError(_refusal(plan, request, reason or getattr(found, "reason", ""), is_full=not reason), row.name)
    check_folders(request, replace(found, agents=(*plan.agents, *found.agents)), context.agents)
    return found


def _refusal(plan: Plan, request: Request, reason: str, *, is_full: bool) -> str:
    """Why a session does not grow, and what to do."""
    message = "Session %s keeps its %d containers: %s."
    text = message % (request.name, plan.session.size, reason.rstrip("."))
    if is_full and plan.network.driver == "bridge":
        text += (
            " Its network is a bridge, which ends at %s; to use other agents, too, end the session, and launch it with "
            "session_cluster_size %d and session_cluster_mode multi-node." % (plan.main.agent, request.size)
        )
    return text
