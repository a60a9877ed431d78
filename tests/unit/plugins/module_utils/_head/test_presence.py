# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host has of a head: the sessions of a store, and a policy."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from samples import SESSION, request

from ansible_collections.cluster.compute.plugins.module_utils._head import presence as presences
from ansible_collections.cluster.compute.plugins.module_utils._head.database import FILE
from ansible_collections.cluster.compute.plugins.module_utils._head.policy_file import write_document
from ansible_collections.cluster.compute.plugins.module_utils._head.presence import presence
from ansible_collections.cluster.compute.plugins.module_utils._head.session_record import SessionRecord
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._shared.constants import STATE_DIR
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.decision import Holder
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import StateError
from ansible_collections.cluster.compute.plugins.module_utils._steps import session
from ansible_collections.cluster.compute.plugins.module_utils._steps.step import Head

NONE = {"sessions": 0, "policy": False}


def test_only_sessions_that_wait_or_run_count(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    assert presence(str(folder)) == NONE
    assert not folder.exists(), "nothing is created"
    store = Store(str(folder))
    with store.transaction(keep=True):
        store.add(SessionRecord(SESSION, "train", "alice", "default", "PENDING", request=request()), 1.0, "")
    assert presence(str(folder)) == {"sessions": 1, "policy": False}
    with store.transaction(keep=True):
        store.change(store.need(SESSION), "CANCELLED", 2.0, "")
    store.close()
    write_document(str(folder), {})
    assert presence(str(folder)) == {"sessions": 0, "policy": True}


@pytest.mark.parametrize("content", [b"", b"no database at all, but longer than a header of one: " * 9])
def test_a_store_that_cannot_be_read_has_no_session(content: bytes, tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(content)
    assert presence(str(tmp_path)) == NONE


def test_a_site_can_require_a_policy(tmp_path: Path) -> None:
    """The head may have moved in the inventory, and an absent policy has no limits."""
    agents = [{"name": "a", "capacity": {"millicpus": 4000, "memory": 8 << 30}}]
    place = (Head(str(tmp_path / "state")), request(), agents, Holder())
    with pytest.raises(StateError, match=r"^The head has no policy .*/policy\.json, and session_policy is required"):
        session.place(*place, policy="required")
    assert session.place(*place)["outcome"] == "placed"
    write_document(str(tmp_path / "state"), {"default": {}})
    assert session.place(*place, policy="required")["outcome"] == "held"


@pytest.mark.parametrize("was_there", [False, True])
def test_every_user_of_the_head_reads_the_policy_whatever_the_umask_of_root_is(
    was_there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "etc" / "policy.json"
    monkeypatch.setattr(presences, "POLICY_FILE", str(path))
    if was_there:
        path.parent.mkdir(0o700)
    before = os.umask(0o077)
    try:
        write_document(STATE_DIR, {})
    finally:
        os.umask(before)
    assert (path.parent.stat().st_mode & 0o777, path.stat().st_mode & 0o777) == (0o755, 0o644)
