# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The store over a real SQLite file, with real processes where it matters."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from samples import exactly, plan, request

from ansible_collections.cluster.compute.plugins.module_utils._head.session_record import SessionRecord
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._shared import states
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.decision import Holder, StateChange
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import NotFoundError, StateError

FORK = multiprocessing.get_context("fork")
ASKED = request(cluster_size=2, gpus=0.5, environment={"A": "ü"}, mounts=[{"source": "/data", "target": "/data"}])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state"


def row(name: str = "train", owner: str = "alice", state: str = states.PENDING, **fields: Any) -> SessionRecord:
    return SessionRecord("id-%s-%s" % (owner, name), name, owner, "default", state, **{"request": ASKED, **fields})


def everything(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_row_comes_back_as_it_was_saved(store: Store) -> None:
    kept = row(priority=7, request=ASKED, plan=plan(ASKED), holder=Holder(pid=1), lease=9.5, result="SUCCESS")
    with store.transaction():
        kept = store.add(kept, 100.0, "requested")
    found = store.need(kept.id)
    assert found == kept
    assert (found.created, found.changed, found.reason) == (100.0, 100.0, "requested")


def test_every_change_is_recorded_with_time_and_reason(store: Store) -> None:
    one = row()
    one = store.add(one, 1.0, "requested")
    for time, state in enumerate(["SCHEDULED", "PREPARING", "RUNNING", "TERMINATING", "TERMINATED"], start=2):
        one = store.change(one, state, float(time), "because %d" % time)
    assert store.history(one.id) == [
        StateChange(1.0, "", "PENDING", "requested"),
        StateChange(2.0, "PENDING", "SCHEDULED", "because 2"),
        StateChange(3.0, "SCHEDULED", "PREPARING", "because 3"),
        StateChange(4.0, "PREPARING", "RUNNING", "because 4"),
        StateChange(5.0, "RUNNING", "TERMINATING", "because 5"),
        StateChange(6.0, "TERMINATING", "TERMINATED", "because 6"),
    ]
    found = store.need(one.id)
    assert (found.state, found.changed, found.reason) == ("TERMINATED", 6.0, "because 6")


def test_changes_of_the_same_moment_keep_their_order(store: Store) -> None:
    one = row()
    one = store.add(one, 1.0, "")
    one = store.change(one, "SCHEDULED", 1.0, "")
    one = store.change(one, "PREPARING", 1.0, "")
    assert [note.after for note in store.history(one.id)] == ["PENDING", "SCHEDULED", "PREPARING"]


def test_a_change_that_the_table_does_not_have_changes_nothing(store: Store) -> None:
    one = row()
    one = store.add(one, 1.0, "requested")
    with pytest.raises(StateError, match=exactly("Session train is PENDING and cannot become RUNNING.")):
        one = store.change(one, "RUNNING", 2.0, "no")
    assert store.need(one.id).state == "PENDING"
    assert len(store.history(one.id)) == 1


@pytest.mark.parametrize(
    ("path", "is_held"),
    [
        (["SCHEDULED"], True),
        (["SCHEDULED", "PREPARING"], True),
        (["SCHEDULED", "PREPARING", "RUNNING"], False),
        (["SCHEDULED", "ERROR"], False),
        (["SCHEDULED", "TERMINATING"], True),
        (["SCHEDULED", "TERMINATING", "TERMINATED"], False),
        (["CANCELLED"], False),
    ],
)
def test_a_lease_lasts_as_long_as_a_controller_works_on_it(store: Store, path: list[str], is_held: bool) -> None:
    one = row(holder=Holder(pid=1), lease=50.0)
    one = store.add(one, 1.0, "")
    for state in path:
        one = store.change(one, state, 2.0, "")
    found = store.need(one.id)
    assert (found.holder, found.lease) == ((Holder(pid=1), 50.0) if is_held else (None, 0.0))


def test_a_name_is_unique_among_live_sessions_of_an_owner(store: Store) -> None:
    first = row()
    first = store.add(first, 1.0, "")
    store.add(row(owner="bob"), 1.0, "")
    again = SessionRecord("another", "train", "alice", "default", "PENDING")
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"), store.transaction():
        again = store.add(again, 2.0, "")
    assert store.get("another") is None
    first = store.change(first, "CANCELLED", 3.0, "")
    again = store.add(again, 4.0, "")
    found = store.find("train", "alice")
    assert found is not None
    assert found.id == "another"
    assert store.find("train", "carol") is None


def test_lists(store: Store) -> None:
    for number, (name, owner) in enumerate([("aaaa", "alice"), ("bbbb", "bob"), ("cccc", "alice")]):
        store.add(row(name, owner), 10.0 - number, "")
    store.change(store.need("id-alice-aaaa"), "CANCELLED", 11.0, "")
    assert [one.name for one in store.live()] == ["cccc", "bbbb"]
    assert [one.name for one in store.select(None, None, ended=True)] == ["cccc", "bbbb", "aaaa"]
    assert [one.name for one in store.select(None, "alice", ended=True)] == ["cccc", "aaaa"]
    assert [one.name for one in store.select("bbbb", None, ended=False)] == ["bbbb"]
    assert store.select("aaaa", "alice", ended=False) == []
    assert [note.after for note in store.select("aaaa", None, ended=True)[0].history] == ["PENDING", "CANCELLED"]
    assert store.states() == {"id-alice-aaaa": "CANCELLED", "id-bob-bbbb": "PENDING", "id-alice-cccc": "PENDING"}


def test_a_session_is_found_by_name_without_a_look_at_the_others_of_its_owner(store: Store) -> None:
    add = "INSERT INTO session (id, name, owner, resource_group, state, created, changed) VALUES (?, ?, ?, '', ?, ?, 0)"
    with store.transaction():
        store.execute(add, ("prep", "prep", "alice", states.RUNNING, 0.0))
        for number in range(1000):
            store.execute(add, (f"id-{number}", f"name-{number}", "alice", states.TERMINATED, number + 1.0))
    steps: list[None] = []
    # Of SQLite's machine: a row that is looked at takes several.
    store._db.set_progress_handler(lambda: steps.append(None), 1)
    assert [row.id for row in store.select("prep", "alice", ended=True, limit=1)] == ["prep"]
    assert len(steps) < 1000


def test_a_session_that_is_not_there(store: Store) -> None:
    assert store.get("missing") is None
    with pytest.raises(NotFoundError, match=exactly("There is no session missing in the store.")):
        store.need("missing")


def test_names_are_values_and_never_part_of_a_query(store: Store) -> None:
    store.add(row(request=request()), 1.0, "'; DROP TABLE session; --")
    assert store.find("' OR '1' = '1", "alice") is None
    assert store.select("' OR '1' = '1", None, ended=True) == []
    assert store.need("id-alice-train").reason == "'; DROP TABLE session; --"


def _fail_inside(store: Store) -> None:
    with store.transaction():
        store.add(row(), 1.0, "")
        raise ZeroDivisionError


def test_a_failed_transaction_leaves_nothing(store: Store) -> None:
    with pytest.raises(ZeroDivisionError):
        _fail_inside(store)
    assert store.live() == []
    assert store.history("id-alice-train") == []
    with store.transaction():
        store.add(row(), 1.0, "")
    assert len(store.live()) == 1


def test_reading_only_makes_nothing(folder: Path) -> None:
    opened = Store(str(folder), read_only=True)
    with opened.transaction(keep=False):
        opened.add(row(), 1.0, "")
        assert len(opened.live()) == 1
    assert opened.live() == []
    opened.close()
    assert not folder.exists()


def test_reading_only_changes_nothing(folder: Path, store: Store) -> None:
    store.add(row(), 1.0, "")
    before = everything(folder)
    opened = Store(str(folder), read_only=True)
    with opened.transaction(keep=False):
        opened.change(opened.need("id-alice-train"), "CANCELLED", 2.0, "")
        opened.add(row("other"), 2.0, "")
        assert [one.name for one in opened.live()] == ["other"]
    opened.close()
    assert everything(folder) == before
    assert [one.name for one in store.live()] == ["train"]


def test_reading_a_store_that_was_only_just_made(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    (folder / "sessions.db").touch(mode=0o600)
    opened = Store(str(folder), read_only=True)
    assert opened.live() == []
    opened.close()
    assert everything(folder) == {"sessions.db": b""}


def _add_many(folder: str, owner: str) -> None:
    store = Store(folder)
    for number in range(5):
        with store.transaction():
            known = len(store.live())
            store.add(row("job-%d" % number, owner, priority=known), float(known), "")
    store.close()


def test_the_history_is_in_the_order_of_its_entries_although_the_clock_was_set_back(store: Store) -> None:
    store.add(row(state=states.RUNNING), 100.0, "launched")
    store.note(store.need("id-alice-train"), 50.0, "later")
    assert [entry.reason for entry in store.history("id-alice-train")] == ["launched", "later"]


def test_many_processes_take_turns(folder: Path) -> None:
    processes = [FORK.Process(target=_add_many, args=(str(folder), "owner%d" % number)) for number in range(6)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 6
    opened = Store(str(folder))
    # Each saw exactly those before it: no two transactions overlapped.
    assert [one.priority for one in opened.live()] == list(range(30))
    opened.close()


def _die_inside(folder: str) -> None:
    store = Store(folder)
    with store.transaction():
        store.change(store.need("id-alice-train"), "CANCELLED", 2.0, "never said")
        # Larger than SQLite keeps in memory: the file itself is half written already.
        for number in range(300):
            store.add(row("job-%d" % number, request=request(command="x" * 20000)), 2.0, "")
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_process_killed_inside_a_transaction_leaves_nothing_of_it(
    folder: Path, store: Store, read_only: bool
) -> None:
    store.add(row(request=request()), 1.0, "requested")
    store.close()
    process = FORK.Process(target=_die_inside, args=(str(folder),))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    assert (folder / "sessions.db-journal").exists()
    opened = Store(str(folder), read_only=read_only)
    with opened.transaction(keep=not read_only):
        assert [(one.name, one.state, one.reason) for one in opened.live()] == [("train", "PENDING", "requested")]
        assert len(opened.history("id-alice-train")) == 1
    opened.close()


# A store of the first release has these.
FIRST = ("session", "history")


@pytest.mark.parametrize("kind", ["read", "check mode", "full disk"])
def test_reading_a_store_of_an_earlier_release(kind: str, folder: Path) -> None:
    """Each table that it lacks is there for one transaction, and the file stays as it was."""
    one = row()
    with Store.opened(str(folder)) as store:
        one = store.add(one, 1.0, "requested")
        tables = {name for (name,) in store.query("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for table in sorted(tables.difference(FIRST)):
            store.execute(f"DROP TABLE {table}")
    before = everything(folder)
    found = Store.copy(str(folder)) if kind == "full disk" else Store(str(folder), read_only=True)
    with found.transaction(keep=kind == "full disk"):
        assert found.states() == {one.id: "PENDING"}
        for table in sorted(tables):
            assert found.query(f"SELECT count(*) FROM {table}") == [(int(table in FIRST),)]
        if kind != "read":
            found.change(found.need(one.id), "CANCELLED", 2.0, "ended")
    found.close()
    assert everything(folder) == before
