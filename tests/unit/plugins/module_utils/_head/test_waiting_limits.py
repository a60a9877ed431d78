# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The policy bounds how many sessions of an owner wait, and for how long."""

from __future__ import annotations

import pytest
from samples import agent, context, exactly, request
from store_sessions import row_of

from ansible_collections.cluster.compute.plugins.module_utils._head.queue_pass import decide
from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._shared import states
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.policy import parse_policy

A, NOTHING = agent("a"), agent("a", cpus=0)
TOO_LONG = "it waited longer than the 3600 seconds that the policy of this site permits"


def asked(store: Store, name: str, limits: Json, owner: str = "alice", now: float = 1000.0, free: bool = False) -> str:
    """The state of a session after this request."""
    site = parse_policy({"default": limits})
    made = launch(store, request(name=name, owner=owner), context(A if free else NOTHING, now=now, site=site))
    row = store.need(made.session.id)
    return row.state


def test_an_owner_has_no_more_waiting_sessions_than_the_policy_permits(store: Store) -> None:
    limits = {"waiting": 2}
    assert [asked(store, name, limits) for name in ("job-one", "job-two", "job-two")] == [states.PENDING] * 3
    rule = (
        "would wait, and the policy of this site permits alice 2 waiting sessions at a time; end one with terminate.yml"
    )
    with pytest.raises(InputError, match=exactly(f"session_name: 'job-three': {rule}.")), store.transaction():
        asked(store, "job-three", limits)
    assert store.find("job-three", "alice") is None
    assert asked(store, "of-bob", limits, owner="bob") == states.PENDING


def test_a_session_that_fits_does_not_count_as_waiting(store: Store) -> None:
    assert asked(store, "fits", {"waiting": 0}, free=True) == states.PREPARING


def test_a_session_that_has_waited_longer_than_the_policy_permits_is_cancelled_by_the_next_pass(store: Store) -> None:
    limits: Json = {"patience": 3600}
    asked(store, "old-job", limits, now=1000.0)
    asked(store, "of-bob", limits, owner="bob", now=1000.0)
    asked(store, "new-job", limits, now=2000.0)
    site = parse_policy({"default": limits, "owners": {"bob": {"patience": 7200}}})
    found = decide(store, "alice", (), context(A, now=4601.0, site=site))
    assert [row.name for row in found.fitting] == ["new-job"]
    [old] = store.select("old-job", None, ended=True)
    assert (old.state, old.reason) == (states.CANCELLED, TOO_LONG)
    assert row_of(store, "of-bob", "bob").state == states.PENDING


def test_a_request_whose_session_has_waited_too_long_is_a_new_one(store: Store) -> None:
    limits: Json = {"patience": 3600}
    asked(store, "old-job", limits, now=1000.0)
    first = row_of(store, "old-job")
    assert asked(store, "old-job", limits, now=9000.0) == states.PENDING
    assert row_of(store, "old-job").id != first.id
    assert store.need(first.id).reason == TOO_LONG
