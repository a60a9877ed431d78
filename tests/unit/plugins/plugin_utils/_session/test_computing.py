# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ranks of containers that compute, TF_CONFIG and the hostfiles of a session with roles."""

from __future__ import annotations

import json
from typing import Any

import pytest
from samples import agent, plan, request

from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh import host_lists
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents import validation
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Plan
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.node_loss import moved_plan
from ansible_collections.cluster.compute.plugins.plugin_utils._session.agreement import check_agreement

PS, WORKER, EVALUATOR = {"name": "ps", "size": 2}, {"name": "worker", "size": 2}, {"name": "evaluator"}
TRAINING = [PS, WORKER, EVALUATOR]


def environments(made: Plan) -> dict[str, dict[str, str]]:
    return {one.hostname: dict(one.environment) for one in made.containers}


def test_the_variables_of_a_session_with_roles() -> None:
    made = plan(request(cluster_mode="multi-node", roles=TRAINING), "aabbbb")
    found = environments(made)
    assert list(found) == ["main1", "ps1", "ps2", "worker1", "worker2", "evaluator1"]
    own = {name: value for name, value in found["worker2"].items() if name.startswith("BACKENDAI_CLUSTER_")}
    assert own == {
        "BACKENDAI_CLUSTER_SIZE": "6",
        "BACKENDAI_CLUSTER_HOSTS": "main1,ps1,ps2,worker1,worker2,evaluator1",
        "BACKENDAI_CLUSTER_REPLICAS": "main:1,ps:2,worker:2,evaluator:1",
        "BACKENDAI_CLUSTER_HOST": "worker2",
        "BACKENDAI_CLUSTER_IDX": "2",
        "BACKENDAI_CLUSTER_ROLE": "worker",
        "BACKENDAI_CLUSTER_LOCAL_RANK": "4",
        "BACKENDAI_CLUSTER_MODE": "multi-node",
    }
    ranks = [[found[host].get(name) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "NODE_RANK")] for host in found]
    none = [None] * 4
    assert ranks == [["0", "3", "0", "0"], none, none, ["1", "3", "0", "1"], ["2", "3", "1", "2"], none]
    assert {one["MASTER_ADDR"] for one in found.values()} == {"main1"}


@pytest.mark.parametrize("roles", [[WORKER], [PS, WORKER]])
def test_a_container_that_moves_changes_no_rank_and_the_controller_accepts_the_plan(roles: list[Any]) -> None:
    asked = request(name="train", cluster_mode="multi-node", on_lost="relocate", roles=roles)
    names = "abbcd"[: asked.size - 1] + "e"
    made = plan(asked, names)
    places = {"worker1": (names[-1], made.main.resources)}
    there = [agent(name) for name in dict.fromkeys(names)]
    moved = moved_plan(made, asked, places, made.main.ports, there, {})
    assert environments(moved) == environments(made)
    check_agreement(moved, asked, names, "head1")


CLUSTER = {
    "chief": ["main1:12345"],
    "ps": ["ps1:12345", "ps2:12345"],
    "worker": ["worker1:12345", "worker2:12345"],
}


@pytest.mark.parametrize(
    ("roles", "host", "expected"),
    [
        (TRAINING, "main1", (CLUSTER, "chief", 0)),
        (TRAINING, "ps2", (CLUSTER, "ps", 1)),
        (TRAINING, "worker2", (CLUSTER, "worker", 1)),
        (TRAINING, "evaluator1", (CLUSTER, "evaluator", 0)),
        # A role that TensorFlow does not know has no part.
        ([*TRAINING, {"name": "data"}], "data1", None),
        # A coordinator that does not compute is the chief of parameter servers, and of nothing else.
        ([{"name": "main", "compute": False}, PS, WORKER], "main1", (CLUSTER, "chief", 0)),
        ([{"name": "main", "compute": False}, WORKER], "main1", None),
        ([{"name": "main", "compute": False}, WORKER], "worker1", ({"worker": CLUSTER["worker"]}, "worker", 0)),
        # Without roles that TensorFlow knows, all that compute are workers.
        ([{"name": "node"}], "node1", ({"worker": ["main1:12345", "node1:12345"]}, "worker", 1)),
        ([{"name": "main", "compute": False}, {"name": "node"}], "main1", None),
    ],
)
def test_tf_config(roles: list[Any], host: str, expected: tuple[Any, str, int] | None) -> None:
    text = environments(plan(request(roles=roles)))[host].get("TF_CONFIG")
    if expected is None:
        assert text is None
    else:
        assert json.loads(text or "") == {"cluster": expected[0], "task": {"type": expected[1], "index": expected[2]}}


def test_torchrun_trains_over_the_roles_that_compute() -> None:
    found = environments(plan(request(roles=[{"name": "main", "compute": False}, PS, WORKER], torchrun="static")))
    assert [found[host].get("PET_NODE_RANK") for host in found] == [None, None, None, "0", "1"]
    assert (found["worker2"]["PET_NNODES"], found["worker2"]["PET_MASTER_ADDR"]) == ("1:2", "worker1")


def test_hostfiles_have_the_roles_that_compute_and_lists_of_hosts_have_all() -> None:
    made = plan(request(roles=[PS, {**WORKER, "gpus": 2}]))
    hostfile, names = host_lists.hostfile(made), host_lists.hostnames(made)
    files = host_lists.files(hostfile, True, names)
    assert files["/etc/mpi/hostfile"] == "main1 slots=1\nworker1 slots=2\nworker2 slots=2\n"
    assert files["/etc/cluster-compute/hostnames"].split() == ["main1", "ps1", "ps2", "worker1", "worker2"]
    groups = files["/etc/cluster-compute/clustershell/groups.d/session.yaml"]
    assert '  ps: "ps1,ps2"\n' in groups
    assert host_lists.hostnames(plan(request(cluster_size=2))) == ""


def test_a_plan_with_roles_arrives_and_agrees_with_its_request() -> None:
    asked = request(roles=[{**PS, "image": "own:1", "cpus": 0.5}, WORKER])
    made = plan(asked)
    arrived = validation.plan(json.loads(json.dumps(made.to_short_json())), "head")
    check_agreement(arrived, asked, ["a"], "head")
    assert arrived.images == {"reference": ("a",), "own:1": ("a",)}
    assert [one.hostname for one in arrived.of_roles(["ps"]).containers] == ["ps1", "ps2"]
    assert arrived.of_roles(["ps"]).addresses == arrived.addresses
    other = request(roles=[{**PS, "image": "own:1", "cpus": 1}, WORKER])
    with pytest.raises(ComputeError, match=r"ps1\.resources"):
        check_agreement(arrived, other, ["a"], "head")


def test_a_plan_whose_containers_are_not_those_of_its_roles_is_refused() -> None:
    document = plan(request(roles=[PS])).to_json()
    document["session"]["roles"][1]["size"] = 1
    with pytest.raises(ComputeError, match="The plan of head is refused"):
        validation.plan(document, "head")
