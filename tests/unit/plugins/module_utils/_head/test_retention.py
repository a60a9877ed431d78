# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long sessions that have ended stay in the store, and their logs beside it."""

from __future__ import annotations

import os
import uuid
from dataclasses import replace
from pathlib import Path

import pytest
from samples import agent, carried_out, context, request, seen_with, with_apps
from store_sessions import running

from ansible_collections.cluster.compute.plugins.module_utils._head.kept_logs import remove_logs, surplus_logs
from ansible_collections.cluster.compute.plugins.module_utils._head.maintenance import adopt, expired, removable, retire
from ansible_collections.cluster.compute.plugins.module_utils._head.queue_pass import note_degraded
from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.session_record import (
    Requester,
    SessionRecord,
    Update,
)
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._head.transitions import Change, make_change
from ansible_collections.cluster.compute.plugins.module_utils._shared import states
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.decision import Holder
from ansible_collections.cluster.compute.plugins.module_utils._steps import queue
from ansible_collections.cluster.compute.plugins.module_utils._steps.step import Head

DAY = 86400.0
A = agent("a")


def ended(store: Store, name: str, changed: float, state: str = states.CANCELLED) -> str:
    identity = str(uuid.uuid5(uuid.NAMESPACE_DNS, name))
    row = SessionRecord(identity, name, "alice", "default", states.PENDING, request=request(name=name))
    row = store.add(row, changed - 1, "requested")
    if state != states.PENDING:
        row = store.change(row, state, changed, "over")
    return row.id


def test_what_ended_long_ago_goes_with_its_history(store: Store) -> None:
    old, new, waits = (
        ended(store, "old-1", DAY),
        ended(store, "new-1", 50 * DAY),
        ended(store, "wait", DAY, "PENDING"),
    )
    now = 92 * DAY
    assert expired(store, [], now, days=0) == []
    assert expired(store, [], now, days=90) == [old]
    store.apply(Update(store.need(old), requester=Requester(7, "alice")))
    retire(store, [old], now)
    assert store.requester(old) is None
    assert [row.id for row in store.select(None, None, ended=True)] == [waits, new]
    assert store.history(old) == []
    assert store.query("SELECT count(*) FROM history")[0][0] == 3


def test_a_retired_session_on_a_lost_agent_is_removed_and_never_adopted(store: Store) -> None:
    plan = running(store, request(), A)
    there = carried_out([A], plan)
    [row] = store.live()
    row = store.change(row, states.TERMINATING, 2000.0, "")
    row = store.change(row, states.TERMINATED, 2001.0, "")
    now = 2001.0 + 91 * DAY
    # While an agent shows what is left of it, it stays; a lost agent shows nothing.
    assert expired(store, there, now, 90) == []
    assert expired(store, [A], now, 90) == [plan.session.id]
    retire(store, [plan.session.id], now)
    adopt(store, there, now)
    assert store.live() == []
    assert removable(store, there) == (plan.session.id,)
    assert launch(store, request(cluster_size=4), context(*there, now=now, kept=plan.session.id)).outcome == "placed"


def kept(folder: Path, session: str, size: int, moment: float) -> None:
    path = folder / session
    path.mkdir(parents=True)
    (path / "main1.log").write_bytes(b"x" * size)
    os.utime(path, (moment, moment))


def test_the_oldest_logs_beyond_the_size_go_first(tmp_path: Path) -> None:
    first, second, third = sorted(str(uuid.uuid4()) for _number in range(3))
    for number, session in enumerate((second, third, first)):
        kept(tmp_path, session, 100, 1000.0 + number)
    (tmp_path / "sessions.db").write_bytes(b"x" * 999)
    (tmp_path / "other").mkdir()
    assert surplus_logs(str(tmp_path), set(), 0) == []
    assert surplus_logs(str(tmp_path), set(), 300) == []
    assert surplus_logs(str(tmp_path), set(), 250) == [second]
    assert surplus_logs(str(tmp_path), {second}, 150) == [third]
    assert surplus_logs(str(tmp_path / "missing"), set(), 1) == []


def test_logs_that_another_pass_removes_meanwhile_are_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = sorted(str(uuid.uuid4()) for _number in range(2))
    kept(tmp_path, first, 100, 1000.0)
    kept(tmp_path, second, 100, 1001.0)
    scandir = os.scandir

    def late(path: str) -> object:
        if path.endswith(first):
            (tmp_path / first / "main1.log").unlink()
            (tmp_path / first).rmdir()
        return scandir(path)

    monkeypatch.setattr(os, "scandir", late)
    assert surplus_logs(str(tmp_path), set(), 50) == [second]


