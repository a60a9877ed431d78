# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Single values of a store that are damaged: a session keeps its containers, and what lists show stays whole."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from samples import SESSION, agent, carried_out, context, plan, request

from ansible_collections.cluster.compute.plugins.module_utils._head.maintenance import RESTORED, adopt
from ansible_collections.cluster.compute.plugins.module_utils._head.queue_pass import decide, note_degraded
from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.session_record import SessionRecord
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._head.transitions import Change, apply_change
from ansible_collections.cluster.compute.plugins.module_utils._shared import states
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.decision import FencedAgent, Holder
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.validation import arrived
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.view import SessionList
from ansible_collections.cluster.compute.plugins.module_utils._steps.queue import maintain
from ansible_collections.cluster.compute.plugins.module_utils._steps.sessions import list_all
from ansible_collections.cluster.compute.plugins.module_utils._steps.step import Head
from ansible_collections.cluster.compute.plugins.module_utils._steps.store import usage
from ansible_collections.cluster.compute.plugins.plugin_utils._output.lists import list_lines
from ansible_collections.cluster.compute.plugins.plugin_utils._output.page import page_of

PLAN = plan(request(cluster_size=2), "aa")
AGENTS = carried_out([agent("a")], PLAN)
KEYS = ("id", "state", "name", "owner")
REPORTS = [
    {
        "name": "a",
        "capacity": {"millicpus": 4000, "memory": 16 << 30},
        "containers": [one.to_json() for one in AGENTS[0].containers],
    }
]


