# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Controllers of several releases on one store."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from samples import plan, request

from ansible_collections.cluster.compute.plugins.module_utils._head.database import FILE
from ansible_collections.cluster.compute.plugins.module_utils._head.queue_pass import begin
from ansible_collections.cluster.compute.plugins.module_utils._head.session_record import VERSION, SessionRecord
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.decision import Holder
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import StateError

PLAN = plan(request())
SESSION = PLAN.session.id


def running(folder: Path, change: Callable[[Json], None]) -> Store:
    """The store with a session that runs, whose plan another release has changed."""
    store = Store(str(folder))
    row = SessionRecord(SESSION, "train", "alice", "default", "PENDING", request=request())
    with store.transaction(keep=True):
        row = store.add(row, 1.0, "")
        row = replace(row, plan=PLAN)
        for state in ("SCHEDULED", "PREPARING", "RUNNING"):
            row = store.change(row, state, 2.0, "")
    with sqlite3.connect(folder / FILE) as database:
        document = json.loads(text_of(folder))
        change(document)
        database.execute("UPDATE session SET plan = ?", (json.dumps(document),))
    return store


def text_of(folder: Path) -> str:
    with sqlite3.connect(folder / FILE) as database:
        return str(database.execute("SELECT plan FROM session").fetchone()[0])


def newer(document: Json) -> None:
    document["session"]["new_protection"] = {"x": 1}


def another_form(document: Json) -> None:
    document["containers"][0]["resources"] = [1]


@pytest.mark.parametrize(("change", "is_read"), [(newer, True), (another_form, False)])
def test_what_another_release_has_written_stays(change: Callable[[Json], None], is_read: bool, tmp_path: Path) -> None:
    store = running(tmp_path, change)
    before = text_of(tmp_path)
    with store.transaction(keep=True):
        row = store.need(SESSION)
        assert (row.plan is not None) is is_read
        row = store.note(row, 3.0, "a pass has looked at it")
        row = store.change(row, "TERMINATING", 4.0, "")
    assert text_of(tmp_path) == before
    assert store.need(SESSION).state == "TERMINATING"


def test_a_session_that_waits_again_has_no_plan(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    row = SessionRecord(SESSION, "train", "alice", "default", "PENDING", request=request())
    with store.transaction(keep=True):
        row = store.add(row, 1.0, "")
        row = replace(row, plan=PLAN)
        for state in ("SCHEDULED", "PREPARING"):
            row = store.change(row, state, 2.0, "")
        row = replace(row, plan=None)
        row = store.change(row, "PENDING", 3.0, "")
    assert text_of(tmp_path) == "null"


@pytest.mark.parametrize("read_only", [True, False])
def test_a_store_of_a_newer_release_is_refused(read_only: bool, tmp_path: Path) -> None:
    Store(str(tmp_path)).close()
    with sqlite3.connect(tmp_path / FILE) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (VERSION,)
        database.execute(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(StateError, match=r"is of a newer release \(form 2, .*: upgrade this controller"):
        Store(str(tmp_path), read_only)


def test_a_lease_of_a_time_that_cannot_be_holds_nothing(tmp_path: Path) -> None:
    """The clock of the head was ten years ahead for a moment."""
    wrong, holder = 1e9 + 10 * 365 * 86400.0, Holder(machine="a", pid=7)
    with Store(str(tmp_path)).transaction(keep=True) as store:
        assert begin(store, "alice", holder, wrong, 600) is None
        assert begin(store, "alice", Holder(machine="b", pid=9), 1e9, 600) is None
        assert begin(store, "alice", holder, 1e9 + 1, 600) == Holder(machine="b", pid=9)
    row = SessionRecord(SESSION, "train", "alice", "default", "RUNNING")
    for lease, lost in ((1e9 + 600, False), (wrong, True), (1e9 - 1, True)):
        row = replace(row, lease=lease)
        assert row.is_lost(1e9) is lost
