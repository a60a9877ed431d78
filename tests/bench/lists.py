#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long lists and a pass take with 100,000 ended sessions in the store: a table, and exit code 1 if a list takes
longer than the budget."""

from __future__ import annotations

import os
import sqlite3
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "collections"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from samples import agent, context, request

from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._shared import states
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._steps import queue, sessions
from ansible_collections.cluster.compute.plugins.module_utils._steps.step import Head

ENDED = 100_000
BUDGET = 1.0
COPY = "INSERT INTO session SELECT ?, name || ?, 'user' || ?, {rest} FROM session WHERE id = ?"


def fill(folder: Path) -> None:
    """A session of four containers that has ended, as often as needed, within the last 80 days; and one that waits."""
    now = time.time()
    store = Store(str(folder))
    launch(store, request(name="waits", cpus=99), context(agent("a"), now=now))
    decision = launch(store, request(cluster_size=4), context(agent("a"), now=now))
    for state in (states.RUNNING, states.TERMINATING, states.TERMINATED):
        store.change(store.need(decision.session.id), state, now, "reason")
    store.close()
    with closing(sqlite3.connect(folder / "sessions.db")) as database, database:
        columns = [row[1] for row in database.execute("PRAGMA table_info(session)")][3:]
        rest = ", ".join({"created": "?", "changed": "?"}.get(name, name) for name in columns)
        times = [now - 80 * 86400 * number / ENDED for number in range(ENDED)]
        model = decision.session.id
        rows = [(str(uuid.uuid4()), n, n % 50, moment, moment + 60, model) for n, moment in enumerate(times)]
        database.executemany(COPY.format(rest=rest), rows)
        changes = [
            (row[0], row[3] + step, "", state, "r") for row in rows for step, state in enumerate(("PENDING", "RUNNING"))
        ]
        database.executemany("INSERT INTO history VALUES (?, ?, ?, ?, ?)", changes)


def listing(folder: Path, **params: Any) -> Callable[[], Json]:
    """A list as the head makes it, with the time that it takes to open the store."""
    return lambda: sessions.list_all(Head(str(folder)), [], **params)


def measure(work: Callable[[], Json]) -> tuple[float, int]:
    """The best of three, in seconds, and the number of sessions."""
    best, result = float("inf"), {}
    for _round in range(3):
        begun = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - begun)
    return best, len(result.get("sessions", ()))


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "state"
        fill(folder)
        size = os.path.getsize(folder / "sessions.db") >> 20
        print("%d ended sessions in the store, %d MiB; budget %g s" % (ENDED, size, BUDGET))
        head = Head(str(folder))
        rows = {
            "live sessions of an owner": listing(folder, owner="alice"),
            "live sessions of all owners": listing(folder),
            "the newest 200 ended sessions as well": listing(folder, ended=True, limit=200),
            "the newest 200 of an owner": listing(folder, owner="user7", state="finished", limit=200),
            "the sessions of a name": listing(folder, name="train99", ended=True, limit=200),
            "a pass that removes nothing": lambda: queue.maintain(head, "", [], 90, 4 << 30).to_json(),
        }
        worst = 0.0
        for title, work in rows.items():
            seconds, count = measure(work)
            worst = max(worst, seconds)
            print("  %-40s %6.3f s  %5.2f of the budget  (%d sessions)" % (title, seconds, seconds / BUDGET, count))
    return int(worst > BUDGET)


if __name__ == "__main__":
    sys.exit(main())