def test_only_folders_of_sessions_are_removed(tmp_path: Path) -> None:
    session, linked = str(uuid.uuid4()), str(uuid.uuid4())
    kept(tmp_path / "state", session, 10, 1.0)
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("x")
    (tmp_path / "state" / linked).symlink_to(tmp_path / "precious")
    remove_logs(str(tmp_path / "state"), [session, linked, "../precious", "missing"])
    assert (tmp_path / "precious" / "file").exists()
    assert not (tmp_path / "state" / session).exists()


@pytest.mark.parametrize("check_mode", [True, False])
def test_the_step_removes_sessions_and_logs_and_records_a_sample(tmp_path: Path, check_mode: bool) -> None:
    folder = tmp_path / "state"
    store = Store(str(folder))
    old = ended(store, "old-1", DAY)
    store.close()
    kept(folder, old, 10, 1.0)
    asked: Json = {"keep_days": 90, "keep_logs": 4 << 30, "owner": "alice", "agents": []}
    queue.maintain(Head(str(folder), check_mode), **asked)
    assert (folder / old).exists() == check_mode
    with Store.opened(str(folder), read_only=True) as after:
        assert (after.get(old) is not None) == check_mode
        assert [taken.live for taken in after.samples(0.0)] == [0] * (not check_mode)


def test_a_session_that_loses_a_container_is_noted_once(store: Store) -> None:
    plan = running(store, request(cluster_size=2), A)
    whole, broken = carried_out([A], plan), carried_out([A], plan, states={"sub1": "exited"})
    [row] = store.live()
    assert note_degraded(store, whole, "alice", 2000.0) == []
    assert note_degraded(store, broken, "bob", 2000.0) == []
    assert [one.name for one in note_degraded(store, broken, "alice", 2000.0)] == ["train"]
    assert note_degraded(store, broken, "alice", 2001.0) == []
    assert note_degraded(store, whole, "alice", 2002.0) == []
    notes = [(entry.time, entry.reason) for entry in store.history(row.id)][4:]
    reason = "degraded: sub1 on a ended with exit code 137"
    assert notes == [(2000.0, reason), (2002.0, "every container runs again")]
    assert store.need(row.id).changed == row.changed


def test_a_loss_after_a_repair_whose_controller_is_gone_is_noted(store: Store) -> None:
    plan = running(store, request(cluster_size=2), A)
    [row] = store.live()
    row = replace(row, holder=Holder(pid=7), lease=2000.0)
    store.save(row)
    broken = carried_out([A], plan, states={"sub1": "exited"})
    assert note_degraded(store, broken, "alice", 2000.0) == []
    assert [one.name for one in note_degraded(store, broken, "alice", 2001.0)] == ["train"]


def test_a_session_with_an_app_that_stays_down_is_noted_once(store: Store) -> None:
    there = carried_out([A], running(store, request(cluster_size=2), A))
    down = with_apps(there, {"name": "web", "state": "failed", "exit_code": 3})
    [row] = store.live()
    assert [one.name for one in note_degraded(store, down, "alice", 2000.0)] == ["train"]
    assert note_degraded(store, down, "alice", 2001.0) == []
    assert note_degraded(store, there, "alice", 2002.0) == []
    reason = "unhealthy: app web has ended with exit code 3 and is not started again"
    assert [entry.reason for entry in store.history(row.id)][4:] == [reason, "apps and commands run again"]


def test_a_session_in_which_the_command_of_a_role_fails_is_noted_once(store: Store) -> None:
    [there] = carried_out([A], running(store, request(cluster_size=2), A))
    main, sub = there.containers
    failed = {"exit_code": 3, "oom_killed": False, "reason": "", "begun": True}
    down = replace(there, containers=(main, seen_with(sub, batch=failed)))
    [row] = store.live()
    assert [one.name for one in note_degraded(store, [down], "alice", 2000.0)] == ["train"]
    assert note_degraded(store, [down], "alice", 2001.0) == []
    assert store.history(row.id)[-1].reason == "unhealthy: sub1: the command ended with exit code 3"


def test_a_repair_that_fails_is_no_further_loss(store: Store) -> None:
    plan = running(store, request(cluster_size=2), A)
    whole, broken = carried_out([A], plan), carried_out([A], plan, states={"sub1": "exited"})
    [row] = store.live()
    assert [one.name for one in note_degraded(store, broken, "alice", 2000.0)] == ["train"]
    make_change(store, "failed", Change(row.id, "", "", "the image is missing", "", 2010.0, 0.0))
    assert note_degraded(store, broken, "alice", 2020.0) == []
    assert store.need(row.id).reason == "the image is missing"
    assert note_degraded(store, whole, "alice", 2030.0) == []
    reason = "degraded: sub1 on a ended with exit code 137"
    assert [entry.reason for entry in store.history(row.id)][4:] == [reason, "every container runs again"]
