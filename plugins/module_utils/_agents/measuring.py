# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What running containers use now: two readings of their counters, a moment apart.

The counters come from the host's control groups, which costs nothing; where the engine is on another host, from the engine.
"""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import calendar
import time
from typing import Dict, Sequence

from .._core.documents import Json
from .._core.errors import ConflictError, EngineError
from .._core.parallel import run_all
from .._docker.client import Engine
from .cgroups import Groups, Reading, without_cache

# Seconds between the two readings.
PAUSE = 0.5


def measure(
    engine: Engine, engine_ids: Sequence[str], parallelism: int, groups: Groups, pause: float = PAUSE
) -> Dict[str, Json]:
    """What each container uses, by its ID in the engine: ``millicpus`` and ``memory``.

    Containers that have ended meanwhile are left out, and those that neither the host nor the engine can measure.
    """
    if not engine_ids:
        return {}
    before = _readings(engine, engine_ids, parallelism, groups)
    time.sleep(pause)
    after = _readings(engine, [identity for identity in engine_ids if identity in before], parallelism, groups)
    return {identity: use(before[identity], reading) for identity, reading in after.items()}


def use(before: Reading, after: Reading) -> Json:
    """The use between two readings of a container."""
    seconds = after.moment - before.moment
    millicpus = round((after.cpu - before.cpu) / seconds / 1e6) if seconds > 0 else 0
    return {"millicpus": max(0, millicpus), "memory": after.memory}


def _readings(engine: Engine, engine_ids: Sequence[str], parallelism: int, groups: Groups) -> Dict[str, Reading]:
    found = groups.readings()
    others = [identity for identity in engine_ids if identity not in found]
    try:
        answers = run_all(engine.stats, others, parallelism)
    except (EngineError, ConflictError):
        return found
    parsed = {identity: parse_stats(answer) for identity, answer in zip(others, answers)}
    return {**found, **{identity: reading for identity, reading in parsed.items() if reading}}


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
