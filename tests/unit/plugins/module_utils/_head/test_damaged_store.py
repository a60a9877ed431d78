# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A store that is damaged or locked: every command says what to do, and sessions end by their labels."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from samples import SESSION, agent, carried_out, context, plan, request

from ansible_collections.cluster.compute.plugins.module_utils._head import database
from ansible_collections.cluster.compute.plugins.module_utils._head.database import DamagedStoreError
from ansible_collections.cluster.compute.plugins.module_utils._head.maintenance import adopt
from ansible_collections.cluster.compute.plugins.module_utils._head.queue_pass import decide
from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.session_record import SessionRecord
from ansible_collections.cluster.compute.plugins.module_utils._head.state_folder import lock_holders
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._head.transitions import Change, apply_change
from ansible_collections.cluster.compute.plugins.module_utils._head.usage import sample
from ansible_collections.cluster.compute.plugins.module_utils._shared import states
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.decision import BegunPass, Holder
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import StateError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.fair_share import decayed_use
from ansible_collections.cluster.compute.plugins.module_utils._steps.queue import begin, maintain
from ansible_collections.cluster.compute.plugins.module_utils._steps.sessions import list_all
from ansible_collections.cluster.compute.plugins.module_utils._steps.step import Head

PLAN = plan(request(cluster_size=2), "aa")
AGENTS = carried_out([agent("a")], PLAN)
LOCK = """
import sqlite3, sys
store = sqlite3.connect(sys.argv[1], isolation_level=None)
store.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
"""


