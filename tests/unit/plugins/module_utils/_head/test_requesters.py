# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who has requested a session, as the head knows it: no other login launches it for its owner."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path

import pytest
from samples import SESSION, agent, context, request

from ansible_collections.cluster.compute.plugins.module_utils._head.queue_pass import decide
from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.session_record import (
    Requester,
    SessionRecord,
    Update,
)
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import StateError
from ansible_collections.cluster.compute.plugins.module_utils._steps import sessions
from ansible_collections.cluster.compute.plugins.module_utils._steps import store as steps
from ansible_collections.cluster.compute.plugins.module_utils._steps.step import Head

A = agent("a")
LARGE = request(cpus=64, owner="bob")
ALICE = Requester(1001, "alice")


def waiting(store: Store) -> SessionRecord:
    row = store.find("train", "bob")
    assert row is not None
    return row


def test_the_login_of_the_process_is_recorded(store: Store) -> None:
    launch(store, LARGE, context(A))
    assert store.requester(waiting(store).id) == Requester.of_this_process()
    assert Requester.of_this_process().uid == os.geteuid()


def test_a_session_that_waits_is_launched_by_the_login_that_requested_it(store: Store) -> None:
    assert launch(store, LARGE, context(A, requester=ALICE)).outcome == "pending"
    message = (
        r"^Session train of owner bob was requested by the login alice on the head, and only that login launches it"
    )
    with pytest.raises(StateError, match=message):
        launch(store, LARGE, context(agent("a", cpus=128)))
    assert launch(store, LARGE, context(agent("a", cpus=128), requester=ALICE)).outcome == "placed"


def test_a_pass_leaves_the_sessions_of_other_logins(store: Store) -> None:
    launch(store, LARGE, context(A, requester=ALICE))
    large = agent("a", cpus=128)
    found = decide(store, "bob", (), context(large))
    assert ([row.name for row in found.fitting], [row.name for row in found.waiting]) == ([], ["train"])
    assert (
        waiting(store).reason == "it fits, and waits for a pass of the login alice of the head, which has requested it"
    )
    assert [row.name for row in decide(store, "bob", (), context(large, requester=ALICE)).fitting] == ["train"]


def test_a_session_of_an_unknown_login_is_launched(store: Store) -> None:
    """A store of an earlier release does not say who has requested its sessions."""
    launch(store, LARGE, context(A, requester=ALICE))
    store._db.execute("DELETE FROM requester")
    assert launch(store, LARGE, context(agent("a", cpus=128))).outcome == "placed"


def test_a_session_that_is_forgotten_leaves_no_requester(store: Store) -> None:
    launch(store, LARGE, context(A))
    row = waiting(store)
    store.forget(row)
    assert store.requester(row.id) is None


@pytest.mark.parametrize(
    ("viewer", "requester", "is_whole"),
    [("bob", ALICE, True), ("carol", ALICE, False), ("carol", Requester.of_this_process(), True)],
)
def test_the_owner_and_the_login_that_requested_a_session_see_its_whole_request(
    store: Store, tmp_path: Path, viewer: str, requester: Requester, is_whole: bool
) -> None:
    asked = request(cpus=64, owner="bob", command="work")
    launch(store, asked, context(A, requester=requester))
    head = Head(str(tmp_path / "state"))
    found = sessions.request(head, "train", "bob", viewer)
    assert (found["request"] == asked.to_json(), "command" in found["request"]) == (is_whole, is_whole)
    assert sessions.request(head, "other", "bob", viewer) == {"request": None}


@pytest.mark.parametrize(
    ("owner", "requester", "is_refused"),
    [
        ("bob", None, False),
        ("bob", Requester.of_this_process(), False),
        ("bob", Requester(os.geteuid() + 1, "alice"), True),
        ("carol", Requester.of_this_process(), True),
    ],
)
def test_only_the_login_that_requested_a_session_makes_images_of_it(
    owner: str, requester: Requester | None, is_refused: bool, tmp_path: Path
) -> None:
    """A name of an owner proves nothing: any login of the head may write it."""
    with Store.opened(str(tmp_path)) as store:
        row = SessionRecord(SESSION, "train", "bob", "default", "PENDING", request=LARGE)
        row = store.add(row, 1.0, "")
        if requester:
            store.apply(Update(row, requester=requester))
    message = "^Session train of bob is another login's: only the login that launched it makes images of it"
    with pytest.raises(StateError, match=message) if is_refused else nullcontext():
        steps.check_commit(Head(str(tmp_path)), SESSION, owner, "team/train:2")
