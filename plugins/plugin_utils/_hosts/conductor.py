# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The hosts of a play, as the conductor reaches them: steps on the head and on agents, phases, and lines for people."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Callable, Dict, Generic, Iterator, List, Mapping, Sequence, Tuple, TypeVar
from uuid import uuid4

from ansible.errors import AnsibleConnectionFailure, AnsibleError

from ...module_utils._shared.codec import ModuleResult
from ...module_utils._shared.constants import SESSION_DIRS
from ...module_utils._shared.documents.decision import DecidedSession
from ...module_utils._shared.documents.plan import Plan
from ...module_utils._shared.errors import ComputeError, Failure
from . import notification, ssh_route, trace
from .call import Call
from .connection import OtherHosts
from .phases import PHASES, SILENT, containers_of
from .progress import phase_line
from .results import failure_of, joint_failure, one_line, unreachable
from .transfer_watch import TERMINAL, write_whole

if TYPE_CHECKING:
    from .action import ComputeAction

Result = TypeVar("Result")
# What hosts are asked, all alike or each by its name, and what carries it there.
Asked = Call[Result] | Callable[[str], Call[Result]]
Carrier = Callable[[str, Call[Any]], ModuleResult]


class StepError(ComputeError):
    """A step failed on hosts. The code of their joint failure decides what follows."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message, failure.where)
        self.code, self.trace = failure.code, failure.trace


@dataclass
class _Phase:
    """A phase in progress."""

    key: str
    message: str
    uuid: str = field(default_factory=lambda: str(uuid4()))
    begun: float = field(default_factory=time.monotonic)
    has_calls: bool = False


@dataclass(frozen=True)
class _Answer(Generic[Result]):
    """The answer of a host to a step."""

    result: Result | Failure
    warnings: Tuple[str, ...] = ()


class Play:
    """The hosts of a play. Their connections stay open until ``close``.

    ``names`` are the agents in the order of the play, ``head`` is the host of the session store, ``artifacts`` the directory of the
    controller for sessions, ``owner`` the owner that the user names, and ``state_dir`` the directory of the store.
    """

    def __init__(self, action: ComputeAction) -> None:
        self.action = action
        self.task_vars = action.task_vars
        self.names = [str(host) for host in self.task_vars.get("ansible_play_hosts_all") or ()]
        self.check, self.diff = bool(action._task.check_mode), bool(action._task.diff)
        self.head = action.head = str(self.value("session_head") or self._default_head())
        self.artifacts = str(self.value("session_artifacts") or SESSION_DIRS)
        self.owner = str(self.value("session_owner") or "")
        self.state_dir = str(self.value("session_state_dir") or "")
        # The session that an interrupted run may leave.
        self.session = ""
        # The sessions of its owner that wait, after an end.
        self.waiting = 0
        self.timings: Dict[str, float] = {}
        self.warnings: List[str] = []
        self.lines: List[str] = []
        # The hosts, for work that shows no phase.
        self.others = OtherHosts(action)
        self._phase = _Phase("record", "")

    def _default_head(self) -> str:
        groups = self.task_vars.get("groups") or {}
        return str((groups.get("head") or groups.get("agents") or self.names or [""])[0])

    def close(self) -> None:
        """Close the connections."""
        self.others.close()

    def forget_phase(self) -> None:
        """No phase is in progress any more."""
        with suppress(OSError):
            os.unlink(TERMINAL.phase)

    # Variables

    def value(self, name: str) -> Any:
        """An option or a variable of the task, templated; None if neither is set."""
        return self.action.value(name)

    def of_host(self, host: str, name: str) -> Any:
        """A variable of a host, templated; None if it is not set."""
        return self.others.host(host).value(name)

    def address_of(self, host: str) -> str:
        """The address at which the controller reaches a host of the inventory."""
        return ssh_route.address_of(host, self.task_vars, self.action._task)

    def route_to(self, host: str, address: str = "") -> ssh_route.Route:
        """The route of the controller's ssh to a host: the inventory may name jump hosts for it."""
        return ssh_route.route_to(host, address or self.address_of(host), self.task_vars, self.action._task)

    # Steps

    def try_on_each(
        self, hosts: Sequence[str], call: Asked[Result], carry: Carrier | None = None
    ) -> Dict[str, Result | Failure]:
        """The result of a step on each host, with the parameters for that host; a Failure if it fails or the host does not answer."""
        found = self.others.counted(hosts, lambda host: self._answer(host, call, carry or self.others.step))
        for answer in found.values():
            self.warn(*answer.warnings)
        return {host: answer.result for host, answer in found.items()}

    def on_each(self, hosts: Sequence[str], call: Asked[Result], carry: Carrier | None = None) -> Dict[str, Result]:
        """The result of a step on each of these hosts. Raises StepError if it fails on any."""
        found = self.try_on_each(hosts, call, carry)
        return succeeded(found)

    def counted(self, hosts: Sequence[str], call: Call[Result]) -> Dict[str, Result]:
        """The result of a step that counts bytes, for each of these hosts. Raises StepError if it fails on any."""
        return self.on_each(hosts, call, lambda host, one: self.others.host(host).counted_step(one))

    def on(self, host: str, call: Call[Result]) -> Result:
        """The result of a step on a host. Raises StepError if it fails."""
        return self.on_each([host], call)[host]

    def on_head(self, call: Call[Result]) -> Result:
        """The result of a step on the session store. Raises StepError if it fails."""
        return self.on(self.head, call.with_params(state_dir=self.state_dir) if self.state_dir else call)

    def answers(self, hosts: Sequence[str], call: Asked[Result]) -> Dict[str, Result | Failure]:
        """Return what each host answers, or a Failure. The trace has none of it: rounds ask again and again."""

        def answer(host: str) -> Result | Failure:
            found = self._answer(host, call, self.others.step, is_noted=False).result
            if isinstance(found, Failure) and found.cause:
                # The next round is the remedy.
                return replace(found, message=f"{host} cannot be reached: {found.cause}.")
            return found

        return dict(zip(hosts, self.others.each(hosts, answer)))

    def _answer(self, host: str, call: Asked[Result], carry: Carrier, *, is_noted: bool = True) -> _Answer[Result]:
        """The answer of a host to a step, as ``carry`` carries it there."""
        phase, begun = self._phase, time.time()
        try:
            asked = call if isinstance(call, Call) else call(host)
            found = carry(host, asked)
        except AnsibleConnectionFailure as error:
            return _Answer(unreachable(host, str(error)))
        except AnsibleError as error:
            return _Answer(Failure(f"{host}: {one_line(str(error))}"))
        steps = self.others.host(host).taken()
        if is_noted:
            self._note(phase, host, begun, steps)
            self.action._display.v(f"{host}: {asked.step} {time.time() - begun:.1f} s")
        warnings = tuple(found.pop("warnings", None) or ())
        if found.get("failed"):
            return _Answer(failure_of(found), warnings)
        try:
            return _Answer(asked.read(found, host), warnings)
        except ComputeError as error:
            return _Answer(error.failure, warnings)

    def _note(self, phase: _Phase, host: str, begun: float, steps: Sequence[trace.StepTime] = ()) -> None:
        """Note for the trace what has been done on a host since then."""
        phase.has_calls = True
        times = (begun, time.time())
        trace.note(trace.Entry(phase.uuid, phase.message, phase.key, host, *times, steps=tuple(steps)))

    # Phases

    @contextmanager
    def phase(self, key: str, plan: Plan | None = None) -> Iterator[None]:
        """Show a phase while the block runs, and its seconds at the end. After an interrupt, the callback shows it as interrupted."""
        outer, what = self._phase, containers_of(plan) if plan else "the containers"
        self._phase = _Phase(key, PHASES[key].message % {"what": what})
        self._announce()
        try:
            yield
        except Exception:
            self._end_phase(outer)
            raise
        self._end_phase(outer)

    def _end_phase(self, outer: _Phase) -> None:
        ended, seconds = self._phase, time.monotonic() - self._phase.begun
        if not ended.has_calls:
            self._note(ended, trace.CONTROLLER, time.time() - seconds)
        if PHASES[ended.key].timing:
            self.timings[PHASES[ended.key].timing] = round(seconds, 3)
        if ended.key not in SILENT:
            self.action._display.display(TERMINAL.clear + phase_line(ended.message, seconds), stderr=True)
        self._phase = outer
        self._announce()

    def _announce(self) -> None:
        """Leave the phase where the callback finds it: only the callback runs while this action does."""
        if TERMINAL.phase:
            shown = "" if self._phase.key in SILENT else self._phase.message
            with suppress(OSError):
                write_whole(TERMINAL.phase, f"{self._phase.begun}\n{self.session}\n{shown}")

    # For people

    def show(self, lines: Sequence[str]) -> None:
        """Lines of the result. With the callback of the collection, they appear at once; otherwise, a task shows them.

        A result has its difference before its lines, and Ansible shows it when the task has ended.
        """
        if TERMINAL.phase and not (self.check and self.diff):
            for line in lines:
                self.say(line)
        else:
            self.lines += lines

    def say(self, line: str) -> None:
        """A line that appears at once, with every callback."""
        self.action._display.display(TERMINAL.clear_result + line)

    def warn(self, *warnings: str) -> None:
        """Warn of each once; an empty text is no warning."""
        self.warnings += [str(warning) for warning in warnings if warning and warning not in self.warnings]

    def notify(self, event: str, *sessions: DecidedSession) -> None:
        notification.notify(self.action, [(event, session) for session in sessions])

    def notify_ends(self, sessions: Sequence[DecidedSession]) -> None:
        """Notify of sessions that have left the queue or ended by themselves, as the head has found."""
        events = [(notification.event_of(True, session.state), session) for session in sessions]
        notification.notify(self.action, events)


def succeeded(results: Mapping[str, Result | Failure]) -> Dict[str, Result]:
    """The results. Raises StepError if any is a failure."""
    failures = [result for result in results.values() if isinstance(result, Failure)]
    if failures:
        raise StepError(joint_failure(failures))
    return {host: result for host, result in results.items() if not isinstance(result, Failure)}
