# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each resource group has, what an owner may still have, and whose turn it is."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from samples import GIB, agent, context, request
from store_sessions import plan_of

from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._head.usage import available, list_groups, waits_on_mps
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import Gpu, GpuSharing
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.usage import AgentView, Amounts, Quota
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.policy import parse_policy
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.policy_rules import Use
from ansible_collections.cluster.compute.plugins.module_utils._steps import sessions
from ansible_collections.cluster.compute.plugins.module_utils._steps.step import Head


def listed_agent(name: str, group: str, **changes: Any) -> AgentView:
    """An agent of a list, on which alice has one of four CPUs, and bob another one."""
    one = Amounts(1000, GIB, 0)
    amounts = [Amounts(4000, 8 * GIB, 1), Amounts(2000, 2 * GIB, 0), Amounts(2000, 6 * GIB, 1)]
    return replace(AgentView(name, *amounts, group, owners={"alice": one, "bob": one}), **changes)


AGENTS = [
    listed_agent("a", "default"),
    listed_agent("b", "default,gpu", free=Amounts(2000, 6 * GIB, 0)),
    listed_agent("c", "gpu", schedulable=False),
    listed_agent("d", "gpu", reachable=False),
]


def test_groups_have_what_an_owner_and_all_have_of_the_whole() -> None:
    default, gpu = list_groups(AGENTS, "alice")
    assert (default.group, default.agents, gpu.group, gpu.agents) == ("default", 2, "gpu", 3)
    assert default.capacity == Amounts(8000, 16 * GIB, 2)
    assert default.used.millicpus == 4000
    assert default.own == Amounts(2000, 2 * GIB, 0)
    # The lost agent adds nothing.
    assert gpu.capacity.millicpus == 8000
    assert list_groups(AGENTS, None)[0].own is None


def test_what_an_owner_may_have_of_a_group_is_cut_by_the_quotas() -> None:
    """The quota leaves a CPU and no GPU; of memory, the group has less than the quota."""
    [default, _gpu] = list_groups(AGENTS, "alice", Quota(millicpus=1000, memory=99 * GIB, gpus=0))
    assert default.own_most == Amounts(3000, 16 * GIB, 0)
    assert list_groups(AGENTS, "alice")[0].own_most == default.capacity
    assert list_groups(AGENTS, None)[0].own_most is None


USE = {"alice": Use(1, 2, 2000, 2 * GIB, 0), "bob": Use(1, 2, 2000, 2 * GIB, 0)}


@pytest.mark.parametrize(
    ("policy", "left"),
    [
        ({}, (4000, 12 * GIB, 1)),
        ({"default": {"resource_groups": ["gpu"]}}, (2000, 6 * GIB, 0)),
        ({"default": {"cpus": 3, "gpus": 0.5}}, (1000, 12 * GIB, 0.5)),
        ({"groups": {"both": {"owners": ["alice", "bob"], "cpus": 4.5}}}, (500, 12 * GIB, 1)),
        ({"owners": {"alice": {"cpus": 1}}}, (0, 12 * GIB, 1)),
        ({"owners": {"alice": {"sessions": 1}}}, (0, 0, 0)),
        ({"owners": {"alice": {"sessions": 2, "containers": 3}}}, (4000, 12 * GIB, 1)),
    ],
)
def test_an_owner_may_still_have_what_is_free_and_what_the_quotas_leave(policy: Json, left: tuple[float, ...]) -> None:
    assert available(parse_policy(policy), USE, AGENTS, "alice") == Amounts(*left)


REPORT = {"name": "a", "capacity": {"millicpus": 4000, "memory": 16 * GIB}}


def listed(folder: Path, owner: str | None) -> Json:
    return sessions.list_all(Head(str(folder)), [REPORT], owner=owner)


def test_turns_are_those_of_the_queue_of_all_owners(tmp_path: Path) -> None:
    """The site puts large sessions first: not the order of priority and age."""
    folder = tmp_path / "state"
    store = Store(str(folder))
    with store.transaction():
        for name, owner, cpus in (("small", "alice", 1), ("large", "bob", 3)):
            closed = context(agent("a", schedulable=False))
            launch(store, request(name=name, owner=owner, cpus=cpus), closed)
    store.close()
    policy = folder / "policy.json"
    policy.write_text(json.dumps({"queue": {"size_weight": 2000}}))
    policy.chmod(0o644)
    assert os.stat(policy).st_uid == os.stat(folder).st_uid
    assert {row["name"]: row["turn"] for row in listed(folder, None)["sessions"]} == {"small": 2, "large": 1}
    [own] = listed(folder, "alice")["sessions"]
    assert (own["name"], own["turn"]) == ("small", 2)
    assert [owner["owner"] for owner in listed(folder, "carol")["owners"]] == ["alice", "bob", "carol"]


@pytest.mark.parametrize(
    ("kind", "uid", "warned"), [("mps", 1002, True), ("mps", 1001, False), ("none", 1002, False), ("mig", 1002, False)]
)
def test_a_launch_names_the_sessions_that_mps_cannot_serve_at_the_same_time(
    kind: str, uid: int, warned: bool, store: Store
) -> None:
    gpus = agent("g", gpus=[Gpu("GPU-1", shares=4.0)], gpu_sharing=GpuSharing(kind))
    first = plan_of(launch(store, request(gpus=0.25, user={"uid": 1001}), context(gpus)))
    asked = request(name="infer", owner="bob", gpus=0.25, user={"uid": uid})
    second = plan_of(launch(store, asked, context(gpus)))
    found = waits_on_mps(second, [first, second], [gpus])
    assert [text.partition(": a program")[0] for text in found] == (
        ["g: MPS serves one user ID at a time, and train of alice has another than session infer (1002)"]
        if warned
        else []
    )
