# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Use over time: a sample of what is allocated and what is used, which each pass over the queue takes."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import json
from typing import List, Sequence

from .._core import states
from .._core.documents import Json
from .store import Store

# Seconds. Passes that follow one another sooner add no sample, and no sample is kept for longer.
_CLOSEST = 20
_OLDEST = 31 * 86400


def sample(agents: Sequence[Json], session_states: Sequence[str], now: float) -> Json:
    """The sums over the agents of a list, and the number of sessions that are live and that wait."""
    usable = [agent for agent in agents if agent["reachable"]]
    measured = [agent["measured"] for agent in usable if agent["measured"]]
    percents = [gpu["percent"] for each in measured for gpu in each["gpus"] if gpu["percent"] is not None]
    return {
        "time": round(now, 3),
        "capacity": _sum([agent["capacity"] for agent in usable]),
        "used": _sum([agent["used"] for agent in usable]),
        "measured": {
            "millicpus": sum(each["millicpus"] for each in measured),
            "memory": sum(each["memory"] for each in measured),
            "gpu_percent": round(sum(percents) / len(percents), 1) if percents else None,
        },
        "live": sum(state != states.PENDING for state in session_states),
        "waiting": sum(state == states.PENDING for state in session_states),
    }


def add_sample(store: Store, taken: Json) -> bool:
    """Keep a sample, unless the last one is only seconds old; returns whether it is kept. Old samples are removed."""
    now = float(taken["time"])
    store.execute("DELETE FROM sample WHERE time < ?", (now - _OLDEST,))
    last = store.query("sample", "SELECT max(time) FROM sample")[0][0]
    # A clock that was set back must not keep samples away until it has caught up.
    if last is not None and 0 <= now - last < _CLOSEST:
        return False
    store.execute("INSERT OR REPLACE INTO sample VALUES (?, ?)", (now, json.dumps(taken, sort_keys=True)))
    return True


def samples(store: Store, since: float) -> List[Json]:
    """The samples from a time on, oldest first."""
    rows = store.query("sample", "SELECT document FROM sample WHERE time >= ? ORDER BY time", (since,))
    return [json.loads(row[0]) for row in rows]


def _sum(amounts: Sequence[Json]) -> Json:
    return {name: round(sum(each[name] for each in amounts), 3) for name in ("millicpus", "memory", "gpus")}
