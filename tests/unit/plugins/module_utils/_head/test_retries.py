# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A launch that failed because something else had taken its subnet, a port or a name waits for another placement."""

from __future__ import annotations

from samples import agent, carried_out, context, request
from store_sessions import plan_of

from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._head.transitions import Change, make_change
from ansible_collections.cluster.compute.plugins.module_utils._shared import label


def test_a_launch_whose_addresses_were_taken_waits_again_but_not_for_ever(store: Store) -> None:
    seen = []
    for attempt in range(4):
        decision = launch(store, request(), context(agent("a"), now=1000.0 + attempt))
        assert decision.outcome == "placed"
        failed = Change(decision.session.id, "", "", "the port is taken", "", 1000.5 + attempt, 600.0, retry=True)
        before, row = make_change(store, "failed", failed)
        assert row is not None
        seen.append((before, row.state, row.reason, row.plan is None, row.holder, row.lease))
    assert seen[:3] == [("PREPARING", "PENDING", "the port is taken", True, None, 0.0)] * 3
    assert seen[3][:2] == ("PREPARING", "ERROR")


def test_a_failed_repair_is_not_retried(store: Store) -> None:
    decision = launch(store, request(), context(agent("a")))
    make_change(store, "running", Change(decision.session.id, "", "", "", "", 1001.0, 600.0))
    failed = Change(decision.session.id, "", "", "the port is taken", "", 1002.0, 600.0, retry=True)
    _before, row = make_change(store, "failed", failed)
    assert row is not None
    assert row.state == "RUNNING"


def test_a_name_that_something_else_has_is_not_used(store: Store) -> None:
    """Neither by a launch nor by a repair; the digest of a container is the same with either name."""
    there = agent("a", names=("registry", "alice.train.sub1"))
    asked = request(cluster_size=2)
    made = plan_of(launch(store, asked, context(there)))
    other = "alice.train.sub1." + made.session.id[:8]
    assert [container.name for container in made.containers] == ["alice.train.main1", other]
    make_change(store, "running", Change(made.session.id, "", "", "", "", 1001.0, 600.0))
    [lost] = carried_out([agent("a", names=("alice.train.main1",))], made, states={"main1": "gone"})
    repaired = launch(store, asked, context(lost, now=2000.0))
    assert (repaired.outcome, repaired.missing) == ("repair", ("main1",))
    [main, sub] = plan_of(repaired).containers
    assert (main.name, sub.name) == ("alice.train.main1." + made.session.id[:8], "alice.train.sub1")
    specs = [[one.labels[label.SPEC] for one in each.containers] for each in (made, plan_of(repaired))]
    assert specs[0] == specs[1]
