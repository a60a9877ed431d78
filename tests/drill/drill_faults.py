# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The faults of a drill, which of them run, and what a drill shows: verdicts, and times as percentiles. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

OK, FAILED, NOT_RUN = "ok", "failed", "not run"
# What a fault needs beside the throw-away session.
SEVERAL, DISRUPTIVE, FULL_DIRECTORY = "several agents", "disruptive", "full directory"
WHY_NOT = {
    SEVERAL: "it needs at least two agents that are reached by SSH",
    DISRUPTIVE: "it stops other sessions on an agent: --disruptive runs it",
    FULL_DIRECTORY: "it fills a file system of the head: --full-directory names a directory on a small one",
}


class DrillError(Exception):
    """What stops a fault, or the drill: one message for people."""


@dataclass(frozen=True)
class Fault:
    """``action`` names a method of the drill, ``detail`` is what it gets: a phase of a playbook, a signal, a command."""

    name: str
    action: str
    detail: str = ""
    needs: tuple[str, ...] = ()


def _kills(action: str, doing: str, phases: dict[str, str], signal: str = "KILL") -> list[Fault]:
    return [Fault(f"{doing} {moment}", action, f"{signal} {phase}") for moment, phase in phases.items()]


# The end of a phase, as the playbooks print it, by the moment that follows.
LAUNCHING = {
    "after the check": "Checking the request",
    "after the reports": "Collecting agent reports",
    "after the placement": "Placing the session",
    "after the containers": "Creating",
    "after the start": "Starting",
    "after the verification": "Verifying",
}
GROWING = {moment: LAUNCHING[moment] for moment in ("after the placement", "after the containers", "after the start")}
SHRINKING = {"after the placement": "Placing the session", "after the removal": "Removing"}
ENDING = {
    "after the reports": "Collecting agent reports",
    "after its record": "Ending the session",
    "after the removal": "Removing",
}
FAULTS: tuple[Fault, ...] = (
    Fault("sub killed", "break_container", "kill {sub}"),
    Fault("main1 killed", "break_container", "kill {main}"),
    Fault("sub removed", "break_container", "rm --force {sub}"),
    Fault("main1 removed", "break_container", "rm --force {main}"),
    Fault("all containers killed", "all_killed"),
    Fault("sub killed, all restart", "all_restarted"),
    *_kills("kill_launch", "launch killed", LAUNCHING),
    *_kills("stop_launch", "launch interrupted", {"after the placement": "Placing the session"}, "INT"),
    *_kills("stop_launch", "launch terminated", {"after the containers": "Creating"}, "TERM"),
    *_kills("kill_growth", "growth killed", GROWING),
    *_kills("kill_shrink", "shrink killed", SHRINKING),
    *_kills("kill_end", "end killed", ENDING),
    *_kills("kill_end", "end interrupted", {"after the reports": "Collecting agent reports"}, "INT"),
    Fault("image gone", "refused", "image"),
    Fault("port taken", "port_taken"),
    Fault("bootstrap fails", "refused", "bootstrap"),
    Fault("no room", "pending"),
    Fault("files on the controller lost", "files_lost"),
    Fault("directory on the controller lost", "directory_lost"),
    Fault("store lost", "store_lost"),
    Fault("agent cut off from the controller", "agent_cut_off", needs=(SEVERAL,)),
    Fault("disk of the head full", "disk_full", needs=(FULL_DIRECTORY,)),
    Fault("engine killed during the launch", "engine_killed_in_launch", needs=(DISRUPTIVE,)),
    Fault("engine killed under a session", "engine_killed", needs=(DISRUPTIVE,)),
    Fault("host cut off during the launch", "host_cut_off", needs=(DISRUPTIVE, SEVERAL)),
    Fault("host lost", "host_lost", needs=(DISRUPTIVE, SEVERAL)),
)


@dataclass(frozen=True)
class Outcome:
    """The verdict of a fault: what the user reads when it strikes, and how long it took from the launch to the check of the end."""

    fault: str
    verdict: str
    message: str = ""
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "seconds": round(self.seconds, 1)}


@dataclass
class Times:
    """The durations of launches, repairs and ends that succeeded, in seconds."""

    samples: dict[str, list[float]] = field(default_factory=lambda: {"launch": [], "repair": [], "end": []})

    def add(self, kind: str, seconds: float) -> None:
        self.samples[kind].append(seconds)

    def to_json(self) -> dict[str, Any]:
        return {
            kind: {"count": len(found), "p50": percentile(found, 50), "p95": percentile(found, 95)}
            for kind, found in self.samples.items()
        }


def percentile(samples: Sequence[float], percent: int) -> float:
    """The smallest sample that is not exceeded by this share of all samples; 0 without samples.

    >>> percentile([3.0, 1.0, 2.0, 4.0], 50), percentile([3.0, 1.0, 2.0, 4.0], 95), percentile([], 50)
    (2.0, 4.0, 0.0)
    """
    if not samples:
        return 0.0
    rank = -(-len(samples) * percent // 100)
    return round(sorted(samples)[rank - 1], 2)


def chosen(names: Sequence[str]) -> list[Fault]:
    """The faults with these names, or all."""
    known = {fault.name: fault for fault in FAULTS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise DrillError(f"--fault: {unknown[0]!r}: must be a fault of the drill: {', '.join(known)}.")
    return [known[name] for name in names] if names else list(FAULTS)


def lacking(fault: Fault, available: Sequence[str]) -> str:
    """Why a fault is not run; empty if it is."""
    return next((WHY_NOT[need] for need in fault.needs if need not in available), "")


def report(outcomes: Sequence[Outcome], times: dict[str, Any], others: dict[str, Any]) -> list[str]:
    """The table of a drill, and its summary."""
    rows = [
        (one.verdict, one.fault, f"{one.seconds:.1f}" if one.verdict != NOT_RUN else "-", one.message)
        for one in outcomes
    ]
    rows.insert(0, ("VERDICT", "FAULT", "SECONDS", "WHAT THE USER READS"))
    verdict, fault, seconds, _message = (max(map(len, column)) for column in zip(*rows, strict=False))
    lines = [f"{a:{verdict}}  {b:{fault}}  {c:{seconds}}  {d}".rstrip() for a, b, c, d in rows]
    lines.append("")
    for kind, figures in times.items():
        lines.append(
            "%-6s  %3d times, p50 %6.2f s, p95 %6.2f s" % (kind, figures["count"], figures["p50"], figures["p95"])
        )
    lines.append("Containers of other sessions: %d, %s." % (others["count"], changed_words(others["changed"])))
    lines.append(summary(outcomes, others["changed"]))
    return lines


def changed_words(changed: Sequence[str]) -> str:
    return "all unchanged" if not changed else "changed: " + ", ".join(changed)


def summary(outcomes: Sequence[Outcome], changed: Sequence[str]) -> str:
    """The drill in one line."""
    counts = {verdict: sum(one.verdict == verdict for one in outcomes) for verdict in (OK, FAILED, NOT_RUN)}
    failed = [one.fault for one in outcomes if one.verdict == FAILED]
    text = "%d of %d faults passed, %d not run" % (counts[OK], counts[OK] + counts[FAILED], counts[NOT_RUN])
    if failed:
        text += f"; failed: {', '.join(failed)}"
    if changed:
        text += f"; containers of others changed meanwhile: {', '.join(changed)}"
    return text + "."