def recorded(path: Path, state: str, name: str = "", session: str = "") -> Json:
    usual = {"owner": "alice", "reason": "", "result": "", "now": 2.0, "lease": 600.0, "holder": Holder(user="alice")}
    change = Change(id=session, name=name, agents=AGENTS, reached=("a",), **usual)  # type: ignore[arg-type]
    return apply_change(str(path.parent), state, change, check_mode=False)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of a store with a running session."""
    with Store.opened(str(tmp_path)) as store:
        store.add(SessionRecord(SESSION, "train", "alice", "default", states.RUNNING, plan=PLAN), 1.0, "launched")
    return tmp_path / "sessions.db"


def damage_row(path: Path, **columns: Any) -> None:
    with closing(sqlite3.connect(path)) as damaged:
        for column, value in columns.items():
            damaged.execute(f"UPDATE session SET {column} = ?", (value,))
        damaged.commit()


ODD = ("x", b"\xff", "two\nlines", "\x1b[2J", "x" * 5000)


@pytest.mark.parametrize(
    "columns",
    [
        {"id": None},
        *({key: odd} for key in KEYS for odd in ODD),
        *({key: odd, "plan": "{"} for key in ("id", "state") for odd in ODD),
    ],
    ids=repr,
)
def test_a_session_with_a_damaged_key_keeps_its_containers_and_is_listed_repaired_and_ended_by_its_name(
    path: Path, columns: Json
) -> None:
    damage_row(path, **columns)
    head = Head(str(path.parent))
    [listed] = list_all(head, REPORTS, owner="alice")["sessions"]
    assert (listed["id"], listed["state"]) == (SESSION, states.RUNNING)
    assert RESTORED in [entry["reason"] for entry in listed["history"]]
    with Store.opened(head.directory) as store:
        other = launch(store, request(name="other"), context(*AGENTS))
        assert (other.outcome, other.remove) == ("placed", ())
    with Store.opened(head.directory) as store:
        again = launch(store, request(cluster_size=2), context(*AGENTS))
        assert (again.outcome, again.session.id, again.remove) == ("running", SESSION, ())
        assert [entry.reason for entry in store.history(SESSION)].count(RESTORED) == 1
    assert recorded(path, "terminating", name="train")["session"]["id"] == SESSION
    assert recorded(path, "terminated", session=SESSION)["session"]["state"] == states.TERMINATED


@pytest.mark.parametrize("key", KEYS)
def test_a_restored_session_keeps_its_reason_and_what_was_noted_last(path: Path, key: str) -> None:
    """A pass that took the restoration for the last note would note a second time that the session is degraded."""
    lacking = carried_out([agent("a")], PLAN, states={"sub1": "gone"})
    with Store.opened(str(path.parent)) as store:
        [noted] = note_degraded(store, lacking, "alice", 2.0)
    damage_row(path, **{key: "x"})
    with Store.opened(str(path.parent)) as store:
        adopt(store, lacking, 3.0)
        assert store.need(SESSION).reason == noted.reason
        assert note_degraded(store, lacking, "alice", 4.0) == []
        assert RESTORED in [entry.reason for entry in store.history(SESSION)]


@pytest.mark.parametrize("key", KEYS)
def test_the_end_of_a_restored_session_says_how_its_command_ended(path: Path, key: str) -> None:
    with Store.opened(str(path.parent)) as store:
        row = store.need(SESSION)
        row = replace(row, result="FAILURE")
        row = store.note(row, 2.0, "the command ended with exit code 3")
    damage_row(path, **{key: "x"})
    assert recorded(path, "terminating", name="train")["session"]["id"] == SESSION
    assert recorded(path, "terminated", session=SESSION)["session"]["reason"] == "the command ended with exit code 3"


@pytest.mark.parametrize("column", KEYS)
def test_a_waiting_session_with_a_damaged_key_waits_on(tmp_path: Path, column: str) -> None:
    head, one = Head(str(tmp_path)), context(agent("a"))
    with Store.opened(head.directory) as store:
        assert launch(store, request(gpus=1), one).outcome == "pending"
    damage_row(tmp_path / "sessions.db", **{column: "x"})
    assert [session["state"] for session in list_all(head, owner="alice")["sessions"]] == [states.PENDING]
    with Store.opened(head.directory) as store:
        assert not launch(store, request(gpus=1), one).is_new
        assert [row.name for row in decide(store, "alice", (), one).waiting] == ["train"]


@pytest.mark.parametrize("columns", [{"state": "x"}, {"state": "x", "id": "x"}], ids=repr)
def test_a_session_whose_state_was_damaged_after_its_end_has_ended(path: Path, columns: Json) -> None:
    for state in ("terminating", "terminated"):
        recorded(path, state, "train", SESSION)
    damage_row(path, **columns)
    with Store.opened(str(path.parent)) as store:
        adopt(store, AGENTS, 3.0)
        assert store.need(SESSION).state == states.TERMINATED
        assert launch(store, request(), context(agent("a"))).is_new


@pytest.mark.parametrize("value", [1e300, -1e300, "1e999", 1e15])
@pytest.mark.parametrize("column", ["began", "ended"])
def test_times_that_cannot_be_are_in_no_report_of_use(path: Path, column: str, value: object) -> None:
    with Store.opened(str(path.parent)) as store:
        assert launch(store, request(name="other"), context(*AGENTS, now=3600.0)).outcome == "placed"
        store.execute(f"UPDATE holding SET {column} = ? WHERE session = ?", (value, SESSION))
    assert [(one["name"], one["sessions"]) for one in usage(Head(str(path.parent)))["usage"]][-1] == ("alice", 1)


def test_endless_gpus_stop_no_report_of_use(path: Path) -> None:
    with Store.opened(str(path.parent)) as store:
        store.execute("UPDATE holding SET gpus = 9e999")
    json.dumps(usage(Head(str(path.parent))), allow_nan=False)


def test_a_page_shows_a_waiting_session_with_a_damaged_request_before_the_queue(tmp_path: Path) -> None:
    head, one = Head(str(tmp_path)), context(agent("a"))
    with Store.opened(head.directory) as store:
        for name in ("train", "other", "third"):
            assert launch(store, request(name=name, gpus=1), one).outcome == "pending"
        store.execute("UPDATE session SET request = '{' WHERE name = 'other'")
    waiting = page_of(arrived(SessionList, list_all(head, owner="alice"), "answer", "a"))["waiting"]
    assert (waiting[0]["name"], [row["turn"] for row in waiting]) == ("other", ["–", 1, 2])


def test_a_damaged_fence_stops_no_pass(path: Path) -> None:
    head = Head(str(path.parent))
    with Store.opened(head.directory) as store:
        for session in ("x", SESSION):
            store.execute("INSERT INTO fence VALUES ('a', ?, '')", (session,))
    assert maintain(head, "alice", REPORTS, 30, "1G").fenced == {"a": FencedAgent((SESSION,), rejoins=False, swarm="")}


@pytest.mark.parametrize(
    ("part", "values"),
    [
        ("network", {"subnet": "x"}),
        ("network", {"fabric": -5}),
        ("session", {"began": 9e999}),
        ("session", {"began": -1.0}),
        ("session", {"size": 10**30}),
    ],
    ids=str,
)
def test_a_plan_that_cannot_be_stops_no_command_and_its_session_is_known_by_its_labels(
    path: Path, part: str, values: Json
) -> None:
    document = PLAN.to_json()
    damage_row(path, plan=json.dumps({**document, part: {**document[part], **values}}))
    head = Head(str(path.parent))
    [listed] = list_all(head, REPORTS, owner="alice")["sessions"]
    json.dumps(listed, allow_nan=False)
    assert (listed["id"], listed["size"]) == (SESSION, 2)
    with Store.opened(head.directory) as store:
        assert launch(store, request(name="other"), context(*AGENTS)).outcome == "placed"
        again = launch(store, request(cluster_size=2), context(*AGENTS))
        assert again.plan is not None
        assert (again.outcome, again.session.id, again.plan.addresses) == ("running", SESSION, PLAN.addresses)


@pytest.mark.parametrize("value", [1e300, -1e300, 9e999])
def test_a_time_of_the_history_that_cannot_be_stops_no_list(path: Path, value: float) -> None:
    head = Head(str(path.parent))
    with Store.opened(head.directory) as store:
        store.execute("UPDATE history SET time = ?", (value,))
    found = list_all(head, REPORTS, owner="alice")
    json.dumps(found, allow_nan=False)
    listed = arrived(SessionList, found, "answer", "a")
    assert any("train" in line for line in list_lines(listed, ""))
    assert [row["name"] for row in page_of(listed)["sessions"]] == ["train"]


@pytest.mark.parametrize("is_over", [False, True])
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("column", [*KEYS, "resource_group", "result", "reason"])
def test_a_damaged_text_keeps_no_controller_from_a_list(path: Path, column: str, odd: Any, is_over: bool) -> None:
    if is_over:
        recorded(path, "terminating", name="train")
        recorded(path, "terminated", session=SESSION)
    damage_row(path, **{column: odd})
    answer = list_all(Head(str(path.parent)), REPORTS, owner=None, ended=True)
    assert arrived(SessionList, answer, "answer", "head1").sessions
