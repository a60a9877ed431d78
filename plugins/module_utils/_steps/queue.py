# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps of a pass over the queue of an owner."""

from __future__ import annotations

import time
from typing import Sequence

from .._head import queue_pass
from .._head.kept_logs import remove_logs, surplus_logs
from .._head.listing import list_agents
from .._head.losses import losses, note_agents, unfence
from .._head.maintenance import expired, removable, retire
from .._head.queue_pass import note_degraded
from .._head.relocation import to_clean
from .._head.session_record import SessionRecord
from .._head.snapshot import Context
from .._head.store import Store
from .._head.usage import held_on, sample
from .._shared.codec import Json, subset
from .._shared.documents.decision import BegunPass, Holder, QueueRound, Upkeep
from .._shared.documents.step_documents import Change
from .._shared.planning.request import Request
from .._shared.planning.swarm_plan import read_agents
from .._shared.states import ERROR, LIVE, PENDING, RUNNING
from .._shared.text.summaries import waiting_summary
from .step import Head


def begin(head: Head, owner: str, holder: Holder, lease: int, takeover: bool = False) -> BegunPass:
    """Begin a pass, if C(begun): an owner has one pass at a time. C(holder) is the controller of another pass."""
    with Store.opened(head.directory, read_only=head.check) as store:
        other = queue_pass.begin(store, owner, holder, time.time(), lease, takeover=takeover)
    if other is None:
        return BegunPass(begun=True)
    line = f"A pass over the queue of {owner} is in progress by {other.text}: it launches what fits now."
    return BegunPass(holder=other, summary=(line,))


def decide(
    head: Head,
    owner: str,
    holder: Holder,
    agents: Sequence[Json],
    tried: Sequence[str],
    queue_policy: str,
    queue_age_bound: int,
    lease: int,
) -> QueueRound:
    """Decide about all waiting sessions in one transaction: C(fitting) are those that fit, C(is_last) if none does."""
    rules = (queue_policy, queue_age_bound)
    context = Context.on_head(head.directory, rules, agents=read_agents(agents), holder=holder, lease=float(lease))
    with Store.opened(head.directory, read_only=head.check) as store:
        live = store.ids({PENDING, RUNNING})
        found = queue_pass.decide(store, owner, list(tried), context)
        ended = [store.get(session) for session in sorted(live - store.ids(LIVE))]
        failed = [other for other in ended if other and other.state == ERROR]
        given_up = [f"Session {other.name} of {other.owner}: ERROR, {other.reason}" for other in failed]
        return QueueRound(
            fitting=tuple(_session(row, row.request) for row in found.fitting if row.request),
            tried=(*tried, *(row.id for row in found.fitting)),
            is_last=found.is_last,
            remove=tuple(removable(store, context.agents)),
            ended=tuple(other.decided for other in ended if other),
            summary=(*given_up, *([] if found.fitting else waiting_summary(found.waiting))),
        )


def _session(row: SessionRecord, request: Request) -> Json:
    """A session for the steps that launch it."""
    return {**subset(row, "id", "name", "owner", "state"), "request": request.to_json()}


def end(head: Head, owner: str, holder: Holder) -> Change:
    """End the pass."""
    with Store.opened(head.directory, read_only=head.check) as store:
        queue_pass.end(store, owner, holder)
    return Change()


def maintain(
    head: Head, owner: str, agents: Sequence[Json], keep_days: int, keep_logs: int, folders: Sequence[str] = ()
) -> Upkeep:
    """Record the use of the agents and degraded sessions, and remove what is old: sessions after days, logs over C(keep_logs) bytes.

    C(lost) are the sessions that end or move because an agent is lost, C(fenced) the agents that have old containers to remove.
    """
    now = time.time()
    reports = read_agents(agents)
    with Store.opened(head.directory, read_only=head.check) as store:
        live = store.live()
        held = held_on(reports, store.ends_on(reports), store.held_plans())
        store.add_sample(sample(list_agents(held, reports), [row.state for row in live], now))
        degraded = note_degraded(store, reports, owner, now)
        note_agents(store, reports, now)
        lost = losses(store, reports, owner, now)
        to_remove = to_clean(store.fences(), store.swarms(), reports)
        retired = expired(store, reports, now, keep_days)
        retire(store, retired, now)
        ended_folders = store.ended(folders)
    # After the transaction: a launch does not wait for the removal of files.
    surplus = surplus_logs(head.directory, {row.id for row in live}, keep_logs)
    if not head.check:
        remove_logs(head.directory, [*retired, *surplus])
    return Upkeep(tuple(lost), to_remove, tuple(row.decided for row in degraded), tuple(ended_folders))


def fenced(head: Head, agents: Sequence[Json]) -> Upkeep:
    """Return which of these agents have old containers to remove, right before they are removed."""
    with Store.opened(head.directory, read_only=True) as store:
        return Upkeep(fenced=to_clean(store.fences(), store.swarms(), read_agents(agents)))


def cleaned(head: Head, agent: str, sessions: Sequence[str], node: str = "") -> Change:
    """An agent has nothing of these sessions any more: they may be placed there again. C(node) is new if it has joined again."""
    with Store.opened(head.directory, read_only=head.check) as store:
        unfence(store, agent, sessions, node)
    return Change()
