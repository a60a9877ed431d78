# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A launch that failed because something else had taken its subnet or a port waits for another placement."""

from __future__ import annotations

from samples import agent, context, request

from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._head.transitions import CHANGES, Change


def test_a_launch_whose_addresses_were_taken_waits_again_but_not_for_ever(store: Store) -> None:
    seen = []
    for attempt in range(4):
        decision = launch(store, request(), context(agent("a"), now=1000.0 + attempt))
        assert decision.verdict == "placed"
        failed = Change(decision.session.id, "", "", "the port is taken", "", 1000.5 + attempt, 600.0, retry=True)
        before, row = CHANGES["failed"](store, failed)
        assert row is not None
        seen.append((before, row.state, row.reason, row.plan is None, row.holder, row.lease))
    assert seen[:3] == [("PREPARING", "PENDING", "the port is taken", True, None, 0.0)] * 3
    assert seen[3][:2] == ("PREPARING", "ERROR")


def test_a_failed_repair_is_not_retried(store: Store) -> None:
    decision = launch(store, request(), context(agent("a")))
    CHANGES["running"](store, Change(decision.session.id, "", "", "", "", 1001.0, 600.0))
    failed = Change(decision.session.id, "", "", "the port is taken", "", 1002.0, 600.0, retry=True)
    _before, row = CHANGES["failed"](store, failed)
    assert row is not None
    assert row.state == "RUNNING"
