# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every change of state, and its repetition, with a real store."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from samples import SESSION, exactly

from ansible_collections.cluster.compute.plugins.module_utils._head.session_record import SessionRecord
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._head.transitions import Change, make_change
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.decision import Holder
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import NotFoundError, StateError

BOB = Holder(host="controller", user="bob", pid=7, start="2")
# The way to every state, from PENDING on.
PATHS = {
    "PENDING": (),
    "SCHEDULED": ("SCHEDULED",),
    "PREPARING": ("SCHEDULED", "PREPARING"),
    "RUNNING": ("SCHEDULED", "PREPARING", "RUNNING"),
    "TERMINATING": ("SCHEDULED", "PREPARING", "RUNNING", "TERMINATING"),
    "TERMINATED": ("SCHEDULED", "PREPARING", "RUNNING", "TERMINATING", "TERMINATED"),
    "ERROR": ("SCHEDULED", "ERROR"),
    "CANCELLED": ("CANCELLED",),
}


def session(store: Store, state: str) -> SessionRecord:
    row = SessionRecord(SESSION, "train", "alice", "default", "PENDING", holder=Holder(pid=42), lease=1600.0)
    row = store.add(row, 1000.0, "requested")
    for after in PATHS[state]:
        row = store.change(row, after, 1001.0, "on its way")
    return row


def change(store: Store, what: str, **fields: Any) -> tuple[str, SessionRecord | None]:
    blank = Change(id=SESSION, name="", owner="", reason="", result="", now=2000.0, lease=600.0, holder=BOB)
    return make_change(store, what, replace(blank, **fields))


ERROR = "It did not answer."


@pytest.mark.parametrize(
    ("what", "before", "after"),
    [
        ("running", "PREPARING", "RUNNING"),
        ("running", "RUNNING", "RUNNING"),
        ("failed", "PENDING", "ERROR"),
        ("failed", "SCHEDULED", "ERROR"),
        ("failed", "PREPARING", "ERROR"),
        ("failed", "RUNNING", "RUNNING"),
        ("failed", "TERMINATING", "TERMINATING"),
        ("failed", "TERMINATED", "TERMINATED"),
        ("failed", "ERROR", "ERROR"),
        ("failed", "CANCELLED", "CANCELLED"),
        ("terminating", "PENDING", "CANCELLED"),
        ("terminating", "SCHEDULED", "TERMINATING"),
        ("terminating", "PREPARING", "TERMINATING"),
        ("terminating", "RUNNING", "TERMINATING"),
        ("terminating", "TERMINATING", "TERMINATING"),
        ("terminating", "TERMINATED", "TERMINATED"),
        ("terminating", "ERROR", "ERROR"),
        ("terminating", "CANCELLED", "CANCELLED"),
        ("terminated", "PREPARING", "TERMINATED"),
        ("terminated", "TERMINATING", "TERMINATED"),
        ("terminated", "TERMINATED", "TERMINATED"),
        ("terminated", "ERROR", "ERROR"),
        ("terminated", "CANCELLED", "CANCELLED"),
    ],
)
def test_every_change_and_its_repetition(store: Store, what: str, before: str, after: str) -> None:
    session(store, before)
    seen, row = change(store, what, reason="because")
    assert row is not None
    assert (seen, row.state, store.need(SESSION).state) == (before, after, after)
    notes = store.history(SESSION)
    seen, row = change(store, what, reason="because", now=2001.0)
    assert row is not None
    assert (seen, row.state) == (after, after)
    assert store.history(SESSION) == notes


@pytest.mark.parametrize(
    ("what", "before", "after"),
    [
        ("running", "PENDING", "RUNNING"),
        ("running", "SCHEDULED", "RUNNING"),
        ("running", "TERMINATING", "RUNNING"),
        ("running", "TERMINATED", "RUNNING"),
        ("running", "ERROR", "RUNNING"),
        ("terminated", "PENDING", "TERMINATED"),
    ],
)
def test_what_the_table_does_not_have_is_refused(store: Store, what: str, before: str, after: str) -> None:
    session(store, before)
    message = "Session train is %s and cannot become %s." % (before, after)
    with pytest.raises(StateError, match=exactly(message)):
        change(store, what)
    assert store.need(SESSION).state == before


@pytest.mark.parametrize("what", ["running", "failed", "terminated"])
def test_a_session_that_is_not_there(store: Store, what: str) -> None:
    with pytest.raises(NotFoundError):
        change(store, what, id="missing")


