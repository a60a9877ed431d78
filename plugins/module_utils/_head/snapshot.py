# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ground of a decision of the head: the context of the call, and the store at one moment. Nothing here changes."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any, Collection, Dict, Iterable, List, Mapping, Tuple

from .._shared.documents.decision import Holder
from .._shared.documents.plan import Plan
from .._shared.documents.report import AgentReport
from .._shared.planning.fair_share import Holding
from .._shared.planning.policy import Policy, SitePolicy
from .._shared.planning.request import Request
from .._shared.states import HOLDING, PENDING
from .policy_file import read_policy
from .session_record import Fence, Requester, SessionRecord, Termination


@dataclass(frozen=True)
class Context:
    """The context of a decision: the agents' reports, the caller, and the time.

    ``now`` is in seconds since the epoch, ``lease`` in seconds. ``takeover`` is the launch of a controller that is known
    to be gone. ``site`` is the policy of the site. ``kept`` is the ID of the session that the controller's folder of this name
    belongs to, if there is one. ``queued`` is the ID of a session that waits or runs: none takes its place if it has ended. With
    ``refuses_impossible``, a new session that the agents could never hold is refused. With ``relocates``, the lost
    agents of the session are fenced: it may move. ``requester`` is the login of this process on the head.
    """

    agents: Tuple[AgentReport, ...]
    holder: Holder
    now: float
    policy: Policy = field(default_factory=Policy)
    lease: float = 600.0
    takeover: str = ""
    kept: str = ""
    queued: str = ""
    relocates: bool = False
    refuses_impossible: bool = False
    site: SitePolicy = field(default_factory=SitePolicy)
    requester: Requester = field(default_factory=Requester.of_this_process)

    @classmethod
    def on_head(cls, folder: str, rules: Tuple[str, float], **more: Any) -> Context:
        """Prepare a decision on the store of a directory. The site's policy has precedence over these rules of the queue."""
        site, (order, age_bound) = read_policy(folder), rules
        bound = age_bound if site.queue.age_bound is None else site.queue.age_bound
        policy = Policy(site.queue.policy or order, float(bound), site.queue)
        return cls(now=time.time(), policy=policy, site=site, **more)

    @property
    def taken_names(self) -> Mapping[str, Collection[str]]:
        """The names that containers without a session have on each agent."""
        return {agent.name: agent.names for agent in self.agents}


@dataclass(frozen=True)
class Kept:
    """The session that a controller has files of under the name of a launch; ``owner`` is empty if this head does not know it."""

    id: str = ""
    owner: str = ""
    has_ended: bool = False


@dataclass(frozen=True)
class Snapshot:
    """The store at one moment.

    ``sessions`` are those that have not ended, oldest first. ``ends`` are the ends of sessions that still have containers, by
    ID, and ``newest`` the newest sessions of names that others wait for, by owner and name. ``requesters`` have requested
    the sessions that wait, ``holdings`` is what sessions have held if the site weighs it, ``silent`` since when agents have not
    answered, ``nodes`` the nodes of agents, and ``swarms`` the Swarms of nodes.
    """

    context: Context
    sessions: Tuple[SessionRecord, ...]
    ends: Mapping[str, Termination]
    newest: Mapping[Tuple[str, str], SessionRecord | None]
    requesters: Mapping[str, Requester]
    holdings: Tuple[Holding, ...]
    silent: Mapping[str, float]
    nodes: Mapping[str, str]
    swarms: Mapping[str, str]
    fences: Tuple[Fence, ...]
    kept: Kept

    def find(self, request: Request) -> SessionRecord | None:
        """The session of the name of a request, with its history if the snapshot was made for it."""
        return next((row for row in self.sessions if row.is_of(request)), None)

    def having(self, row: SessionRecord) -> Snapshot:
        """The snapshot as it would be with this form of a session, or with a new session."""
        is_known = any(one.id == row.id for one in self.sessions)
        sessions = [row if one.id == row.id else one for one in self.sessions]
        newest = self.newest if is_known else {**self.newest, (row.owner, row.name): row}
        return replace(self, sessions=(*sessions, *(() if is_known else (row,))), newest=newest)

    def on(self, agents: Iterable[AgentReport]) -> Snapshot:
        """The snapshot with other reports."""
        return replace(self, context=replace(self.context, agents=tuple(agents)))

    @property
    def pending(self) -> List[SessionRecord]:
        return [row for row in self.sessions if row.state == PENDING]

    @property
    def waiting(self) -> List[Tuple[SessionRecord, Request]]:
        """The sessions that wait, with their requests."""
        return [(row, row.request) for row in self.pending if row.request]

    @property
    def holding(self) -> List[SessionRecord]:
        """The sessions that hold what they were placed on."""
        return [row for row in self.sessions if row.state in HOLDING]

    @property
    def held_plans(self) -> List[Plan]:
        return [row.plan for row in self.holding if row.plan]

    def fences_of(self, agents: Iterable[str], session: str) -> Tuple[Fence, ...]:
        """Fences between a session and agents."""
        return tuple(Fence(name, session, self.nodes.get(name, "")) for name in agents)

    def awaited_by(self, row: SessionRecord, request: Request) -> Dict[str, SessionRecord | None]:
        """The sessions that a session waits for, by name."""
        return {name: self.newest.get((row.owner, name)) for name in request.after}
