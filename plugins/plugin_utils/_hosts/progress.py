# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The texts of the callback C(progress): phases with their duration, and the last failure of each host. No I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, List, Sequence, Set, Tuple

from ...module_utils._shared.units import show_bytes
from .phases import PHASES

COLLECTION = "cluster.compute."
# Seconds without output after which a log gets a line.
SILENCE = 10.0
WIDTH = 44

CLEAR = "\r\x1b[2K"


# The phase that an action of the collection begins; an action that is not here belongs to the phase before it.
BEGUN_BY: Dict[str, str] = {
    "agent_info": PHASES["inform"].message,
    "session_exec": PHASES["command"].message,
    "session_copy": "Copying files",
}
# The phase of a task of these roles, if its action belongs to Ansible and does some work.
ROLES = {COLLECTION + "agent": "Preparing the agents", COLLECTION + "image": "Preparing the image"}
# The output of these actions and steps is all that people see while they run: some have phases of their own.
ALONE = frozenset(
    (
        "agent_check_info image.distribute policy_info session session_apps session_info session_logs_info session_queue usage_info"
    ).split()
)
IDLE = frozenset(("debug", "include_tasks", "validate_argument_spec"))


@dataclass(frozen=True)
class TaskFacts:
    """A task at its start. ``step`` is the step that it calls."""

    name: str
    action: str
    role: str = ""
    step: str = ""


@dataclass(frozen=True)
class Conducted:
    """The phase of a task that has phases of its own. ``session`` is the one that it launches."""

    phase: str = ""
    begun: float = 0.0
    session: str = ""


@dataclass
class Progress:
    """The phases of a run. Times are seconds of one clock, which the caller reads."""

    started: float = 0.0
    phase: str = ""
    task: str = ""
    conducted: Conducted = Conducted()
    begun: float = 0.0
    printed: float = 0.0
    is_finished: bool = False
    running: Set[str] = field(default_factory=set)
    hosts: Set[str] = field(default_factory=set)
    transfers: Sequence[Tuple[int, int]] = ()
    agents: Tuple[int, int] = (0, 0)
    failures: Dict[str, str] = field(default_factory=dict)
    of_session: Set[str] = field(default_factory=set)

    def start(self, task: TaskFacts, now: float) -> List[str]:
        """A task starts; returns the line of the phase that this ends, if it ends one."""
        self.task, self.running, self.hosts = task.name, set(), set()
        if {task.action[len(COLLECTION) :], task.step} & ALONE:
            return self.end(now)
        phase = self._phase_of(task)
        if not phase or phase == self.phase:
            return []
        lines = self.end(now)
        self.phase, self.begun = phase, now
        return lines

    def _phase_of(self, task: TaskFacts) -> str:
        kind = task.action[len(COLLECTION) :] if task.action.startswith(COLLECTION) else ""
        own = ROLES.get(task.role, "")
        if kind == "environments_info" and own:  # it chooses what the role builds
            return own
        if kind:
            return BEGUN_BY.get(kind, "")
        return "" if task.action.rpartition(".")[2] in IDLE else own

    def end(self, now: float) -> List[str]:
        """The line of the phase in progress, with its seconds."""
        if not self.phase:
            return []
        line = phase_line(self.phase, now - self.begun)
        self.phase, self.printed = "", now
        return [line]

    def begin_on(self, host: str) -> None:
        """A host begins the task."""
        self.running.add(host)
        self.hosts.add(host)

    def finish_on(self, host: str) -> None:
        """A host has a result."""
        self.running.discard(host)

    def fail_on(self, host: str, message: str, *, is_of_session: bool = False) -> None:
        """A host fails. A later failure of the same host explains more: it replaces this one.

        A failure of the session is one of every host, and of none in particular.
        """
        self.running.discard(host)
        self.failures[host] = message
        if is_of_session:
            self.of_session.add(message)

    def live(self, now: float) -> str:
        """The state of the phase in progress, for a terminal's last line."""
        phase, begun = self._in_progress()
        if not phase:
            return ""
        counts = (len(self.hosts) - len(self.running), len(self.hosts)) if len(self.hosts) > 1 else self.agents
        counted = " (%d of %d agents)" % counts if counts[1] > 1 else ""
        detail = ": " + self.task if phase in ROLES.values() else ""
        return "%s%s%s%s, %d s" % (phase, detail, counted, self._transferred(), now - begun)

    def _in_progress(self) -> Tuple[str, float]:
        """The phase in progress, and when it began."""
        return (self.conducted.phase, self.conducted.begun) if self.conducted.phase else (self.phase, self.begun)

    def _transferred(self) -> str:
        """The bytes of all transfers together, as ``, 40m of 512m``."""
        now, whole = (sum(amounts) for amounts in zip(*self.transfers)) if self.transfers else (0, 0)
        if not now and not whole:
            return ""
        return f", {show_bytes(now)} of {show_bytes(whole)}" if whole else f", {show_bytes(now)}"

    def heartbeat(self, now: float) -> List[str]:
        """A line for a log in which nothing has appeared for a while."""
        phase, begun = self._in_progress()
        if not phase or now - max(self.printed, begun) < SILENCE:
            return []
        self.printed = now
        return ["  … " + self.live(now)]

    def failure_lines(self) -> List[str]:
        """Each different failure once, with the hosts that have it."""
        by_message: Dict[str, List[str]] = {}
        for host, message in self.failures.items():
            by_message.setdefault(message, []).append(host)
        return [
            message if message in self.of_session else _failure_line(message, hosts)
            for message, hosts in by_message.items()
        ]

    def interrupted(self) -> str:
        """Return what an interrupted run leaves, and how to go on."""
        phase, session = self._in_progress()[0], self.conducted.session
        during = f" while it was {phase[:1].lower()}{phase[1:]}" if phase else ""
        if not session:
            return f"Interrupted{during}."
        return (
            f"Interrupted{during}. Session {session} may be left unfinished: run the same command again to continue, or end it "
            f"with terminate.yml -e session_name={session}."
        )


def phase_line(phase: str, seconds: float) -> str:
    """The line of a phase that has ended.

    >>> phase_line("Placing the session", 0.31)
    'Placing the session                             0.3 s'
    """
    return f"{phase.ljust(WIDTH)} {seconds:6.1f} s"


def _failure_line(message: str, hosts: Sequence[str]) -> str:
    """A sentence that does not name its host gets the host in front."""
    if any(host in message for host in hosts) or hosts == ["localhost"]:
        return message
    return f"{', '.join(hosts)}: {message}"