@pytest.mark.parametrize(
    ("what", "before", "reason"),
    [
        ("running", "PREPARING", "every container is verified"),
        ("terminating", "PENDING", "ended while it was waiting"),
        ("terminating", "RUNNING", "ended by bob"),
        ("terminated", "TERMINATING", "every container is removed"),
    ],
)
def test_reasons(store: Store, what: str, before: str, reason: str) -> None:
    session(store, before)
    _before, row = change(store, what)
    assert row is not None
    assert row.reason == reason
    assert store.history(SESSION)[-1].reason == reason


def test_running_ends_the_lease_of_launch_and_repair(store: Store) -> None:
    row = session(store, "PREPARING")
    change(store, "running")
    assert (store.need(SESSION).holder, store.need(SESSION).lease) == (None, 0.0)
    row = store.need(SESSION)
    row = replace(row, holder=BOB, lease=9000.0)
    store.save(row)
    change(store, "running")
    assert (store.need(SESSION).holder, store.need(SESSION).lease) == (None, 0.0)


def test_a_launch_that_was_undone_although_it_is_recorded_ends(store: Store) -> None:
    """The answer of the head that it runs was lost on the way. All of its containers are removed, and what it held is free."""
    row = session(store, "RUNNING")
    change(store, "failed", reason=ERROR, undone=True, launch="another launch")
    assert store.need(SESSION).state == "RUNNING"
    change(store, "failed", reason=ERROR, undone=True, launch=row.launch)
    row = store.need(SESSION)
    assert (row.state, row.reason) == ("TERMINATED", ERROR)
    assert all(one.ended for one in store.holdings())


def test_a_failed_repair_leaves_the_session_and_says_why(store: Store) -> None:
    row = session(store, "RUNNING")
    row = replace(row, holder=BOB, lease=9000.0)
    store.save(row)
    change(store, "failed", reason=ERROR)
    row = store.need(SESSION)
    assert (row.state, row.reason, row.holder, row.lease) == ("RUNNING", ERROR, None, 0.0)


def test_a_controller_that_ends_a_session_takes_it_over(store: Store) -> None:
    session(store, "PREPARING")
    change(store, "terminating")
    row = store.need(SESSION)
    assert (row.holder, row.lease) == (BOB, 2600.0)
    change(store, "terminating", now=3000.0, holder=Holder(user="carol"))
    row = store.need(SESSION)
    assert (row.holder, row.lease) == (Holder(user="carol"), 3600.0)


def test_a_session_is_ended_by_name_and_owner(store: Store) -> None:
    session(store, "RUNNING")
    assert change(store, "terminating", id="", name="train", owner="bob") == ("", None)
    assert change(store, "terminating", id="", name="trail", owner="alice") == ("", None)
    _before, row = change(store, "terminating", id="", name="train", owner="alice")
    assert row is not None
    assert row.state == "TERMINATING"


def test_the_result_is_kept(store: Store) -> None:
    row = session(store, "TERMINATING")
    row = replace(row, result="FAILURE")
    store.save(row)
    change(store, "terminated")
    assert store.need(SESSION).result == "FAILURE"


def test_a_completed_command_is_noted(store: Store) -> None:
    session(store, "RUNNING")
    change(store, "running", result="FAILURE", reason="the command ended with exit code 3")
    row = store.need(SESSION)
    assert (row.state, row.result, row.reason) == ("RUNNING", "FAILURE", "the command ended with exit code 3")
    note = store.history(SESSION)[-1]
    assert (note.before, note.after, note.time) == ("RUNNING", "RUNNING", 2000.0)


@pytest.mark.parametrize("state", ["TERMINATING", "TERMINATED"])
def test_the_reason_of_an_end_stays_if_the_command_is_missed_afterwards(store: Store, state: str) -> None:
    session(store, state)
    change(store, "running", result="FAILURE", reason="main1 is missing")
    row = store.need(SESSION)
    assert (row.state, row.result, row.reason, row.changed) == (state, "", "on its way", 1001.0)


def test_the_end_of_the_command_outlives_the_session(store: Store) -> None:
    session(store, "RUNNING")
    change(store, "running", result="FAILURE", reason="the command ended with exit code 3")
    change(store, "terminating")
    change(store, "terminated")
    assert store.need(SESSION).reason == "the command ended with exit code 3"
