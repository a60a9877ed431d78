# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stores of release 1.0 in the homes of users are adopted by the store that all users of a head share."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest
from samples import agent, carried_out, context, request
from store_sessions import row_of, running

from ansible_collections.cluster.compute.plugins.module_utils._core import states
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import StateError
from ansible_collections.cluster.compute.plugins.module_utils._head import former_stores
from ansible_collections.cluster.compute.plugins.module_utils._head.former_stores import adopt_former
from ansible_collections.cluster.compute.plugins.module_utils._head.kept_logs import keep_logs, kept_logs
from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._head.upkeep import adopt

A = agent("a")
TRAIN = request(cluster_size=2)
ACCOUNT = pwd.getpwuid(os.geteuid())


@pytest.fixture
def former(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of this user's former store, in a home of the test."""
    home = pwd.struct_passwd((ACCOUNT.pw_name, "x", ACCOUNT.pw_uid, ACCOUNT.pw_gid, "", str(tmp_path / "home"), ""))
    monkeypatch.setattr(former_stores, "_accounts", lambda _gid: iter([home]))
    return tmp_path / "home/.local/state/cluster-compute"


def adopted(tmp_path: Path, check: bool = False) -> list[dict[str, object]]:
    return adopt_former(str(tmp_path / "state"), os.getegid(), check)


def test_sessions_history_and_logs_move_to_the_shared_store(tmp_path: Path, former: Path, store: Store) -> None:
    old = Store(str(former))
    plan = running(old, TRAIN, A)
    waits = launch(old, request(name="waits", cpus=9), context(A)).session
    ended = launch(old, request(name="ended", cpus=9), context(A)).session
    old.change(ended, states.CANCELLED, 2000.0, "ended while it was waiting")
    history = old.history(ended.id)
    old.close()
    keep_logs(str(former), ended.id, [{"logs": [{"hostname": "main1", "text": "the end"}]}])

    assert adopted(tmp_path, check=True) == [{"user": ACCOUNT.pw_name, "folder": str(former), "sessions": []}]
    assert store.states() == {}
    assert adopted(tmp_path)[0]["sessions"] == ["train", "waits", "ended"]
    assert [row.state for row in (store.need(plan.session.id), store.need(waits.id))] == ["RUNNING", "PENDING"]
    assert row_of(store).plan == plan
    assert store.history(ended.id) == history
    assert kept_logs(str(tmp_path / "state"), ended.id)[0]["text"] == "the end"
    assert sorted(path.name for path in former.glob("sessions*")) == ["sessions.db.adopted"]
    assert adopted(tmp_path) == []


def test_a_session_that_was_known_from_its_labels_gets_its_request(tmp_path: Path, former: Path, store: Store) -> None:
    old = Store(str(former))
    plan = running(old, TRAIN, A)
    old.close()
    adopt(store, carried_out([A], plan), 1500.0)
    assert row_of(store).request is None
    adopted(tmp_path)
    assert row_of(store).request == TRAIN


def test_a_name_that_is_in_use_stays_with_the_session_that_has_it(tmp_path: Path, former: Path, store: Store) -> None:
    mine = running(store, TRAIN, A)
    old = Store(str(former))
    launch(old, request(cluster_size=9, cpus=9), context(A))
    old.close()
    assert adopted(tmp_path)[0]["sessions"] == []
    assert row_of(store).id == mine.session.id


def test_a_store_that_cannot_be_read_stays_where_it_is(tmp_path: Path, former: Path) -> None:
    former.mkdir(parents=True)
    former.chmod(0o700)
    (former / "sessions.db").write_bytes(b"no database" * 100)
    with pytest.raises(StateError, match=r"cannot be read: .*not a database; move it away, or repair it"):
        adopted(tmp_path)
    assert (former / "sessions.db").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it becomes another user")
def test_root_reads_the_store_as_its_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link of the user to a store that only root can read is not followed with root's rights."""
    secret = tmp_path / "secret"
    Store(str(secret)).close()
    home = tmp_path / "home"
    (home / ".local/state").mkdir(parents=True)
    (home / ".local/state/cluster-compute").symlink_to(secret)
    account = pwd.struct_passwd(("nobody", "x", 65534, 65534, "", str(home), ""))
    monkeypatch.setattr(former_stores, "_accounts", lambda _gid: iter([account]))
    assert adopted(tmp_path) == []
    assert (secret / "sessions.db").exists()
