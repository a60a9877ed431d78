# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A store whose disk is full still knows its sessions, and lets them end."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from samples import SESSION, plan, request

from ansible_collections.cluster.compute.plugins.module_utils._head import database
from ansible_collections.cluster.compute.plugins.module_utils._head.database import FullStoreError
from ansible_collections.cluster.compute.plugins.module_utils._head.session_record import SessionRecord
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._shared import states
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._steps import session, sessions
from ansible_collections.cluster.compute.plugins.module_utils._steps.step import Head

LONG = "x" * 100000
HOLDER: Json = {"user": "alice"}


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """A store with a running session."""
    path = str(tmp_path / "state")
    made = plan(request())
    store = Store(path)
    with store.transaction():
        store.add(SessionRecord(SESSION, "train", "alice", "default", states.RUNNING, plan=made), 1.0, "launched")
    store.close()
    return path


@pytest.fixture
def launching(folder: str) -> None:
    """Its launch has not ended."""
    store = Store(folder)
    with store.transaction():
        store.execute("UPDATE session SET state = ?", (states.PREPARING,))
    store.close()


@pytest.fixture
def full(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No database file grows any more."""
    connect = sqlite3.connect

    def limited(path: str, **options: Any) -> sqlite3.Connection:
        made = connect(path, **options)
        if path != ":memory:":
            made.execute("PRAGMA max_page_count = 1")
        return made

    monkeypatch.setattr(database.sqlite3, "connect", limited)


def listed(folder: str) -> list[tuple[str, str]]:
    store = Store(folder, read_only=True)
    found = [(row.name, row.state) for row in store.select(None, None, ended=True)]
    store.close()
    return found


@pytest.mark.usefixtures("full")
def test_a_full_disk_is_an_error_of_its_own(folder: str) -> None:
    store = Store(folder)
    with pytest.raises(FullStoreError, match="cannot be used: database or disk is full"), store.transaction():
        store.note(store.need(SESSION), 2.0, LONG)
    store.close()
    assert listed(folder) == [("train", states.RUNNING)]


def test_changes_of_a_copy_are_lost(folder: str) -> None:
    copy = Store.copy(folder)
    with copy.transaction():
        copy.change(copy.need(SESSION), states.TERMINATING, 2.0, "ended")
    assert copy.need(SESSION).state == states.TERMINATING
    copy.close()
    assert listed(folder) == [("train", states.RUNNING)]


def record(folder: str, state: str, **change: Any) -> Json:
    return session.record(Head(folder), state, {"holder": HOLDER, "reason": LONG, **change})


@pytest.mark.usefixtures("full")
def test_a_session_ends_although_its_end_cannot_be_recorded(folder: str) -> None:
    begun = record(folder, "terminating", name="train", reached=["agent1"])
    assert (begun["session"]["id"], begun["session"]["state"]) == (SESSION, states.TERMINATING)
    [warning] = begun["warnings"]
    assert "disk is full: the end of the session is not recorded; free some space on the head" in warning
    ended = record(folder, "terminated", id=SESSION, reached=["agent1"])
    assert ended["session"]["state"] == states.TERMINATED
    assert listed(folder) == [("train", states.RUNNING)]


@pytest.mark.usefixtures("launching", "full")
def test_a_launch_whose_controller_is_gone_ends_as_well(folder: str) -> None:
    record(folder, "terminating", name="train", reached=["agent1"])
    ended = record(folder, "terminated", id=SESSION, reached=["agent1"])
    assert ended["session"]["state"] == states.TERMINATED


@pytest.mark.usefixtures("full")
def test_a_list_needs_no_room(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions of a lost store are recorded while a list is made; that is undone afterwards."""

    def grow(store: Store, _agents: object, now: float) -> None:
        store.note(store.need(SESSION), now, LONG)

    monkeypatch.setattr(sessions, "adopt", grow)
    assert [one["name"] for one in sessions.list_all(Head(folder), [])["sessions"]] == ["train"]
    assert listed(folder) == [("train", states.RUNNING)]


@pytest.mark.usefixtures("full")
def test_everything_but_an_end_and_a_list_needs_the_store(folder: str) -> None:
    with pytest.raises(FullStoreError):
        record(folder, "running", id=SESSION, result="SUCCESS")
