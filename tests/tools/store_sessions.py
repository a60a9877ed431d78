# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sessions in a store, for tests of the head."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from samples import context

from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.scheduling_queue import turns
from ansible_collections.cluster.compute.plugins.module_utils._head.session_record import SessionRecord
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._shared import label, states
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.decision import Decision
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Plan
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import AgentReport
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.policy import Policy, QueueRules
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request import Request


@contextmanager
def memory_store() -> Iterator[Store]:
    """An empty store on a file system in memory, if the machine has one: some tests make hundreds."""
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as folder, closing(Store(str(Path(folder) / "state"))) as store:
        yield store


def running(store: Store, asked: Request, *agents: AgentReport, now: float = 1000.0) -> Plan:
    """The plan of a session that is launched now and RUNNING in the store."""
    decision = launch(store, asked, context(*agents, now=now))
    assert decision.outcome == "placed"
    store.change(store.need(decision.session.id), states.RUNNING, now + 5, "every container is verified")
    return plan_of(decision)


def row_of(store: Store, name: str = "train", owner: str = "alice") -> SessionRecord:
    """The live session of that name."""
    row = store.find(name, owner)
    assert row is not None
    return row


def turns_of(store: Store, agents: Sequence[AgentReport], rules: QueueRules, now: float) -> list[str]:
    """The IDs of the sessions that wait, first to last."""
    return turns(store.snapshot(context(*agents, now=now, policy=Policy(rules=rules))))


def plan_of(decision: Decision) -> Plan:
    """The plan of a decision that has one."""
    assert decision.plan is not None
    return decision.plan


def relabelled(plan: Plan, launch_id: str) -> Plan:
    """The same plan as it would be under another launch ID."""
    document = plan.to_json()
    document["session"]["launch"] = launch_id
    for labelled in [document["network"], *document["containers"]]:
        labelled["labels"][label.LAUNCH] = launch_id
    return Plan.from_json(document)
