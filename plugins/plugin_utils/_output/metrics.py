# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A list of sessions and agents as metrics, in a text that both OpenMetrics and node_exporter's textfile collector read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, Iterable, List, Mapping, Sequence, Tuple

from ...module_utils._shared.documents.schema import a_number
from ...module_utils._shared.documents.usage import AgentView, Amounts
from ...module_utils._shared.documents.view import SessionList, SessionView
from ...module_utils._shared.errors import escape_control
from ...module_utils._shared.states import LIVE, RUNNING, SCHEDULED
from ...module_utils._shared.text.table import busy_gpus

PREFIX = "cluster_compute_"
Value = Callable[[Any], Any]


@dataclass(frozen=True)
class Metric:
    """A gauge of each subject: ``value`` returns None for a subject without it. With ``is_age``, the value is when something began."""

    name: str
    help: str
    value: Value
    labels: Tuple[str, ...] = ()
    is_age: bool = False


@dataclass(frozen=True)
class _Subject:
    """A thing that metrics are about, with the values of all labels that they may have."""

    labels: Mapping[str, str]
    value: Any


def _of_all(session: SessionView) -> Amounts:
    """The amounts of all containers of a session together."""
    alone: List[Tuple[int, Amounts]] = [(session.size, session.amounts)]
    parts = [(role.size, role) for role in session.roles] or alone
    return Amounts(
        sum(size * part.millicpus for size, part in parts),
        sum(size * part.memory for size, part in parts),
        sum(size * part.gpus for size, part in parts),
    )


def _cpus_used(one: AgentView | SessionView) -> float | None:
    return one.measured.millicpus / _MILLI if one.measured else None


def _memory_used(one: AgentView | SessionView) -> float | None:
    return one.measured.memory if one.measured else None


def _busy_gpus(one: AgentView | SessionView) -> float | None:
    return busy_gpus([one.measured])


def _launch_seconds(session: SessionView) -> float | None:
    """The time between the last placement of a session and its last change to RUNNING from another state."""
    changes = session.history
    runs = [one.time for one in changes if one.after == RUNNING and one.before != RUNNING]
    placed = [one.time for one in changes if one.after == SCHEDULED and runs and one.time <= runs[-1]]
    return runs[-1] - placed[-1] if placed else None


def _running(session: SessionView) -> int:
    return sum(container.state == "running" for container in session.containers)


