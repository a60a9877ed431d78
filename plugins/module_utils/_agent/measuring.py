# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Measure what running containers use now: two readings of their counters, a moment apart.

The counters come from the host's control groups, which costs nothing; where the engine is on another host, from the engine.
"""

from __future__ import annotations

import calendar
import os
import re
import time
from dataclasses import dataclass
from typing import Collection, Dict, Sequence

from .._shared.codec import Json
from .._shared.documents.report import Measured
from .._shared.errors import ConflictError, EngineError
from .._shared.parallel import run_all
from .._shared.paths import read
from .engine.client import Engine
from .engine.control_groups import ROOT, found, is_unified


@dataclass(frozen=True)
class Reading:
    """Counters of a container: when they were read, in seconds; nanoseconds of CPU time since its start; bytes of memory."""

    moment: float
    cpu: int
    memory: int


class Groups:
    """The control groups of containers, found once and read as often as needed."""

    def __init__(self, engine_ids: Collection[str], root: str = ROOT) -> None:
        self._unified = is_unified(root)
        tops = {name: root if self._unified else os.path.join(root, name) for name in ("cpuacct", "memory")}
        self._cpu = found(tops["cpuacct"], engine_ids)
        self._memory = self._cpu if self._unified else found(tops["memory"], engine_ids)

    def readings(self) -> Dict[str, Reading]:
        """A reading of each container whose groups are here, by its ID in the engine."""
        read_one = self._read_unified if self._unified else self._read_separate
        readings = {identity: read_one(identity) for identity in self._cpu if identity in self._memory}
        return {identity: reading for identity, reading in readings.items() if reading}

    def _read_unified(self, identity: str) -> Reading | None:
        """Version 2 of control groups."""
        folder = self._cpu[identity]
        spent, used = _field(folder, "cpu.stat", "usage_usec"), read(os.path.join(folder, "memory.current"))
        return _reading(spent * 1000, used, _field(folder, "memory.stat", "inactive_file"))

    def _read_separate(self, identity: str) -> Reading | None:
        """Version 1, with a folder for each controller."""
        spent, folder = read(os.path.join(self._cpu[identity], "cpuacct.usage")), self._memory[identity]
        used = read(os.path.join(folder, "memory.usage_in_bytes"))
        return _reading(int(spent or 0), used, _field(folder, "memory.stat", "total_inactive_file"))


def without_cache(used: int, cache: int) -> int:
    """Memory without the page cache that the kernel can give up, as in C(docker stats)."""
    return used - cache if cache < used else used


def _reading(cpu: int, memory: str, cache: int) -> Reading | None:
    """None if the group is gone: the container has ended."""
    return Reading(time.monotonic(), cpu, without_cache(int(memory), cache)) if memory.strip() else None


def _field(folder: str, name: str, field: str) -> int:
    """A line of a file of names and numbers."""
    match = re.search(rf"^{field} (\d+)$", read(os.path.join(folder, name)), re.MULTILINE)
    return int(match.group(1)) if match else 0


# Seconds between the two readings.
PAUSE = 0.5


def measure_containers(
    engine: Engine, engine_ids: Sequence[str], groups: Groups, pause: float = PAUSE
) -> Dict[str, Measured]:
    """Measure what containers use of CPUs and memory, by ID in the engine, without those that have ended or cannot be measured."""
    if not engine_ids:
        return {}
    before = _readings(engine, engine_ids, groups)
    time.sleep(pause)
    after = _readings(engine, [identity for identity in engine_ids if identity in before], groups)
    return {identity: use(before[identity], reading) for identity, reading in after.items()}


def use(before: Reading, after: Reading) -> Measured:
    seconds = after.moment - before.moment
    millicpus = round((after.cpu - before.cpu) / seconds / 1e6) if seconds > 0 else 0
    return Measured(max(0, millicpus), after.memory)


def _readings(engine: Engine, engine_ids: Sequence[str], groups: Groups) -> Dict[str, Reading]:
    here = groups.readings()
    others = [identity for identity in engine_ids if identity not in here]
    try:
        answers = run_all(engine.stats, others)
    except (EngineError, ConflictError):
        return here
    parsed = {identity: parse_stats(answer) for identity, answer in zip(others, answers)}
    return {**here, **{identity: reading for identity, reading in parsed.items() if reading}}


def parse_stats(answer: Json | None) -> Reading | None:
    """The engine's counters of a container, or None: the engine returns no memory of one that has ended."""
    memory = (answer or {}).get("memory_stats")
    if not answer or not memory:
        return None
    details = memory.get("stats") or {}
    cache = int(details.get("total_inactive_file", details.get("inactive_file", 0)) or 0)
    cpu = int((answer.get("cpu_stats") or {}).get("cpu_usage", {}).get("total_usage") or 0)
    return Reading(_seconds(str(answer["read"])), cpu, without_cache(int(memory.get("usage") or 0), cache))


def _seconds(moment: str) -> float:
    """The engine's time of a reading, as in C(2026-11-21T17:36:50.123456789Z), in seconds since the epoch."""
    whole, _point, fraction = moment.rstrip("Z").partition(".")
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) + float("0.%s" % (fraction or "0"))
