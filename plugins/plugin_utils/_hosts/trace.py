# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the time of a launch goes: ``trace.json`` beside ``session.json``, and one sentence of it.

Every action notes its begin and its end in a file of Ansible's temporary directory, which all workers of this ansible-playbook
share. The step that records the running session reads it. The file ends with Ansible.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any, Dict, List, Sequence, Tuple

from ansible import constants

from ...module_utils._shared.codec import Document, Json
from ...module_utils._shared.documents.plan import Plan
from .phases import PHASES, counted_containers

NAME = "trace.json"
# The host of an entry about what the controller does itself.
CONTROLLER = "controller"
_NOTES = "cluster-compute-trace"
# The sentence names the longest steps.
_MOST_STEPS = 5
_MICRO = 1000000


@dataclass(frozen=True)
class StepTime(Document):
    """A step on a host: its end and its seconds by the clock of the controller, and its requests to the engine.

    A request has its seconds after the begin, its seconds, what was asked, and the container or an empty text.
    """

    name: str
    ended: float
    duration: float
    calls: Tuple[Tuple[Any, ...], ...] = ()


@dataclass(frozen=True)
class Entry(Document):
    """The work of a task, or of a phase of an action, on a host, with the times of its begin and its end."""

    uuid: str
    task: str
    action: str
    host: str
    begun: float
    ended: float
    state: str = ""
    steps: Tuple[StepTime, ...] = ()

    @property
    def seconds(self) -> float:
        return self.ended - self.begun


def note(entry: Entry) -> None:
    """Append an entry; a trace that cannot be written is no failure of the task."""
    try:
        handle = os.open(_path(), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "ab", buffering=0) as file:
            # One write, so that the lines of several workers do not mix.
            file.write((json.dumps(entry.to_json(), separators=(",", ":")) + "\n").encode())
    except (OSError, TypeError, ValueError):
        return


def notes() -> List[Entry]:
    """The entries of this ansible-playbook until now; a line that is not complete is left out."""
    found: List[Entry] = []
    try:
        with open(_path(), "rb") as file:
            lines = file.read().splitlines()
    except OSError:
        return found
    for line in lines:
        try:
            found.append(Entry.from_json(json.loads(line)))
        except (TypeError, ValueError):
            continue
    return found


def forget() -> None:
    """Begin again: the trace of another session of this ansible-playbook contains its own tasks."""
    try:
        os.unlink(_path())
    except OSError:
        return


def _path() -> str:
    return os.path.join(str(constants.DEFAULT_LOCAL_TMP), _NOTES)


def trace_document(entries: Sequence[Entry]) -> Json:
    """The trace in the format of Chrome's and Perfetto's viewers: a process for each host, a row for each container.

    A module's requests have the times of the host's clock, relative to the module's begin. They are placed so that the
    module ends with its task.
    """
    ordered = sorted(entries, key=lambda entry: entry.begun)
    origin = ordered[0].begun if ordered else 0.0
    rows = _Rows()
    events: List[Json] = []
    for begun, ended, task in _tasks(ordered):
        events.append(_event(task[0].task, "phase", (begun - origin, ended - begun), rows.of("playbook", "phases")))
    for entry in ordered:
        arguments = {"action": entry.action, "state": entry.state}
        where = rows.of(entry.host, "tasks")
        events.append(_event(entry.task, "task", (entry.begun - origin, entry.seconds), where, arguments))
        for step in entry.steps:
            start = max(entry.begun, step.ended - step.duration) - origin
            events.append(_event(step.name, "step", (start, step.duration), where))
            for after, took, what, subject in step.calls:
                place = rows.of(entry.host, subject or "engine")
                events.append(_event(what, "engine", (start + after, took), place))
    return {"displayTimeUnit": "ms", "traceEvents": rows.names() + events}


class _Rows:
    """The numbers of hosts and of their rows, in the order in which they appear."""

    def __init__(self) -> None:
        self._known: Dict[str, Dict[str, int]] = {}

    def of(self, host: str, row: str) -> Tuple[int, int]:
        rows = self._known.setdefault(host, {})
        return list(self._known).index(host) + 1, rows.setdefault(row, len(rows) + 1)

    def names(self) -> List[Json]:
        """The events that name them."""
        named: List[Json] = []
        for host, rows in self._known.items():
            process = self.of(host, next(iter(rows)))[0]
            named.append({"ph": "M", "name": "process_name", "pid": process, "args": {"name": host}})
            for row, number in rows.items():
                named.append({"ph": "M", "name": "thread_name", "pid": process, "tid": number, "args": {"name": row}})
        return named


def _event(
    name: str, kind: str, times: Tuple[float, float], place: Tuple[int, int], arguments: Json | None = None
) -> Json:
    """A complete event; times are seconds."""
    begun, seconds = (round(value * _MICRO) for value in times)
    event: Json = {"name": name, "cat": kind, "ph": "X", "ts": begun, "dur": seconds, "pid": place[0], "tid": place[1]}
    return {**event, "args": arguments} if arguments else event


def _tasks(entries: Sequence[Entry]) -> List[Tuple[float, float, List[Entry]]]:
    """The tasks in their order, each with its begin, its end and its hosts: all hosts end a task before the next begins."""
    tasks: Dict[str, List[Entry]] = {}
    for entry in entries:
        tasks.setdefault(entry.uuid, []).append(entry)
    found = [(min(one.begun for one in task), max(one.ended for one in task), task) for task in tasks.values()]
    return sorted(found, key=lambda task: task[0])


def explanation(entries: Sequence[Entry], plan: Plan) -> str:
    """The critical path in one sentence: the longest steps, each with its slowest host, and what lies outside of these tasks."""
    steps = _tasks(entries)
    if not steps:
        return ""
    total = max(ended for _begun, ended, _task in steps) - steps[0][0]
    ranked = sorted(steps, key=lambda step: step[0] - step[1])
    parts = [f"{ended - begun:.1f} s {_doing(task, plan)}" for begun, ended, task in ranked[:_MOST_STEPS]]
    rest = ranked[_MOST_STEPS:]
    if rest:
        parts.append("%.1f s in %d other tasks" % (sum(ended - begun for begun, ended, _task in rest), len(rest)))
    between = max(0.0, total - sum(ended - begun for begun, ended, _task in steps))
    return f"{total:.1f} s: {', '.join(parts)}, {between:.1f} s outside of these tasks."


def _doing(task: List[Entry], plan: Plan) -> str:
    """Return what a step does, and on which host it takes longest."""
    slowest = max(task, key=lambda entry: entry.seconds)
    phase = PHASES.get(slowest.action)
    if phase is None:
        return f'in "{slowest.task}"'
    here, everywhere = counted_containers(len(plan.on(slowest.host))), counted_containers(plan.session.size)
    words = phase.doing % {"here": here, "all": everywhere}
    return words if slowest.host == CONTROLLER else f"{words} on {slowest.host}"


def task_entry(task: Any, host: str, times: Tuple[float, float], steps: Sequence[StepTime]) -> Entry:
    """The entry of a task on a host. The arguments of the task are not in it, except the state."""
    state = task.args.get("state")
    shown = state if isinstance(state, str) else ""
    return Entry(str(task._uuid), str(task.name or task.action), str(task.action), host, *times, shown, tuple(steps))
