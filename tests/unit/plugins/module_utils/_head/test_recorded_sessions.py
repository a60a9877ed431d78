# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A store and labels that were recorded before release 1.0.0: their sessions are listed, launched, ended and adopted.

Never record them again: they are what an update of the collection finds.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from samples import agent, context
from store_sessions import plan_of, row_of

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.reports import container_entry
from ansible_collections.cluster.compute.plugins.module_utils._head.database import FILE
from ansible_collections.cluster.compute.plugins.module_utils._head.listing import list_sessions
from ansible_collections.cluster.compute.plugins.module_utils._head.maintenance import adopt
from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._head.transitions import Change, make_change
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.label_rules import invalid_labels
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import AgentReport, EngineNetwork

RECORDED = Path(__file__).parent / "recorded"
TRAIN = "6513270e-269e-4d37-b2a7-4de452e6b438"
LABELS = yaml.safe_load((RECORDED / "labels.yml").read_text())


@pytest.fixture
def recorded_store(tmp_path: Path) -> Iterator[Store]:
    """The store: train runs with another command than at first, waiting is PENDING, and done has ended."""
    folder = tmp_path / "recorded"
    folder.mkdir(mode=0o700)
    with closing(sqlite3.connect(folder / FILE)) as database:
        database.executescript((RECORDED / "store.sql").read_text())
    opened = Store(str(folder))
    yield opened
    opened.close()


def there(*hostnames: str) -> AgentReport:
    """The agent with these containers of the session train, from their labels alone."""
    listed = [
        {"Id": "e" * 64, "Labels": LABELS[hostname], "State": "running", "Created": 1000} for hostname in hostnames
    ]
    containers = tuple(map(container_entry, listed))
    return replace(agent("a"), containers=containers, networks=(EngineNetwork(session=TRAIN),))


def test_recorded_labels_are_valid() -> None:
    assert [invalid_labels(labels) for labels in LABELS.values()] == ["", "", ""]


def test_recorded_sessions_are_listed(recorded_store: Store) -> None:
    rows = list_sessions(recorded_store.select(None, None, ended=True), [there("main1", "sub1")])
    assert [(row.name, row.owner, row.state, row.size, row.degraded) for row in rows] == [
        ("train", "alice", "RUNNING", 2, ()),
        ("waiting", "alice", "PENDING", 1, ()),
        ("done", "bob", "TERMINATED", 1, ()),
    ]
    assert rows[0].history[-1].reason == "another session_command replaces the former"


def test_the_launch_of_a_recorded_session_changes_nothing_or_restores_it(recorded_store: Store) -> None:
    asked = row_of(recorded_store).request
    assert asked is not None
    same = launch(recorded_store, asked, context(there("main1", "sub1"), now=2000.0))
    assert (same.outcome, same.session.id) == ("running", TRAIN)
    lost = launch(recorded_store, asked, context(there("main1"), now=2001.0))
    assert (lost.outcome, lost.missing) == ("repair", ("sub1",))
    kept = dict(plan_of(lost).containers[1].labels)
    assert kept.keys() == LABELS["sub1"].keys()


def test_a_recorded_session_that_waits_is_launched(recorded_store: Store) -> None:
    asked = row_of(recorded_store, "waiting").request
    assert asked is not None
    assert launch(recorded_store, asked, context(agent("b", cpus=8), now=2000.0)).outcome == "placed"


def test_a_recorded_session_is_ended(recorded_store: Store) -> None:
    end = Change("", "train", "alice", "", "", 2000.0, 600.0, agents=(there("main1", "sub1"),), reached=("a",))
    before, row = make_change(recorded_store, "terminating", end)
    assert row is not None
    assert (before, row.id, row.state) == ("RUNNING", TRAIN, "TERMINATING")
    make_change(recorded_store, "terminated", replace(end, id=TRAIN))
    assert recorded_store.need(TRAIN).state == "TERMINATED"


def test_a_session_with_recorded_labels_is_adopted_and_ended(lost_store: Store) -> None:
    agents = (there("main1", "sub1"),)
    adopt(lost_store, agents, 2000.0)
    [listed] = list_sessions([row_of(lost_store)], agents)
    assert (listed.id, listed.state, listed.size, listed.degraded) == (TRAIN, "RUNNING", 2, ())
    end = Change(TRAIN, "", "", "", "", 2000.0, 600.0, agents=agents, reached=("a",))
    make_change(lost_store, "terminating", end)
    make_change(lost_store, "terminated", end)
    assert (lost_store.need(TRAIN).state, lost_store.need(TRAIN).reason) == ("TERMINATED", "every container is removed")
