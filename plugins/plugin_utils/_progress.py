# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the callback C(progress) shows: phases with their duration, and the last failure of each host. No I/O."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Sequence, Set, Tuple

from ..module_utils._core.documents import Json
from ..module_utils._core.units import show_bytes
from . import _plan_text as plan_text

COLLECTION = "cluster.compute."
# Seconds without output after which a log gets a line.
SILENCE = 10.0
WIDTH = 44

CLEAR = "\r\x1b[2K"


@dataclass
class Terminal:
    """What actions must know of the callback. ``clear`` erases its live line: an action writes it before a line of its own.

    ``folder`` takes a file for each host on which a transfer is in progress: the bytes that have arrived, and all or 0.
    ``agents`` is a file for a task that works on many agents: how many have ended, and all.
    """

    clear: str = ""
    folder: str = ""
    agents: str = ""


# Set by the callback before Ansible forks the workers, which run the actions.
TERMINAL = Terminal()

# The phase that an action of the collection begins, by its state or step; an action that is not here belongs to the phase before it.
PHASES: Dict[Tuple[str, str], str] = {
    ("session_request", ""): "Checking the request",
    ("agent_info", ""): "Collecting agent reports",
    ("schedule", ""): "Placing the session",
    ("image", "present"): "Pulling the image",
    ("image_distribution", "fetch"): "Copying the image",
    ("image_distribution", "deliver"): "Copying the image",
    ("folder_marks", "present"): "Checking the data folders",
    ("network", "present"): "Creating {what}",
    ("containers", "created"): "Creating {what}",
    ("containers", "started"): "Starting {what}",
    ("verify", ""): "Verifying SSH to {what}",
    ("apps", ""): "Starting the apps",
    ("batch", "started"): "Running the command",
    ("batch_result", ""): "Running the command",
    ("session_exec", ""): "Running the command",
    ("session_copy", ""): "Copying files",
    ("logs_info", ""): "Reading logs",
    ("containers", "absent"): "Removing containers",
    ("session", "terminating"): "Ending the session",
}
# The phase of a task of these roles, if its action belongs to Ansible and does some work.
ROLES = {COLLECTION + "agent": "Preparing the agents", COLLECTION + "image": "Preparing the image"}
# The output of these actions is all that people see while they run.
ALONE = frozenset(("session_logs_info",))
IDLE = frozenset(("debug", "include_tasks", "validate_argument_spec"))


@dataclass(frozen=True)
class TaskFacts:
    """What is known of a task when it starts."""

    name: str
    action: str
    role: str = ""
    state: str = ""


@dataclass
class Progress:
    """The phases of a run. Times are seconds of one clock, which the caller reads."""

    started: float = 0.0
    phase: str = ""
    task: str = ""
    what: str = "the containers"
    session: str = ""
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
        if task.action[len(COLLECTION) :] in ALONE:
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
        if kind == "session_request" and own:  # the request of a launch is checked already
            return own
        if kind:
            return (PHASES.get((kind, task.state)) or PHASES.get((kind, "")) or "").format(what=self.what)
        return "" if task.action.rpartition(".")[2] in IDLE else own

    def end(self, now: float) -> List[str]:
        """The line of the phase in progress, with its seconds."""
        if not self.phase:
            return []
        line = f"{self.phase.ljust(WIDTH)} {now - self.begun:6.1f} s"
        self.phase, self.printed = "", now
        return [line]

    def begin_on(self, host: str) -> None:
        """A host begins the task."""
        self.running.add(host)
        self.hosts.add(host)

    def finish_on(self, host: str, result: Mapping[str, Any]) -> None:
        """A host has a result, which may say what is being launched."""
        self.running.discard(host)
        plan = plan_text.unpacked(result).get("plan")
        if isinstance(plan, dict) and isinstance(plan.get("containers"), list) and plan.get("session"):
            self.what, self.session = describe_plan(plan), str(plan["session"].get("name", ""))

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
        if not self.phase:
            return ""
        counts = (len(self.hosts) - len(self.running), len(self.hosts)) if len(self.hosts) > 1 else self.agents
        counted = " (%d of %d agents)" % counts if counts[1] > 1 else ""
        detail = ": " + self.task if self.phase in ROLES.values() else ""
        return "%s%s%s%s, %d s" % (self.phase, detail, counted, self._transferred(), now - self.begun)

    def _transferred(self) -> str:
        """The bytes of all transfers together, as ``, 40m of 512m``."""
        now, whole = (sum(amounts) for amounts in zip(*self.transfers)) if self.transfers else (0, 0)
        if not now and not whole:
            return ""
        return f", {show_bytes(now)} of {show_bytes(whole)}" if whole else f", {show_bytes(now)}"

    def heartbeat(self, now: float) -> List[str]:
        """A line for a log in which nothing has appeared for a while."""
        if not self.phase or now - max(self.printed, self.begun) < SILENCE:
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
        """What an interrupted run leaves, and how to go on."""
        during = " while it was %s" % (self.phase[:1].lower() + self.phase[1:]) if self.phase else ""
        if not self.session:
            return f"Interrupted{during}."
        return (
            f"Interrupted{during}. Session {self.session} may be left unfinished: run the same command again to continue, or end it "
            f"with terminate.yml -e session_name={self.session}."
        )


def describe_plan(plan: Json) -> str:
    """The containers of a plan in a few words, as ``16 containers on 3 agents``."""
    containers: Sequence[Json] = plan["containers"]
    agents = {container.get("agent") for container in containers}
    counted = "%d container%s" % (len(containers), "" if len(containers) == 1 else "s")
    return counted if len(agents) == 1 else "%s on %d agents" % (counted, len(agents))


def _failure_line(message: str, hosts: Sequence[str]) -> str:
    """A sentence that does not name its host gets the host in front."""
    if any(host in message for host in hosts) or hosts == ["localhost"]:
        return message
    return f"{', '.join(hosts)}: {message}"
