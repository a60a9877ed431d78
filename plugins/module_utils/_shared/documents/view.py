# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The list of sessions, as the head makes it and M(cluster.compute.session_info) returns it. Docs: docs/contracts.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, List, Mapping, Optional, Tuple

from ..codec import Document, Json, Number
from ..exits import NOT_BEGUN, PAUSED, UNMOVED
from ..states import PENDING, RUNNING
from .container_view import ContainerView, how_containers_ended, limit_reached
from .decision import Holder, StateChange
from .plan import Resources
from .report import BatchState, Measured
from .schema import AMOUNT, ID, PORT, RESOURCES, SHORT_NAME, a_flag, a_line, a_number, a_text, or_none, ruled, rules_of
from .step_documents import ContainerLog
from .usage import AgentView, Amounts, GroupView, OwnerView, Sample

_SECONDS = or_none(a_number)
# Characters of the reason of a state.
_LONGEST = 1 << 16


@dataclass(frozen=True)
class RoleView(Amounts):
    """The containers of a role: their number, and the amounts of each."""

    name: str = ruled(a_line, "")
    size: int = ruled(ID, 0)


@dataclass(frozen=True)
class AppView(Document):
    """An app that runs. Without a published port, ``address`` is empty and ``port`` 0."""

    name: str = ruled(SHORT_NAME)
    address: str = ruled(a_line)
    port: int = ruled(PORT)
    agent: str = ruled(a_line)


@dataclass(frozen=True)
class FolderView(Document):
    """A data folder of a session."""

    source: str = ruled(a_text)
    target: str = ruled(a_text)
    mode: str = ruled(a_line)


@dataclass(frozen=True)
class SessionView(Document):
    """A session in a list.

    ``reason`` is why it is in its state; of a session that runs, how its commands, apps and containers have ended. ``degraded``
    are the containers that it lacks, ``unhealthy`` its apps and commands that have failed. ``ends`` is the time at which its
    lifetime is over, and ``turn`` its place in the queue. ``folders`` is None if they are not known. ``request`` is that of a
    session that a pass may launch: the pass checks it by rules of its own.
    """

    id: str = ruled(a_line)
    name: str = ruled(a_line)
    owner: str = ruled(a_line)
    state: str = ruled(a_text)
    result: str = ruled(a_text, "")
    reason: str = ruled(a_text, "")
    priority: Number = ruled(a_number, 0)
    launch: str = ruled(a_line, "")
    holder: Optional[Holder] = ruled(or_none(rules_of(Holder)), None)
    created: Number = ruled(a_number, 0)
    changed: Number = ruled(a_number, 0)
    group: str = ruled(a_line, "")
    size: int = ruled(ID, 0)
    mode: str = ruled(a_line, "")
    image: str = ruled(a_text, "")
    gpus: Number = ruled(a_number, 0)
    each: Resources = ruled(RESOURCES, Resources)
    roles: Tuple[RoleView, ...] = ruled([rules_of(RoleView)], ())
    kind: str = ruled(a_line, "")
    started: Optional[Number] = ruled(_SECONDS, None)
    apps: Tuple[AppView, ...] = ruled([rules_of(AppView)], ())
    folders: Optional[Tuple[FolderView, ...]] = ruled(or_none([rules_of(FolderView)]), None)
    measured: Optional[Measured] = ruled(or_none(rules_of(Measured)), None)
    agents: Tuple[str, ...] = ruled([a_line], ())
    containers: Tuple[ContainerView, ...] = ruled([rules_of(ContainerView)], ())
    degraded: Tuple[str, ...] = ruled([SHORT_NAME], ())
    unhealthy: Tuple[str, ...] = ruled([a_line], ())
    command: Optional[BatchState] = ruled(or_none(rules_of(BatchState)), None)
    lifetime: int = ruled(AMOUNT, 0)
    idle_timeout: int = ruled(AMOUNT, 0)
    ends: Optional[Number] = ruled(_SECONDS, None)
    time_left: Optional[Number] = ruled(_SECONDS, None)
    overdue: bool = ruled(a_flag, False)
    held: bool = ruled(a_flag, False)
    turn: Optional[int] = ruled(or_none(ID), None)
    on_failure: str = ruled(a_line, "")
    on_lost: str = ruled(a_line, "")
    restarts: int = ruled(ID, 0)
    restarts_left: int = ruled(ID, 0)
    restart_waits: str = ruled(a_line, "")
    terminate_when_done: bool = ruled(a_flag, False)
    requested_here: bool = ruled(a_flag, False)
    fenced: Tuple[str, ...] = ruled([a_line], ())
    history: Tuple[StateChange, ...] = ruled([rules_of(StateChange)], ())
    request: Optional[Json] = ruled(or_none({}), None)
    logs: Tuple[ContainerLog, ...] = ruled([rules_of(ContainerLog)], ())

    @property
    def written(self) -> Mapping[str, Any]:
        """The document has roles only if the session has."""
        return {name: value for name, value in vars(self).items() if value or name != "roles"}

    @property
    def runs(self) -> bool:
        return self.state == RUNNING

    @property
    def waits(self) -> bool:
        return self.state == PENDING

    @property
    def limit_reached(self) -> str:
        """Why it has ended by itself; empty if it has not."""
        return limit_reached(self.containers)

    @property
    def amounts(self) -> Amounts:
        """The amounts of each container, which are equal without roles."""
        return Amounts(self.each.millicpus, self.each.memory, self.gpus)

    @property
    def paused(self) -> List[str]:
        return [one.hostname for one in self.containers if one.state == PAUSED]

    @property
    def what_happened(self) -> str:
        """The reason of its state. For a running session: how its commands, apps and containers ended, if they did."""
        if not self.runs:
            return self.reason
        if self.limit_reached:
            return self.limit_reached
        ends = how_containers_ended(self.containers)
        if self.command:
            going_on = "the command runs" if self.command.begun else NOT_BEGUN
            ends.append(self.command.end if self.command.has_ended else going_on)
        if not ends:
            return self.reason
        ends += [f"not restarted now: {self.restart_waits}"] if self.restart_waits else []
        # Agents say a part of it, and no text of theirs may be longer than a list permits.
        return "; ".join([*ends, *([self.reason] if self.reason.startswith(UNMOVED) else [])])[:_LONGEST]


@dataclass(frozen=True)
class SessionList(Document):
    """The sessions, oldest first, with the agents, groups and owners. ``time`` is when the list was made."""

    time: Number = ruled(a_number, 0)
    sessions: Tuple[SessionView, ...] = ruled([rules_of(SessionView)], ())
    agents: Tuple[AgentView, ...] = ruled([rules_of(AgentView)], ())
    groups: Tuple[GroupView, ...] = ruled([rules_of(GroupView)], ())
    owners: Tuple[OwnerView, ...] = ruled([rules_of(OwnerView)], ())
    samples: Tuple[Sample, ...] = ruled([rules_of(Sample)], ())