# The labels of each subject. Only names and states are labels: whatever a program in a container prints, it adds no series.
_LABELS: Mapping[str, Tuple[str, ...]] = {
    "list": (),
    "state": ("state",),
    "agent": ("agent",),
    "session": ("owner", "session"),
}
_MILLI = 1000
# The metrics by subject, with the labels that not all metrics of it have: the list as a whole, a state, an agent, a session.
_OF_SUBJECTS: Mapping[str, Sequence[Metric]] = {
    "list": (Metric("written_timestamp_seconds", "When the sessions and agents were read.", lambda one: one.time),),
    "state": (Metric("sessions", "Sessions in a state; PENDING sessions wait.", lambda count: count),),
    "agent": (
        Metric("agent_up", "1 if the agent answers, 0 if it does not.", lambda one: one.reachable),
        Metric("agent_schedulable", "1 if the agent takes new sessions.", lambda one: one.schedulable),
        Metric("agent_cpus", "CPU capacity.", lambda one: one.capacity.millicpus / _MILLI),
        Metric("agent_cpus_allocated", "CPUs allocated to sessions.", lambda one: one.used.millicpus / _MILLI),
        Metric("agent_cpus_used", "CPUs that sessions use.", _cpus_used),
        Metric("agent_memory_bytes", "Memory capacity.", lambda one: one.capacity.memory),
        Metric("agent_memory_allocated_bytes", "Memory allocated to sessions.", lambda one: one.used.memory),
        Metric("agent_memory_used_bytes", "Memory that sessions use.", _memory_used),
        Metric("agent_gpus", "GPUs of the agent.", lambda one: one.capacity.gpus),
        Metric("agent_gpus_allocated", "GPUs allocated to sessions.", lambda one: one.used.gpus),
        Metric("agent_gpus_used", "Sum of the utilization of all GPUs; 1 is one busy GPU.", _busy_gpus),
    ),
    "session": (
        Metric("session_state", "1, with the state as a label.", lambda one: one.state in LIVE, ("state",)),
        Metric("session_containers", "Containers that the session asks for.", lambda one: one.size),
        Metric("session_containers_running", "Containers that run.", _running),
        Metric(
            "session_containers_lacking",
            "Containers that a running session lacks.",
            lambda one: len(one.degraded) if one.runs else None,
        ),
        Metric(
            "session_failures",
            "Apps and commands of a running session that failed.",
            lambda one: len(one.unhealthy) if one.runs else None,
        ),
        Metric(
            "session_cpus",
            "CPUs of all containers, allocated or requested.",
            lambda one: _of_all(one).millicpus / _MILLI,
        ),
        Metric("session_cpus_used", "CPUs that all containers use.", _cpus_used),
        Metric(
            "session_memory_bytes",
            "Memory of all containers, allocated or requested.",
            lambda one: _of_all(one).memory,
        ),
        Metric("session_memory_used_bytes", "Memory that all containers use.", _memory_used),
        Metric("session_gpus", "GPUs of all containers, allocated or requested.", lambda one: _of_all(one).gpus),
        Metric("session_gpus_used", "Sum of the utilization of its GPUs; 1 is one busy GPU.", _busy_gpus),
        Metric("session_launch_seconds", "Seconds from the last placement to RUNNING.", _launch_seconds),
        Metric("session_lifetime_left_seconds", "Seconds until the lifetime is over.", lambda one: one.time_left),
        Metric(
            "session_waiting_seconds",
            "Seconds since a waiting session was requested.",
            lambda one: one.created if one.waits else None,
            is_age=True,
        ),
    ),
}
METRICS = {
    subject: [replace(one, labels=(*_LABELS[subject], *one.labels)) for one in metrics]
    for subject, metrics in _OF_SUBJECTS.items()
}


def metrics_text(listed: SessionList) -> str:
    """The metrics of a list of C(session_info), which has the sessions that have not ended."""
    subjects = _subjects(listed)
    families = (
        line
        for subject, metrics in METRICS.items()
        for metric in metrics
        for line in _family(metric, subjects[subject], listed.time)
    )
    return "".join(f"{line}\n" for line in (*families, "# EOF"))


def _subjects(listed: SessionList) -> Dict[str, List[_Subject]]:
    sessions = [one for one in listed.sessions if one.state in LIVE]
    states = [one.state for one in sessions]
    return {
        "list": [_Subject({}, listed)],
        "state": [_Subject({"state": state}, states.count(state)) for state in sorted(LIVE)],
        "agent": [_Subject({"agent": one.name}, one) for one in listed.agents],
        "session": [_Subject({"owner": one.owner, "session": one.name, "state": one.state}, one) for one in sessions],
    }


def _family(metric: Metric, subjects: Iterable[_Subject], now: float) -> List[str]:
    """The lines of a metric. A reader refuses a file that has a series twice, so the newest of two subjects with one name counts."""
    series = {_labels(metric, one): _value(metric, one, now) for one in subjects}
    name = PREFIX + metric.name
    lines = [f"{name}{labels} {_shown(value)}" for labels, value in sorted(series.items()) if a_number(value)]
    return [f"# HELP {name} {metric.help}", f"# TYPE {name} gauge", *lines] if lines else []


def _value(metric: Metric, subject: _Subject, now: float) -> Any:
    value = metric.value(subject.value)
    return max(0.0, now - value) if metric.is_age and value is not None else value


def _labels(metric: Metric, subject: _Subject) -> str:
    pairs = ",".join(f'{label}="{_escaped(subject.labels[label])}"' for label in metric.labels)
    return f"{{{pairs}}}" if pairs else ""


def _escaped(text: str) -> str:
    return escape_control(text).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _shown(value: float) -> str:
    """A number without an exponent where it is whole.

    >>> [_shown(value) for value in (True, 1 << 40, 0.5, 3.0)]
    ['1', '1099511627776', '0.5', '3']
    """
    return str(int(value)) if value == int(value) else f"{value:.15g}"
