# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables of the session store. Each statement may run again: a store gets the tables that it lacks."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

SCHEMA = (
    """CREATE TABLE IF NOT EXISTS session (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, owner TEXT NOT NULL, resource_group TEXT NOT NULL, state TEXT NOT NULL,
    result TEXT NOT NULL DEFAULT '', reason TEXT NOT NULL DEFAULT '', priority INTEGER NOT NULL DEFAULT 0,
    request TEXT NOT NULL DEFAULT 'null', plan TEXT NOT NULL DEFAULT 'null', holder TEXT NOT NULL DEFAULT 'null',
    lease REAL NOT NULL DEFAULT 0, created REAL NOT NULL, changed REAL NOT NULL
)""",
    """CREATE UNIQUE INDEX IF NOT EXISTS live_name ON session (owner, name)
    WHERE state NOT IN ('TERMINATED', 'ERROR', 'CANCELLED')""",
    "CREATE INDEX IF NOT EXISTS by_end ON session (state, changed)",
    "CREATE INDEX IF NOT EXISTS states ON session (id, state)",
    "CREATE INDEX IF NOT EXISTS by_time ON session (created)",
    "CREATE INDEX IF NOT EXISTS by_owner ON session (owner, created)",
    """CREATE TABLE IF NOT EXISTS history (
    session TEXT NOT NULL REFERENCES session (id), time REAL NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL,
    reason TEXT NOT NULL
)""",
    "CREATE INDEX IF NOT EXISTS history_of ON history (session, time)",
    "CREATE TABLE IF NOT EXISTS sample (time REAL PRIMARY KEY, document TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS retired (id TEXT PRIMARY KEY, time REAL NOT NULL)",
    # Every launch and repair of this store: a container of another launch belongs to another store.
    "CREATE TABLE IF NOT EXISTS launch (id TEXT PRIMARY KEY, session TEXT NOT NULL REFERENCES session (id))",
    # The login on the head whose module recorded the request: the kernel says it, no option does.
    """CREATE TABLE IF NOT EXISTS requester (
    session TEXT PRIMARY KEY REFERENCES session (id), uid INTEGER NOT NULL, login TEXT NOT NULL
)""",
    "CREATE INDEX IF NOT EXISTS launch_of ON launch (session)",
    # The ledger: what sessions have held. It stays when their history goes.
    """CREATE TABLE IF NOT EXISTS holding (
    session TEXT NOT NULL, owner TEXT NOT NULL, began REAL NOT NULL, ended REAL, millicpus INTEGER NOT NULL,
    memory INTEGER NOT NULL, gpus REAL NOT NULL
)""",
    # The pass over the queue of an owner that is in progress; ``again`` asks it for another round.
    """CREATE TABLE IF NOT EXISTS pass (
    owner TEXT PRIMARY KEY, holder TEXT NOT NULL, lease REAL NOT NULL, again INTEGER NOT NULL DEFAULT 0
)""",
    "CREATE INDEX IF NOT EXISTS holding_of ON holding (session, ended)",
    "CREATE INDEX IF NOT EXISTS holding_until ON holding (ended)",
)
