# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The decision of the head about a session, as the head returns it and as a controller validates it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Mapping, Optional, Tuple

from ..codec import Document, Json, Number, decoded
from ..constants import LONGEST_GRACE
from ..errors import StateError
from .plan import Plan
from .schema import (
    AGENT,
    HOSTNAME,
    ID,
    MOST,
    SHORT_NAME,
    UUID,
    a_flag,
    a_line,
    a_number,
    a_text,
    by_name,
    in_order,
    matching,
    or_none,
    ruled,
    rules_of,
    whole,
)


@dataclass(frozen=True)
class StateChange(Document):
    """A change of a session, or a note about it, whose states are equal."""

    time: Number = ruled(a_number)
    before: str = ruled(a_text)
    after: str = ruled(a_text)
    reason: str = ruled(a_text)


@dataclass(frozen=True)
class Holder(Document):
    """A process on a controller. ``start`` is its start time; ``machine`` is the boot and the PID namespace that ``pid`` belongs to.

    ``former_sizes`` are the sizes of the session before a growth that has not ended. A holder without a process is not known.
    """

    host: str = ruled(a_line, "")
    machine: str = ruled(a_line, "")
    user: str = ruled(a_line, "")
    start: str = ruled(a_line, "")
    pid: int = ruled(ID, 0)
    former_sizes: Tuple[int, ...] = ruled([ID], ())

    @property
    def written(self) -> Mapping[str, Any]:
        return {name: value for name, value in vars(self).items() if value or name != "former_sizes"}

    @property
    def text(self) -> str:
        """Return the holder for people."""
        return f"{self.user}@{self.host} (process {self.pid})" if self.pid else "another controller"


@dataclass(frozen=True)
class DecidedSession(Document):
    """The session of a decision. ``data`` is its whole document, which results and ``session.json`` show."""

    id: str = ruled(UUID)
    name: str = ruled(a_line)
    launch: str = ruled(a_line, "")
    holder: Optional[Holder] = ruled(or_none(rules_of(Holder)), None)
    owner: str = ruled(a_line, "")
    group: str = ruled(a_line, "")
    state: str = ruled(a_line, "")
    result: str = ruled(a_text, "")
    reason: str = ruled(a_text, "")
    data: Json = field(default_factory=dict, compare=False)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> DecidedSession:
        return decoded(cls, {**data, "data": dict(data)})

    def to_json(self) -> Json:
        return dict(self.data)


@dataclass(frozen=True)
class FencedAgent(Document):
    """An agent that may have old containers of ``sessions`` that have moved. If it ``rejoins``, its Swarm has removed it meanwhile."""

    sessions: Tuple[str, ...] = ruled([UUID])
    rejoins: bool = ruled(a_flag)
    swarm: str = ruled(a_line)


FENCED = by_name(AGENT, rules_of(FencedAgent))


@dataclass(frozen=True)
class Decision(Document):
    """A decision of the head about a request.

    ``outcome`` is ``placed``, ``pending``, ``failed``, ``running`` (nothing is missing), ``repair`` or ``held`` (another
    controller works on the session). ``missing`` are hostnames to repair, ``remove`` the IDs of ended sessions that still
    hold something. ``new_limits``: lifetime and idle timeout, if the request has them with another
    value than the running session, ``has_next_command``: another batch command, which runs now.
    ``former_size`` is 0 unless a size changes; ``added`` are the containers that the session did not have before, ``removed`` the
    hostnames and agents of those that are not in the plan any more. ``moves`` are the containers that get another agent, and
    ``fenced`` the agents that may have old containers; ``restarts_all``: all containers are stopped first. ``failed_apps`` start
    again, and ``ended_apps`` are of roles that were removed. ``ended`` are the sessions that have ended meanwhile, and
    ``ended_folders`` the controller's directories whose sessions have ended.
    """

    outcome: str = ruled(matching("placed|pending|failed|running|repair|held"))
    session: DecidedSession = ruled(rules_of(DecidedSession))
    reason: str = ruled(a_text, "")
    missing: Tuple[str, ...] = ruled([HOSTNAME], ())
    added: Tuple[str, ...] = ruled([HOSTNAME], ())
    removed: Tuple[Tuple[str, str], ...] = ruled([in_order(a_line, AGENT)], ())
    moves: Tuple[Tuple[str, str, str], ...] = ruled([in_order(HOSTNAME, AGENT, AGENT)], ())
    failed_apps: Tuple[str, ...] = ruled([SHORT_NAME], ())
    ended_apps: Tuple[str, ...] = ruled([SHORT_NAME], ())
    new_limits: Tuple[str, ...] = ruled([SHORT_NAME], ())
    remove: Tuple[str, ...] = ruled([UUID], ())
    former_size: int = ruled(whole(MOST), 0)
    fenced: Mapping[str, FencedAgent] = ruled(FENCED, dict)
    # The plan has rules of its own. A controller takes the rest as it is.
    plan: Optional[Plan] = None
    changed: bool = False
    is_new: bool = False
    has_next_command: bool = False
    restarts_all: bool = False
    ended: Tuple[DecidedSession, ...] = ruled(or_none([rules_of(DecidedSession)]), ())
    ended_folders: Tuple[str, ...] = ()

    def to_json(self) -> Json:
        plan = self.plan.to_short_json() if self.plan else None
        document = Document.to_json(replace(self, plan=None))
        return {**document, "session": self.session.to_json(), "plan": plan}


