# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of docs/architecture.md §6, exact."""

from __future__ import annotations

import json

import pytest
from samples import SESSION, plan, request

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Plan
from ansible_collections.cluster.compute.plugins.module_utils._shared.names import container_id
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.plan import with_user_environment


def environment(made: Plan, hostname: str) -> dict[str, str]:
    return dict(next(one for one in made.containers if one.hostname == hostname).environment)


def interfaces(subnet: str, rank: int = 0) -> dict[str, str]:
    return {
        "NODE_RANK": str(rank),
        "HYDRA_HOST_FILE": "/etc/mpi/hydra",
        "MPIR_CVAR_CH4_CMA_ENABLE": "0",
        "PDSH_RCMD_TYPE": "ssh",
        "WCOLL": "/etc/cluster-compute/hostnames",
        "CLUSTERSHELL_CFGDIR": "/etc/cluster-compute/clustershell",
        "NCCL_SOCKET_IFNAME": "=eth0",
        "GLOO_SOCKET_IFNAME": "eth0",
        "TP_SOCKET_IFNAME": "eth0",
        "UCX_NET_DEVICES": "eth0",
        "OMPI_MCA_btl_tcp_if_include": subnet,
        "OMPI_MCA_oob_tcp_if_include": subnet,
        "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
        "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
        "PRTE_MCA_prte_if_include": subnet,
        "PRTE_MCA_prte_default_hostfile": "/etc/mpi/hostfile",
    }


def test_sub2_of_four_on_two_agents() -> None:
    made = plan(request(cluster_size=4, cluster_mode="multi-node", cpus=2), "aabb")
    assert environment(made, "sub2") == {
        "BACKENDAI_CLUSTER_SIZE": "4",
        "BACKENDAI_CLUSTER_HOSTS": "main1,sub1,sub2,sub3",
        "BACKENDAI_CLUSTER_REPLICAS": "main:1,sub:3",
        "BACKENDAI_CLUSTER_HOST": "sub2",
        "BACKENDAI_CLUSTER_IDX": "2",
        "BACKENDAI_CLUSTER_ROLE": "sub",
        "BACKENDAI_CLUSTER_LOCAL_RANK": "2",
        "BACKENDAI_CLUSTER_MODE": "multi-node",
        "BACKENDAI_KERNEL_ID": container_id(SESSION, "sub2"),
        "BACKENDAI_SESSION_ID": SESSION,
        "BACKENDAI_SESSION_NAME": "train",
        "WORLD_SIZE": "4",
        "WORLD_RANK": "2",
        "RANK": "2",
        "LOCAL_RANK": "0",
        "MASTER_ADDR": "main1",
        "MASTER_PORT": "12345",
        "TF_CONFIG": '{"cluster": {"worker": ["main1:12345", "sub1:12345", "sub2:12345", "sub3:12345"]},'
        ' "task": {"type": "worker", "index": 2}}',
        "OMP_NUM_THREADS": "2",
        **interfaces("10.201.0.0/27", 2),
    }


def test_a_session_of_one() -> None:
    assert environment(plan(request()), "main1") == {
        "BACKENDAI_CLUSTER_SIZE": "1",
        "BACKENDAI_CLUSTER_HOSTS": "main1",
        "BACKENDAI_CLUSTER_REPLICAS": "main:1",
        "BACKENDAI_CLUSTER_HOST": "main1",
        "BACKENDAI_CLUSTER_IDX": "1",
        "BACKENDAI_CLUSTER_ROLE": "main",
        "BACKENDAI_CLUSTER_LOCAL_RANK": "0",
        "BACKENDAI_CLUSTER_MODE": "single-node",
        "BACKENDAI_KERNEL_ID": SESSION,
        "BACKENDAI_SESSION_ID": SESSION,
        "BACKENDAI_SESSION_NAME": "train",
        "WORLD_SIZE": "1",
        "WORLD_RANK": "0",
        "RANK": "0",
        "LOCAL_RANK": "0",
        "MASTER_ADDR": "main1",
        "MASTER_PORT": "12345",
        "TF_CONFIG": '{"cluster": {"worker": ["main1:12345"]}, "task": {"type": "worker", "index": 0}}',
        "OMP_NUM_THREADS": "1",
        **interfaces("10.201.0.0/27"),
    }


@pytest.mark.parametrize(
    ("size", "placement"), [(1, "a"), (3, "aaa"), (3, "aab"), (12, "a" * 12), (12, "aaaaaaabbbbb")]
)
def test_every_container_of_every_size(size: int, placement: str) -> None:
    made = plan(request(cluster_size=size), placement)
    hosts = ["main1"] + ["sub%d" % index for index in range(1, size)]
    mode = "multi-node" if "b" in placement else "single-node"
    for rank, hostname in enumerate(hosts):
        mine = environment(made, hostname)
        assert mine["BACKENDAI_CLUSTER_SIZE"] == mine["WORLD_SIZE"] == str(size)
        assert mine["BACKENDAI_CLUSTER_HOSTS"] == ",".join(hosts)
        assert mine["BACKENDAI_CLUSTER_REPLICAS"] == ("main:1" if size == 1 else "main:1,sub:%d" % (size - 1))
        assert mine["BACKENDAI_CLUSTER_HOST"] == hostname
        assert mine["BACKENDAI_CLUSTER_IDX"] == str(rank or 1)
        assert mine["BACKENDAI_CLUSTER_ROLE"] == ("sub" if rank else "main")
        assert mine["BACKENDAI_CLUSTER_LOCAL_RANK"] == mine["RANK"] == mine["WORLD_RANK"] == str(rank)
        assert mine["LOCAL_RANK"] == str(placement[:rank].count(placement[rank]))
        assert mine["BACKENDAI_CLUSTER_MODE"] == mode
        assert mine["BACKENDAI_SESSION_ID"] == SESSION
        assert (mine["BACKENDAI_KERNEL_ID"] == SESSION) == (rank == 0)
        assert mine["MASTER_ADDR"] == "main1"
        assert json.loads(mine["TF_CONFIG"]) == {
            "cluster": {"worker": ["%s:12345" % name for name in hosts]},
            "task": {"type": "worker", "index": rank},
        }
    assert len({environment(made, name)["BACKENDAI_KERNEL_ID"] for name in hosts}) == size


def test_sub9_comes_before_sub10() -> None:
    hosts = environment(plan(request(cluster_size=12)), "main1")["BACKENDAI_CLUSTER_HOSTS"].split(",")
    assert hosts[9:12] == ["sub9", "sub10", "sub11"]


@pytest.mark.parametrize(("cpus", "threads"), [(0.25, "1"), (1, "1"), (1.9, "1"), (4, "4"), (6.5, "6")])
def test_threads_are_whole_cpus_at_least_one(cpus: float, threads: str) -> None:
    assert environment(plan(request(cpus=cpus)), "main1")["OMP_NUM_THREADS"] == threads


def test_the_users_variables_win_over_the_training_ones() -> None:
    made = plan(request(cluster_size=2))
    merged = with_user_environment(made, [{"MASTER_PORT": "29500", "A": "0"}, {"A": "1"}])
    assert [environment(merged, name)["A"] for name in ("main1", "sub1")] == ["0", "1"]
    assert environment(merged, "main1")["MASTER_PORT"] == "29500"
    assert environment(merged, "sub1")["MASTER_PORT"] == "12345"
