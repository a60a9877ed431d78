# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Placements and shortfalls, as tables."""

from __future__ import annotations

from dataclasses import replace

import pytest
from samples import GIB, agent, frees, with_capacity

from ansible_collections.cluster.compute.plugins.module_utils._shared.constants import MULTI_NODE, SINGLE_NODE
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Gpu
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import (
    GREEN,
    RED,
    YELLOW,
    AgentReport,
    GpuHealth,
    GpuSharing,
    ImageState,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.capacity import Demand, PerContainer
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.placement import (
    Placement,
    Shortfall,
    place,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.role_placement import never_fits

CPU = PerContainer(1000, GIB)

BIG, MIDDLE, SMALL = agent("big", cpus=8), agent("middle", cpus=6), agent("small", cpus=4)
ALONE = agent("alone", cpus=8, swarm="")
ELSEWHERE = agent("elsewhere", cpus=8, swarm="swarm2")


@pytest.mark.parametrize(
    ("demand", "agents", "expected"),
    [
        pytest.param(Demand(3, CPU), [BIG, SMALL], ["small"] * 3, id="the tightest of those that hold all"),
        pytest.param(
            Demand(3, CPU, MULTI_NODE), [BIG, SMALL], ["small"] * 3, id="multi-node on one agent when one suffices"
        ),
        pytest.param(
            Demand(3, CPU, MULTI_NODE, strategy="spread"), [BIG, SMALL], ["small"] * 3, id="and so under spread"
        ),
        pytest.param(
            Demand(9, CPU, MULTI_NODE),
            [SMALL, MIDDLE, BIG],
            ["big"] * 8 + ["small"],
            id="pack: roomiest, then tightest",
        ),
        pytest.param(
            Demand(9, CPU, MULTI_NODE, strategy="spread"),
            [SMALL, MIDDLE, BIG],
            ["big"] * 3 + ["middle"] * 3 + ["small"] * 3,
            id="spread: evenly",
        ),
        pytest.param(
            Demand(16, CPU, MULTI_NODE, strategy="spread"),
            [SMALL, MIDDLE, BIG],
            ["big"] * 6 + ["middle"] * 6 + ["small"] * 4,
            id="spread: as evenly as the room allows",
        ),
        pytest.param(Demand(2, CPU, agents=("big",)), [BIG, SMALL], ["big"] * 2, id="preferred agent"),
        pytest.param(Demand(7, CPU, agents=("small",)), [BIG, SMALL], ["big"] * 7, id="preferred agent is full"),
        pytest.param(Demand(2, CPU, agents=("gone",)), [BIG, SMALL], ["small"] * 2, id="preferred agent is unknown"),
        pytest.param(
            Demand(10, CPU, MULTI_NODE, agents=("small", "middle")),
            [BIG, MIDDLE, SMALL],
            ["middle"] * 6 + ["small"] * 4,
            id="preferred agents together",
        ),
        pytest.param(
            Demand(6, CPU, MULTI_NODE, agents=("big",), policy="strict"), [BIG, MIDDLE], ["big"] * 6, id="strict agent"
        ),
        pytest.param(
            Demand(9, CPU, MULTI_NODE),
            [BIG, ELSEWHERE, SMALL, ALONE],
            ["big"] * 8 + ["small"],
            id="agents of one Swarm",
        ),
        pytest.param(Demand(8, CPU), [ALONE], ["alone"] * 8, id="a single agent needs no Swarm"),
        pytest.param(
            Demand(1, CPU),
            [with_capacity(SMALL, gpus=(Gpu("x"),)), BIG],
            ["big"],
            id="devices are kept for those who need them",
        ),
    ],
)
def test_where_a_session_goes(demand: Demand, agents: list[AgentReport], expected: list[str]) -> None:
    placed = place(demand, agents, frees(*agents))
    assert isinstance(placed, Placement)
    assert list(placed.agents) == expected
    assert placed.mode == (SINGLE_NODE if len(set(expected)) == 1 else MULTI_NODE)


@pytest.mark.parametrize(
    ("demand", "agents", "reason"),
    [
        pytest.param(Demand(1, CPU), [], "the inventory has no agent", id="no agent"),
        pytest.param(Demand(4, CPU), [agent("agent2", cpus=1)], "agent2: needs 4 CPUs, 1 free", id="CPUs"),
        pytest.param(
            Demand(2, PerContainer(1000, 8 * GIB)),
            [agent("a", memory=12 * GIB)],
            "a: needs 16g memory, 12g free",
            id="memory",
        ),
        pytest.param(
            Demand(1, PerContainer(1000, GIB, gpus=2)), [agent("a", gpus=["x"])], "a: needs 2 GPUs, 1 free", id="GPUs"
        ),
        pytest.param(
            Demand(1, PerContainer(1000, GIB, gpus=0.5)),
            [agent("a", gpus=["x"])],
            "a: needs 0.5 GPUs, 0 free",
            id="no shares",
        ),
        pytest.param(
            Demand(9, CPU),
            [SMALL, BIG],
            "big: needs 9 CPUs, 8 free; small: needs 9 CPUs, 4 free",
            id="single-node never spans",
        ),
        pytest.param(
            Demand(13, CPU, MULTI_NODE),
            [SMALL, BIG],
            "big: needs 13 CPUs, 8 free; small: needs 13 CPUs, 4 free; together they hold 12 of 13 containers",
            id="together not enough",
        ),
        pytest.param(
            Demand(9, CPU, MULTI_NODE),
            [BIG, ALONE],
            "the agents are not in one Swarm (alone in no Swarm): provision_agents.yml joins them",
            id="no Swarm",
        ),
        pytest.param(
            Demand(9, CPU, MULTI_NODE),
            [BIG.in_swarm(""), ALONE],
            "the agents are not in one Swarm (alone, big in no Swarm): provision_agents.yml joins them",
            id="all in no Swarm",
        ),
        pytest.param(
            Demand(9, CPU, MULTI_NODE),
            [BIG, ELSEWHERE],
            "the agents are not in one Swarm (2 Swarms): provision_agents.yml joins them",
            id="two Swarms",
        ),
        pytest.param(
            Demand(9, CPU, MULTI_NODE),
            [BIG, ELSEWHERE, agent("full", cpus=0, swarm="")],
            "the agents are not in one Swarm (2 Swarms): provision_agents.yml joins them",
            id="two Swarms, and a full agent in none",
        ),
        pytest.param(
            Demand(5, CPU, policy="strict", agents=("small",)),
            [BIG, SMALL],
            "small: needs 5 CPUs, 4 free; big is not among the designated agents",
            id="strict and too small",
        ),
        pytest.param(
            Demand(1, CPU, policy="strict", agents=("gone",)),
            [SMALL],
            "no agent can hold it: small is not among the designated agents",
            id="strict and unknown",
        ),
        pytest.param(
            Demand(1, CPU, group="gpu"),
            [SMALL],
            "no agent can hold it: small is in resource group default",
            id="resource group",
        ),
        pytest.param(
            Demand(9, CPU),
            [BIG, replace(SMALL, reachable=False, reason="timed out"), replace(ALONE, group="gpu")],
            "big: needs 9 CPUs, 8 free; small cannot be reached (timed out)",
            id="lost agents are part of the reason, other groups are not",
        ),
        pytest.param(
            Demand(1, CPU),
            [replace(SMALL, reachable=False)],
            "no agent can hold it: small cannot be reached",
            id="lost",
        ),
        pytest.param(
            Demand(1, CPU),
            [replace(SMALL, schedulable=False)],
            "no agent can hold it: small is not schedulable",
            id="unschedulable",
        ),
        pytest.param(
            Demand(1, CPU),
            [replace(SMALL, avoid="overlay on agent1 -> small: no packet")],
            "no agent can hold it: small is avoided, because it failed the check (overlay on agent1 -> small: no packet)",
            id="avoided",
        ),
        pytest.param(
            Demand(1, CPU),
            [replace(SMALL, architecture="aarch64", image=ImageState(architecture="x86_64"))],
            "no agent can hold it: small is aarch64, and the image is for x86_64",
            id="architecture",
        ),
        pytest.param(
            Demand(3, CPU),
            [agent("a%02d" % number, cpus=1) for number in range(10)],
            "; ".join("a%02d: needs 3 CPUs, 1 free" % number for number in range(8)) + "; and 2 more",
            id="a long list is cut",
        ),
    ],
)
def test_why_a_session_waits(demand: Demand, agents: list[AgentReport], reason: str) -> None:
    assert place(demand, agents, frees(*agents)) == Shortfall(reason)


BROKEN = replace(SMALL, reachable=False, may_return=False, reason="no SDK")


@pytest.mark.parametrize(
    ("agents", "is_final"),
    [
        ([BROKEN], True),
        ([BROKEN, replace(ALONE, group="gpu")], True),
        ([BROKEN, replace(ALONE, reachable=False)], False),
        ([BROKEN, replace(ALONE, schedulable=False)], False),
        ([], False),
    ],
)
def test_waiting_is_useless_if_every_agent_must_be_repaired(agents: list[AgentReport], is_final: bool) -> None:
    found = place(Demand(1, CPU), agents, frees(*agents))
    assert isinstance(found, Shortfall)
    assert found.is_final == is_final


def test_a_session_that_the_kernel_cannot_connect_is_not_placed_there() -> None:
    tiny = PerContainer(1, 1)
    full, small = agent("full", cpus=64), replace(agent("small", cpus=64), kernel={"neighbours": 100})
    assert place_on(Demand(1023, tiny), full) == ["full"] * 1023
    short = "small: needs 101 neighbours (net.ipv4.neigh.default.gc_thresh3), 100 free"
    assert (
        place_on(Demand(101, tiny), small, with_capacity(full, millicpus=0))
        == short + "; full: needs 0.101 CPUs, 0 free"
    )
    assert place_on(Demand(1100, tiny, MULTI_NODE), full, small) == ["full"] * 1023 + ["small"] * 77


TINY = PerContainer(1, 1)
LIMITED = [replace(agent(name, cpus=64), kernel={"processes": 1400}) for name in ("one", "two")]


@pytest.mark.parametrize(
    ("demand", "agents", "reason"),
    [
        pytest.param(
            Demand(101, TINY),
            LIMITED,
            "101 containers exceed the limits of the kernel (one needs 1414 processes (kernel.pid_max), has 1400; "
            "two needs 1414 processes (kernel.pid_max), has 1400); set session_cluster_mode to multi-node",
            id="on one agent",
        ),
        pytest.param(
            Demand(201, TINY, MULTI_NODE),
            LIMITED,
            "201 containers exceed the limits of the kernel (one needs 2814 processes (kernel.pid_max), has 1400; "
            "two needs 2814 processes (kernel.pid_max), has 1400); raise these limits, add agents, or choose a smaller session_cluster_size",
            id="on all of them",
        ),
        pytest.param(
            Demand(1024, TINY),
            [replace(agent("full", cpus=64), reachable=False), agent("here", cpus=64)],
            "1024 containers exceed the limits of the kernel (full needs 1024 ports of a bridge, has 1023; "
            "here needs 1024 ports of a bridge, has 1023); set session_cluster_mode to multi-node",
            id="ports",
        ),
    ],
)
def test_a_size_that_no_kernel_can_run_is_refused(demand: Demand, agents: list[AgentReport], reason: str) -> None:
    assert place(demand, agents, frees(*agents)) == Shortfall(reason, is_final=True)


@pytest.mark.parametrize(
    ("demand", "agents", "expected"),
    [
        (Demand(3, CPU, MULTI_NODE, per_agent=1), [BIG, MIDDLE, SMALL], ["big", "middle", "small"]),
        (Demand(5, CPU, MULTI_NODE, per_agent=2), [BIG, MIDDLE, SMALL], ["big"] * 2 + ["middle"] * 2 + ["small"]),
        (Demand(4, CPU, MULTI_NODE, strategy="spread", per_agent=3), [BIG, MIDDLE], ["big"] * 2 + ["middle"] * 2),
        (Demand(3, CPU, per_agent=3), [BIG, SMALL], ["small"] * 3),
        (Demand(2, CPU, MULTI_NODE, agents=("big",), per_agent=1), [BIG, SMALL], ["big", "small"]),
        (Demand(3, CPU, MULTI_NODE, per_agent=2), [BIG], "session_per_agent: 2 needs 2 agents, 1 is eligible"),
        (
            Demand(3, CPU, MULTI_NODE, per_agent=1),
            [BIG, SMALL, replace(MIDDLE, schedulable=False)],
            "session_per_agent: 1 needs 3 agents, 2 are eligible; middle is not schedulable",
        ),
        (
            Demand(3, CPU, MULTI_NODE, per_agent=1),
            [BIG, SMALL, agent("full", cpus=0)],
            "full: needs 1 CPUs, 0 free; together they hold 2 of 3 containers",
        ),
    ],
)
def test_no_agent_gets_more_than_session_per_agent(
    demand: Demand, agents: list[AgentReport], expected: list[str] | str
) -> None:
    assert place_on(demand, *agents) == expected


@pytest.mark.parametrize(
    ("demand", "agents", "reason"),
    [
        (
            Demand(1, PerContainer(1000, GIB, gpus=1)),
            [SMALL, BIG],
            "big: needs 1 GPUs, 0 free; small: needs 1 GPUs, 0 free",
        ),
        (Demand(1, PerContainer(1000, 64 * GIB)), [SMALL], "small: needs 64g memory, 16g free"),
        (Demand(9, CPU), [BIG, replace(SMALL, group="gpu")], "big: needs 9 CPUs, 8 free"),
        (Demand(2, CPU, MULTI_NODE, per_agent=1), [BIG], "session_per_agent: 1 needs 2 agents, 1 is eligible"),
        (Demand(1, CPU, group="gpu"), [BIG], "no agent can hold it: big is in resource group default"),
        (
            Demand(9, CPU, policy="strict", agents=("small",)),
            [SMALL, agent("large", cpus=64)],
            "small: needs 9 CPUs, 4 free; large is not among the designated agents",
        ),
        (Demand(9, CPU), [BIG, replace(SMALL, reachable=False)], ""),
        (Demand(5, CPU), [replace(BIG, schedulable=False), SMALL], ""),
        (Demand(5, CPU), [replace(BIG, avoid="failed"), SMALL], ""),
        (Demand(9, CPU, MULTI_NODE), [BIG, ALONE], ""),
        (Demand(8, CPU), [BIG], ""),
    ],
)
def test_what_the_agents_could_never_hold(demand: Demand, agents: list[AgentReport], reason: str) -> None:
    """An agent that does not answer, is drained, failed a check or is in another Swarm may hold it later."""
    assert never_fits(demand, agents) == reason


RESET = GpuHealth("GPU-1", RED, ("it must be reset", "XID 48 since the start of the host"))


def test_a_red_gpu_is_used_again_when_it_is_green() -> None:
    demand = Demand(1, PerContainer(1000, GIB, gpus=2))
    sick = agent("a", gpus=["GPU-1", "GPU-2"], gpu_health=(RESET, GpuHealth("GPU-2", YELLOW, ("too hot",))))
    assert place_on(demand, sick) == (
        "a: needs 2 GPUs, 1 free (GPU-1 is red: it must be reset, XID 48 since the start of the host)"
    )
    # It waits: the GPU may become green.
    assert never_fits(demand, [sick]) == ""
    assert place_on(demand, replace(sick, gpu_health=(GpuHealth("GPU-1", GREEN), sick.gpu_health[1]))) == ["a"]


SILENT = "nvidia-smi does not answer in 30 s"
UNREAD = GpuSharing("mig", "gives no part of a GPU: " + SILENT, may_pass=True)
QUARTER = Demand(1, PerContainer(1000, GIB, gpus=0.25))


def test_a_session_waits_while_nvidia_smi_fails() -> None:
    """Nothing is known of the parts of the GPUs then."""
    silent = agent("a", gpus=["GPU-1"], gpu_health=(GpuHealth("GPU-1", RED, (SILENT,)),), gpu_sharing=UNREAD)
    assert never_fits(QUARTER, [silent]) == ""
    assert never_fits(Demand(1, PerContainer(5000, GIB)), [silent]) == "a: needs 5 CPUs, 4 free"
    other = replace(silent, gpu_sharing=GpuSharing("mig", "gives no part of a GPU: agent_gpu_sharing is mig"))
    assert "agent_gpu_sharing is mig" in never_fits(QUARTER, [other])


def test_a_session_waits_for_the_daemon_of_mps_only_if_the_gpus_have_parts() -> None:
    without = agent(
        "a", gpus=[Gpu("GPU-1", 4.0, GIB)], gpu_sharing=GpuSharing("mps", "has no MPS daemon", may_pass=True)
    )
    assert never_fits(QUARTER, [without]) == ""
    lasting = replace(
        with_capacity(without, gpus=(Gpu("GPU-1"),)), gpu_sharing=GpuSharing("mps", "agent_gpus has no shares")
    )
    assert never_fits(QUARTER, [lasting]) == "a: needs 0.25 GPUs, 0 free (agent_gpus has no shares)"


def test_a_reason_names_a_few_red_gpus() -> None:
    names = [f"GPU-{number}" for number in range(8)]
    sick = agent("a", gpus=names, gpu_health=tuple(GpuHealth(name, RED, ("hot",)) for name in [*names, "GPU-x"]))
    shown = "; ".join(f"GPU-{number} is red: hot" for number in range(4))
    assert place_on(Demand(1, PerContainer(1000, GIB, gpus=0.5)), sick) == (
        f"a: needs 0.5 GPUs, 0 free ({shown}; and 4 more are red)"
    )
    assert place_on(Demand(8, CPU), sick) == "a: needs 8 CPUs, 4 free"


def place_on(demand: Demand, *agents: AgentReport) -> list[str] | str:
    found = place(demand, agents, frees(*agents))
    return found.reason if isinstance(found, Shortfall) else list(found.agents)