@dataclass(frozen=True)
class Loss(Document):
    """A session that has lost agents: it ends, it is to move (``relocate``), or it stays, because no agent has room.

    ``nodes`` and ``swarms`` belong to the lost agents. The network of a ``shared`` session is an overlay.
    """

    id: str = ruled(UUID)
    name: str = ruled(a_line)
    owner: str = ruled(a_line)
    action: str = ruled(matching("end|relocate|stay"))
    reason: str = ruled(a_text)
    nodes: Mapping[str, str] = ruled(by_name(AGENT, a_line))
    swarms: Mapping[str, str] = ruled(by_name(AGENT, a_line))
    shared: bool = ruled(a_flag)


@dataclass(frozen=True)
class Upkeep(Document):
    """Findings of the head at the beginning of a pass: sessions with lost agents, agents that are back, and degraded sessions."""

    lost: Tuple[Loss, ...] = ruled([rules_of(Loss)], ())
    fenced: Mapping[str, FencedAgent] = ruled(FENCED, dict)
    degraded: Tuple[DecidedSession, ...] = ruled([rules_of(DecidedSession)], ())
    ended_folders: Tuple[str, ...] = ruled([a_text], ())


@dataclass(frozen=True)
class BegunPass(Document):
    """An answer to the beginning of a pass: if it has not ``begun``, ``holder`` is the controller of another pass of the owner."""

    begun: bool = ruled(a_flag, False)
    holder: Optional[Holder] = ruled(or_none(rules_of(Holder)), None)
    summary: Tuple[str, ...] = ruled([a_text], ())


@dataclass(frozen=True)
class QueueRound(Document):
    """A round of a pass. ``fitting`` are the sessions to launch, ``remove`` the IDs of ended ones that still hold something.

    ``tried`` are sessions that the pass has tried to launch, and ``ended`` have left the queue or ended meanwhile.
    """

    fitting: Tuple[Json, ...] = ruled([{}], ())
    tried: Tuple[str, ...] = ruled([a_line], ())
    is_last: bool = ruled(a_flag, False)
    remove: Tuple[str, ...] = ruled([UUID], ())
    ended: Tuple[DecidedSession, ...] = ruled([rules_of(DecidedSession)], ())
    summary: Tuple[str, ...] = ruled([a_text], ())


@dataclass(frozen=True)
class Recorded(Document):
    """The head's record about a session, which is None if there is none: its state may have ``changed``.

    ``remove`` are the IDs of ended sessions that still hold something, ``ended`` are sessions that have ended meanwhile, and
    ``waiting`` is the number of the owner's sessions that wait. ``grace`` is the session's own, in seconds.
    """

    session: Optional[DecidedSession] = ruled(or_none(rules_of(DecidedSession)), None)
    changed: bool = ruled(a_flag, False)
    ended: Tuple[DecidedSession, ...] = ruled([rules_of(DecidedSession)], ())
    ended_folders: Tuple[str, ...] = ruled([a_text], ())
    remove: Tuple[str, ...] = ruled([UUID], ())
    waiting: int = ruled(ID, 0)
    grace: int = ruled(whole(LONGEST_GRACE), 0)

    @property
    def known(self) -> DecidedSession:
        """The session. Raises StateError if the head does not have it."""
        if self.session is None:
            raise StateError("The head has no such session any more: run the same command again.")
        return self.session
