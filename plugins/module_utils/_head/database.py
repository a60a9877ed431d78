# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The file of the session store. The only file that imports sqlite3, whose errors it turns into what the user can do."""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing, contextmanager
from typing import Collection, Iterator

from .._shared.errors import StateError
from .state_folder import check_readable, is_filled, lock_holders

FILE = "sessions.db"
# Seconds that a second operator waits for the transaction of the first.
_BUSY_TIMEOUT = 30.0
# SQLite's words: https://www.sqlite.org/rescode.html
_FULL, _LOCKED = "disk is full", "database is locked"
_DAMAGED = re.compile("not a database|malformed|unsupported file format")
_HOLDERS = "%s; end it, or wait for it, and run this command again"
_NO_HOLDER = "`fuser -v %s` names the process; end it, or wait for it, and run this command again"
_MOVE = (
    "the file is damaged: move %s and, if it is there, %s-journal to another directory, and run this command again; sessions "
    "that run are then found by their labels, but sessions that wait and the history are lost"
)


class FullStoreError(StateError):
    """The disk of the store is full."""


class DamagedStoreError(StateError):
    """The file of the store is no database, or a part of it was overwritten."""


def connect(path: str) -> sqlite3.Connection:
    """Open a file, each of whose transactions begins with C(BEGIN)."""
    with errors(path):
        return sqlite3.connect(path, timeout=_BUSY_TIMEOUT, isolation_level=None)


@contextmanager
def errors(path: str) -> Iterator[None]:
    """Raise StateError for errors of the file itself: locked for too long, a full disk, not a database."""
    try:
        yield
    except sqlite3.IntegrityError:
        raise
    except sqlite3.DatabaseError as error:
        raise _refusal(path, str(error)) from error


def count(folder: str, states: Collection[str]) -> int:
    """Count the sessions in these states in the store of this directory, which an agent does without the code of the head."""
    check_readable(folder)
    path = os.path.join(folder, FILE)
    if not is_filled(path):
        return 0
    marks, wanted = ", ".join("?" * len(states)), sorted(states)
    with closing(connect(path)) as file, errors(path):
        return int(file.execute(f"SELECT count(*) FROM session WHERE state IN ({marks})", wanted).fetchone()[0])


def _refusal(path: str, words: str) -> StateError:
    """Return what the user can do about SQLite's message."""
    kind, advice = StateError, ""
    if _FULL in words:
        kind = FullStoreError
    elif _LOCKED in words:
        holders = ", ".join(lock_holders(path))
        advice = "; " + (_HOLDERS % holders if holders else _NO_HOLDER % path)
    elif _DAMAGED.search(words):
        kind, advice = DamagedStoreError, "; " + _MOVE % (path, path)
    return kind(f"The session store {path} cannot be used: {words}{advice}.", path)
