# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A list of sessions and agents as metrics, in a text that both OpenMetrics and node_exporter's textfile collector read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, Callable, Dict, Iterable, List, Mapping, Sequence, Tuple

from ...module_utils._shared.codec import Json
from ...module_utils._shared.documents.report import busy_gpus
from ...module_utils._shared.documents.schema import a_number
from ...module_utils._shared.errors import escape_control
from ...module_utils._shared.states import LIVE, PENDING, RUNNING, SCHEDULED

PREFIX = "cluster_compute_"
Value = Callable[[Any], Any]


@dataclass(frozen=True)
class Metric:
    """A gauge of each subject: ``value`` returns None for a subject without it."""

    name: str
    help: str
    value: Value
    labels: Tuple[str, ...] = ()


def _amount(kind: str, resource: str, scale: int = 1) -> Value:
    """An amount of an agent: its ``capacity``, or what is allocated of it, ``used``."""
    return lambda agent: agent[kind][resource] / scale


def _of_all(resource: str, scale: int = 1) -> Value:
    """An amount of all containers of a session together."""
    return lambda session: sum(part["size"] * part[resource] for part in _parts(session)) / scale


def _parts(session: Json) -> Sequence[Json]:
    """Groups of equal containers: one for each role, or one for all."""
    return session.get("roles") or [{**session["each"], "size": session["size"], "gpus": session["gpus"]}]


def _measured(resource: str, scale: int = 1) -> Value:
    return lambda one: one["measured"][resource] / scale if one["measured"] else None


def _busy_gpus(one: Json) -> float | None:
    return busy_gpus([one["measured"]])


def _launch_seconds(session: Json) -> float | None:
    """The time between the last placement of a session and its last change to RUNNING from another state."""
    changes = session["history"]
    runs = [one["time"] for one in changes if one["after"] == RUNNING and one["before"] != RUNNING]
    placed = [one["time"] for one in changes if one["after"] == SCHEDULED and runs and one["time"] <= runs[-1]]
    return runs[-1] - placed[-1] if placed else None


def _running(session: Json) -> int:
    return sum(container["state"] == "running" for container in session["containers"])


def _count(name: str) -> Value:
    """The length of a list of a running session."""
    return lambda session: len(session[name]) if session["state"] == RUNNING else None


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
    "list": (Metric("written_timestamp_seconds", "When the sessions and agents were read.", itemgetter("time")),),
    "state": (Metric("sessions", "Sessions in a state; PENDING sessions wait.", itemgetter("count")),),
    "agent": (
        Metric("agent_up", "1 if the agent answers, 0 if it does not.", itemgetter("reachable")),
        Metric("agent_schedulable", "1 if the agent takes new sessions.", itemgetter("schedulable")),
        Metric("agent_cpus", "CPU capacity.", _amount("capacity", "millicpus", _MILLI)),
        Metric("agent_cpus_allocated", "CPUs allocated to sessions.", _amount("used", "millicpus", _MILLI)),
        Metric("agent_cpus_used", "CPUs that sessions use.", _measured("millicpus", _MILLI)),
        Metric("agent_memory_bytes", "Memory capacity.", _amount("capacity", "memory")),
        Metric("agent_memory_allocated_bytes", "Memory allocated to sessions.", _amount("used", "memory")),
        Metric("agent_memory_used_bytes", "Memory that sessions use.", _measured("memory")),
        Metric("agent_gpus", "GPUs of the agent.", _amount("capacity", "gpus")),
        Metric("agent_gpus_allocated", "GPUs allocated to sessions.", _amount("used", "gpus")),
        Metric("agent_gpus_used", "Sum of the utilization of all GPUs; 1 is one busy GPU.", _busy_gpus),
    ),
    "session": (
        Metric("session_state", "1, with the state as a label.", lambda one: one["state"] in LIVE, ("state",)),
        Metric("session_containers", "Containers that the session asks for.", itemgetter("size")),
        Metric("session_containers_running", "Containers that run.", _running),
        Metric("session_containers_lacking", "Containers that a running session lacks.", _count("degraded")),
        Metric("session_failures", "Apps and commands of a running session that failed.", _count("unhealthy")),
        Metric("session_cpus", "CPUs of all containers, allocated or requested.", _of_all("millicpus", _MILLI)),
        Metric("session_cpus_used", "CPUs that all containers use.", _measured("millicpus", _MILLI)),
        Metric("session_memory_bytes", "Memory of all containers, allocated or requested.", _of_all("memory")),
        Metric("session_memory_used_bytes", "Memory that all containers use.", _measured("memory")),
        Metric("session_gpus", "GPUs of all containers, allocated or requested.", _of_all("gpus")),
        Metric("session_gpus_used", "Sum of the utilization of its GPUs; 1 is one busy GPU.", _busy_gpus),
        Metric("session_launch_seconds", "Seconds from the last placement to RUNNING.", _launch_seconds),
        Metric("session_lifetime_left_seconds", "Seconds until the lifetime is over.", itemgetter("time_left")),
        Metric("session_waiting_seconds", "Seconds since a waiting session was requested.", itemgetter("waiting")),
    ),
}
METRICS = {
    subject: [replace(one, labels=(*_LABELS[subject], *one.labels)) for one in metrics]
    for subject, metrics in _OF_SUBJECTS.items()
}


def metrics_text(listed: Json) -> str:
    """The metrics of a list of C(session_info), which has the sessions that have not ended."""
    subjects = _subjects(listed)
    families = (
        line
        for subject, metrics in METRICS.items()
        for metric in metrics
        for line in _family(metric, subjects[subject])
    )
    return "".join(f"{line}\n" for line in (*families, "# EOF"))


def _subjects(listed: Json) -> Dict[str, List[Json]]:
    sessions = [one for one in listed["sessions"] if one["state"] in LIVE]
    states = [one["state"] for one in sessions]

    def waiting(one: Json) -> float | None:
        return max(0.0, listed["time"] - one["created"]) if one["state"] == PENDING else None

    return {
        "list": [listed],
        "state": [{"state": state, "count": states.count(state)} for state in sorted(LIVE)],
        "agent": [{**one, "agent": one["name"]} for one in listed["agents"]],
        "session": [{**one, "session": one["name"], "waiting": waiting(one)} for one in sessions],
    }


def _family(metric: Metric, subjects: Iterable[Json]) -> List[str]:
    """The lines of a metric. A reader refuses a file that has a series twice, so the newest of two subjects with one name counts."""
    series = {_labels(metric, one): metric.value(one) for one in subjects}
    name = PREFIX + metric.name
    lines = [f"{name}{labels} {_shown(value)}" for labels, value in sorted(series.items()) if a_number(value)]
    return [f"# HELP {name} {metric.help}", f"# TYPE {name} gauge", *lines] if lines else []


def _labels(metric: Metric, subject: Json) -> str:
    pairs = ",".join(f'{label}="{_escaped(str(subject[label]))}"' for label in metric.labels)
    return f"{{{pairs}}}" if pairs else ""


def _escaped(text: str) -> str:
    return escape_control(text).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _shown(value: float) -> str:
    """A number without an exponent where it is whole.

    >>> [_shown(value) for value in (True, 1 << 40, 0.5, 3.0)]
    ['1', '1099511627776', '0.5', '3']
    """
    return str(int(value)) if value == int(value) else f"{value:.15g}"