def recorded(path: Path, state: str, **fields: Any) -> Json:
    change = Change(
        **{"id": "", "name": "", "owner": "alice", "reason": "", "result": "", "now": 2.0, "lease": 600.0, **fields},
        agents=AGENTS,
        reached=("a",),
        holder=Holder(user="alice"),
    )
    return apply_change(str(path.parent), state, change, check_mode=False)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of a store with a running session."""
    folder = tmp_path / "state"
    store = Store(str(folder))
    with store.transaction():
        store.add(SessionRecord(SESSION, "train", "alice", "default", states.RUNNING, plan=PLAN), 1.0, "launched")
    store.close()
    return folder / "sessions.db"


def overwritten(path: Path) -> None:
    path.write_bytes(b"x" * path.stat().st_size)


def overwritten_in_the_middle(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"x" * (len(content) - 4096))


def cut(path: Path) -> None:
    os.truncate(path, 5000)


@pytest.mark.parametrize("damage", [overwritten, overwritten_in_the_middle, cut])
def test_a_damaged_store_says_which_file_to_move_and_a_session_ends_by_its_labels(
    path: Path, damage: Callable[[Path], None]
) -> None:
    damage(path)
    advice = rf"the file is damaged: move {path} and, if it is there, {path}-journal to another directory, and run this"
    with pytest.raises(DamagedStoreError, match=re.escape(advice)):
        recorded(path, "running", result="SUCCESS", id=SESSION)
    begun = recorded(path, "terminating", name="train")
    assert (begun["session"]["id"], begun["session"]["state"], begun["remove"]) == (SESSION, states.TERMINATING, [])
    [warning] = begun["warnings"]
    assert advice in warning
    assert warning.endswith("The session ends by its labels; its end is not recorded.")
    ended = recorded(path, "terminated", id=SESSION)
    assert ended["session"]["state"] == states.TERMINATED


def damage_row(path: Path, **columns: Any) -> None:
    with closing(sqlite3.connect(path)) as damaged:
        for column, value in columns.items():
            damaged.execute(f"UPDATE session SET {column} = ?", (value,))
        damaged.commit()


@pytest.mark.parametrize("column", ["plan", "request", "holder"])
@pytest.mark.parametrize("text", ["", "{", "[1]", "5", '{"containers": [5]}', '{"session": {}, "containers": []}'])
def test_a_damaged_row_stops_no_command_and_its_session_ends_by_its_labels(path: Path, column: str, text: str) -> None:
    damage_row(path, **{column: text})
    with Store.opened(str(path.parent)) as store:
        assert launch(store, request(name="other"), context(*AGENTS)).outcome == "placed"
    head = Head(str(path.parent))
    listed = list_all(head, owner="alice", ended=True)["sessions"]
    assert "train" in [session["name"] for session in listed]
    maintain(head, "alice", [], 30, "1G")
    with Store.opened(str(path.parent)) as store:
        assert launch(store, request(cluster_size=2), context(*AGENTS)).session.id == SESSION
    assert recorded(path, "terminating", name="train")["session"]["id"] == SESSION
    assert recorded(path, "terminated", id=SESSION)["session"]["state"] == states.TERMINATED


def test_a_session_with_a_damaged_request_is_not_forgotten(path: Path) -> None:
    damage_row(path, request="{")
    with Store.opened(str(path.parent)) as store:
        store.save(store.need(SESSION))
        adopt(store, [agent("a")], now=2.0)
        assert store.need(SESSION).plan == PLAN


@pytest.mark.parametrize("text", ["null", "{"])
def test_a_session_that_is_forgotten_holds_nothing_more(path: Path, text: str) -> None:
    damage_row(path, request=text, plan=text)
    with Store.opened(str(path.parent)) as store:
        store.note(store.need(SESSION), 1.0, "seen")
        adopt(store, [agent("a")], now=2.0)
        assert [one.ended for one in store.holdings(since=-1.0)] == [1.0]


# A holder with another value than a controller writes is as unknown as one that cannot be read.
UNKNOWN_HOLDERS = ["{", "[1]", "5", "{}", '{"pid": "x"}', '{"pid": 1e99}', '{"user": ["a"]}', '{"former_sizes": 5}']


@pytest.mark.parametrize("text", [*UNKNOWN_HOLDERS, '{"former_sizes": ["a"]}'])
@pytest.mark.parametrize("state", [states.RUNNING, states.TERMINATING])
def test_an_unknown_holder_keeps_its_session_until_its_lease_ends(path: Path, state: str, text: str) -> None:
    damage_row(path, holder=text, lease=1500.0, state=state)
    doing = "repaired" if state == states.RUNNING else "ended"
    with Store.opened(str(path.parent)) as store:
        held = launch(store, request(cluster_size=2), context(*AGENTS, now=1400.0))
        assert (held.outcome, held.reason) == ("held", f"session train is being {doing} by another controller")
        after = launch(store, request(cluster_size=2), context(*AGENTS, now=1501.0))
    assert after.outcome == ("repair" if state == states.RUNNING else "placed")


def test_a_lease_without_a_holder_holds_nothing(path: Path) -> None:
    damage_row(path, holder="null", lease=1500.0, state=states.RUNNING)
    with Store.opened(str(path.parent)) as store:
        assert launch(store, request(cluster_size=2), context(*AGENTS, now=1400.0)).outcome == "running"


REFUSED = (
    "The request of session train in the store is refused: it %s. Nothing is done with it; find out who has changed it there, and "
    "launch it again by the same variables, or end it with terminate.yml"
)


UNREADABLE = "its request in the store is damaged: launch it again by the same variables, or end it with terminate.yml"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("{", ""),
        ("null", ""),
        ("[1]", ""),
        ("[" * 100_000, ""),
        ("{}", ""),
        ({"memory": -(1 << 30)}, "has -1073741824 in memory"),
        ({"gpus": -1}, "has -1.0 in gpus"),
        ({"size": 0}, "has 0 in size"),
        ({"size": "2"}, "has '2' in size"),
        ({"group": "no such\ngroup"}, "has 'no such\\ngroup' in group"),
        ({"mode": "\x1b[31m"}, "has '\\x1b[31m' in mode"),
        ({"millicpus": None, "image": 5}, "has 5 in image"),
        ({"size": 2, "roles": request(roles=[{"name": "ps"}, {"name": "worker"}]).to_json()["roles"]}, "has 2 in size"),
        ({"not_before": "soon"}, "has 'soon' in not_before"),
    ],
)
def test_a_waiting_session_with_a_damaged_request_takes_nothing_and_says_what_to_do_until_a_launch_records_it_again(
    tmp_path: Path, text: str | Json, wrong: str
) -> None:
    head = Head(str(tmp_path))
    one = context(agent("a"))
    with Store.opened(head.directory) as store:
        assert launch(store, request(gpus=1), one).outcome == "pending"
        assert launch(store, request(name="other", gpus=1), one).outcome == "pending"
        asked = json.dumps({**request().to_json(), **text}) if isinstance(text, dict) else text
        store.execute("UPDATE session SET request = ? WHERE name = 'train'", (asked,))
    listed = {one["name"]: one["reason"] for one in list_all(head, owner="alice")["sessions"]}
    assert listed["train"] == (REFUSED % wrong if wrong else UNREADABLE)
    with Store.opened(head.directory) as store:
        waiting = {row.name: row.reason for row in decide(store, "alice", (), one).waiting}
        assert [row.name for row, _request in store.waiting()] == ["other"]
    assert waiting == listed
    with Store.opened(head.directory) as store:
        assert launch(store, request(gpus=1), one).reason == listed["other"]
        assert store.find("train", "alice").reason == listed["other"]


@pytest.mark.parametrize("text", ["{", json.dumps({**request().to_json(), "memory": -1})])
def test_the_end_of_a_waiting_session_keeps_its_damaged_request_and_what_was_wrong_with_it(
    tmp_path: Path, text: str
) -> None:
    head = Head(str(tmp_path))
    with Store.opened(head.directory) as store:
        assert launch(store, request(gpus=1), context(agent("a"))).outcome == "pending"
        store.execute("UPDATE session SET request = ?", (text,))
    [waiting] = list_all(head, owner="alice")["sessions"]
    assert recorded(tmp_path / "sessions.db", "terminating", name="train")["session"]["state"] == states.CANCELLED
    [ended] = list_all(head, owner="alice", ended=True)["sessions"]
    assert waiting["reason"] in [entry["reason"] for entry in ended["history"]]
    with Store.opened(head.directory) as store:
        assert store.query("SELECT request FROM session") == [(text,)]


# Columns of each table that commands read.
TEXTS = [
    *(("session", column) for column in ("name", "resource_group", "result", "reason", "request", "plan", "holder")),
    *(("history", column) for column in ("time", "before", "after", "reason")),
    *(("sample", column) for column in ("time", "document")),
    *(("pass", column) for column in ("holder", "lease")),
    ("requester", "login"),
    ("holding", "owner"),
]


@pytest.mark.parametrize("value", ["X'7b22c3' || rowid", "CAST(X'7b22c3' || rowid AS BLOB)"], ids=["text", "bytes"])
@pytest.mark.parametrize(("table", "column"), TEXTS, ids=map(".".join, TEXTS))
def test_bytes_that_are_no_text_stop_no_command(path: Path, table: str, column: str, value: str) -> None:
    head, holder = Head(str(path.parent)), Holder("desk", user="alice", pid=4711)
    assert begin(head, "alice", holder, 600).begun
    with Store.opened(head.directory) as store:
        assert launch(store, request(name="waits", gpus=1), context(*AGENTS)).outcome == "pending"
        store.add_sample(sample([], [], time.time()))
        store.execute(f"UPDATE {table} SET {column} = {value}")
    listed = list_all(head, owner="alice", ended=True, samples=3600)
    assert len(listed["sessions"]) == 2
    json.dumps(listed)
    maintain(head, "alice", [], 30, "1G")
    assert begin(head, "alice", holder, 600).begun == (column == "lease")
    with Store.opened(head.directory) as store:
        assert launch(store, request(name="other"), context(*AGENTS)).outcome == "placed"
        decide(store, "alice", (), context(*AGENTS))
    ended = [recorded(path, state, id=SESSION) for state in ("terminating", "terminated")]
    json.dumps(ended)
    assert [one["session"]["state"] for one in ended] == [states.TERMINATING, states.TERMINATED]


@pytest.mark.parametrize("column", ["began", "millicpus", "memory", "gpus"])
def test_damaged_numbers_of_an_ended_session_stop_no_command(path: Path, column: str) -> None:
    for state in ("terminating", "terminated"):
        recorded(path, state, id=SESSION, name="train")
    damage_row(path, changed="x")
    with Store.opened(str(path.parent)) as store:
        store.execute(f"UPDATE holding SET {column} = 'x'")
        assert launch(store, request(name="other"), context(*AGENTS)).outcome == "placed"
        assert store.ends([SESSION])[SESSION].time == 0.0
        assert "alice" in decayed_use(store.holdings(), half_life=60.0, now=3.0)


@pytest.mark.parametrize("text", ["null", *UNKNOWN_HOLDERS])
def test_an_unknown_holder_keeps_its_pass_until_its_lease_ends(tmp_path: Path, text: str) -> None:
    head, holder = Head(str(tmp_path)), Holder("desk", user="alice", pid=4711)
    assert begin(head, "alice", holder, 600).begun
    with Store.opened(head.directory) as store:
        store.execute("UPDATE pass SET holder = ?", (text,))
    second = begin(head, "alice", holder, 600)
    by = "A pass over the queue of alice is in progress by another controller: it launches what fits now."
    assert second == BegunPass(holder=Holder(), summary=(by,))
    with Store.opened(head.directory) as store:
        store.execute("UPDATE pass SET lease = 0")
    assert begin(head, "alice", holder, 600).begun


def test_a_damaged_store_knows_no_session_without_labels(path: Path) -> None:
    overwritten(path)
    begun = recorded(path, "terminating", name="other")
    assert begun["session"] == {}
    assert begun["warnings"][0].endswith("the history are lost.")


def test_a_locked_store_names_the_process_that_holds_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_BUSY_TIMEOUT", 0.1)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", LOCK, str(path)], **pipes) as process:  # type: ignore[call-overload]
        assert process.stdout.readline() == b"locked\n"
        program = Path(f"/proc/{process.pid}/comm").read_text().strip()
        with pytest.raises(StateError) as caught:
            recorded(path, "terminating", name="train")
        process.stdin.close()
    assert caught.value.message == (
        f"The session store {path} cannot be used: database is locked; process {process.pid} ({program}) locks it; end it, "
        "or wait for it, and run this command again."
    )


def test_a_holder_that_the_kernel_does_not_show_is_found_by_a_command(tmp_path: Path) -> None:
    assert lock_holders(str(tmp_path / "none")) == []
    assert lock_holders(str(tmp_path), str(tmp_path / "none")) == []
    refusal = database._refusal("/x/sessions.db", "database is locked").message
    assert (
        "; `fuser -v /x/sessions.db` names the process; end it, or wait for it, and run this command again." in refusal
    )


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "null",
        "[1]",
        "[" * 100_000,
        {"time": "now"},
        {"used": {}},
        {"capacity": {"gpus": 1e999}},
        {"measured": None},
    ],
)
def test_a_list_leaves_out_a_damaged_sample(path: Path, text: str | Json) -> None:
    whole = sample([], [], time.time())
    head = Head(str(path.parent))
    with Store.opened(head.directory) as store:
        store.add_sample(replace(whole, time=whole.time - 60))
        store.add_sample(whole)
        asked = json.dumps({**whole.to_json(), **text}) if isinstance(text, dict) else text
        store.execute("UPDATE sample SET document = ? WHERE time < ?", (asked, whole.time))
    listed = list_all(head, owner="alice", samples=3600)
    assert ([one["name"] for one in listed["sessions"]], listed["samples"]) == (["train"], [whole.to_json()])


@pytest.mark.parametrize("column", ["priority", "created", "changed", "lease"])
@pytest.mark.parametrize("value", ["x", b"\xff", 1e300])
def test_a_damaged_number_of_a_waiting_session_stops_no_command(tmp_path: Path, column: str, value: object) -> None:
    head, one = Head(str(tmp_path)), context(agent("a"))
    with Store.opened(head.directory) as store:
        assert launch(store, request(gpus=1), one).outcome == "pending"
        store.execute(f"UPDATE session SET {column} = ?", (value,))
    assert [session["name"] for session in list_all(head, owner="alice")["sessions"]] == ["train"]
    with Store.opened(head.directory) as store:
        assert launch(store, request(name="other"), one).outcome == "placed"
        assert [row.name for row in decide(store, "alice", (), one).waiting] == ["train"]
