# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The containers of a session as launchers and parallel shells read them."""

from __future__ import annotations

import doctest
from dataclasses import replace

import pytest
import yaml
from samples import plan, request

from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh import host_lists
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Gpu, Resources

PLAN = plan(request(cluster_size=3))


@pytest.mark.parametrize(("millicpus", "slots"), [(2000, 2), (1999, 1), (100, 1)])
def test_an_mpi_slot_is_a_whole_cpu(millicpus: int, slots: int) -> None:
    containers = tuple(replace(one, resources=Resources(millicpus)) for one in PLAN.containers)
    wanted = "".join("%s slots=%d\n" % (name, slots) for name in ("main1", "sub1", "sub2"))

    assert host_lists.hostfile(replace(PLAN, containers=containers)) == wanted


def test_an_mpi_slot_is_a_gpu_where_there_are_gpus() -> None:
    """A GPU of which a container holds several shares is one slot."""
    gpus = (Gpu("a"), Gpu("b", 0.5), Gpu("b", 0.5))
    containers = tuple(replace(one, resources=Resources(8000, gpus=gpus)) for one in PLAN.containers)

    assert host_lists.hostfile(replace(PLAN, containers=containers)).splitlines()[1] == "sub1 slots=2"


@pytest.mark.parametrize(("has_gpus", "slots"), [(True, 16), (False, 1)])
def test_hostfiles_of_other_launchers(has_gpus: bool, slots: int) -> None:
    """Hydra refuses ``slots=``; DeepSpeed starts as many processes as there are slots, each of which wants a GPU."""
    text = "main1 slots=16\nsub1 slots=16\n"

    found = host_lists.files(text, has_gpus)
    assert found["/etc/mpi/hydra"] == "main1:16\nsub1:16\n"
    assert found["/job/hostfile"] == f"main1 slots={slots}\nsub1 slots={slots}\n"


def test_parallel_shells_find_all_containers() -> None:
    found = host_lists.files("main1 slots=4\nsub1 slots=4\nsub10 slots=4\n", has_gpus=False)

    assert found["/etc/cluster-compute/hostnames"] == "main1\nsub1\nsub10\n"
    assert found["/etc/parallel/sshloginfile"] == "4/main1\n4/sub1\n4/sub10\n"
    groups = yaml.safe_load(found["/etc/cluster-compute/clustershell/groups.d/session.yaml"])
    assert groups == {"session": {"all": "main1,sub1,sub10", "main": "main1", "sub": "sub1,sub10"}}
    assert "default: session\n" in found["/etc/cluster-compute/clustershell/groups.conf"]


def test_its_own_examples() -> None:
    assert doctest.testmod(host_lists).failed == 0
