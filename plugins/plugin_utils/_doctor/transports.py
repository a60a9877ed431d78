# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""By what containers and GPUs would exchange data: the fabric, the RDMA ports and the NVLinks of an agent, and each pair of agents."""

from __future__ import annotations

from itertools import combinations
from typing import Dict, List, Sequence

from ...module_utils._shared.constants import ROCE_V2
from ...module_utils._shared.documents.examination import Examination, ExaminedFabric, ExaminedRdmaPort
from ...module_utils._shared.documents.findings import OK, WARN, Finding, Requirements, Verdict, verdict
from ...module_utils._shared.planning.placement import ROCE

_FABRIC, _HOST = "RoCE v2 with session_rdma and session_fabric", "RoCE v2 with session_rdma and session_network: host"
_INFINIBAND = "InfiniBand with session_rdma"


def check_fabric(one: Examination, _required: Requirements) -> Verdict:
    """The interface for C(session_fabric)."""
    fabric = one.network.fabric
    if not fabric.interface:
        return OK, "no agent_fabric", ""
    if fabric.reason:
        return WARN, fabric.reason.rstrip(","), "repair the interface, or set agent_fabric to another one"
    return OK, f"{fabric.interface}{_link([fabric])}", ""


def check_rdma(one: Examination, _required: Requirements) -> Verdict:
    """The ports for C(session_rdma)."""
    ports = one.network.rdma
    if not ports:
        return OK, "none", ""
    found = "; ".join(f"{port.name} {_described(port)}" for port in ports)
    without = [port.name for port in ports if port.active and port.fabric and ROCE_V2 not in port.gids]
    if without:
        found += f"; no RoCE v2 on {', '.join(without)}"
    return verdict(found, without, "enable RoCE v2 in its driver, and give its interface an address")


def _described(port: ExaminedRdmaPort) -> str:
    if not port.active:
        return f"{port.link_layer}, not active"
    if port.link_layer != ROCE:
        return port.link_layer
    where = " on the fabric" if port.fabric else ", not on the fabric"
    return " and ".join(port.gids or ["RoCE"]) + where + ("" if port.host else ", without the host's address")


def check_nvlink(one: Examination, _required: Requirements) -> Verdict:
    """NCCL takes two containers for two hosts, so it never uses NVLink between them."""
    gpus, linked = one.gpus.nvlink.gpus, one.gpus.nvlink.linked
    if gpus < 2:
        return OK, "no two GPUs that nvidia-smi topo -m shows", ""
    found = "%d of %d pairs of %d GPUs" % (linked, gpus * (gpus - 1) // 2, gpus)
    inside = ", only inside a container: prefer one container with several GPUs (session_gpus) and session_per_agent: 1"
    return OK, found + (inside if linked else ""), ""


def check_transports(agents: Sequence[Examination]) -> List[Finding]:
    """Return what the sessions over each pair of agents would use. Pairs that would use the same are one line."""
    groups: Dict[Verdict, List[str]] = {}
    for one, other in combinations(agents, 2):
        groups.setdefault(_verdict(one, other), []).append(f"{one.name} -> {other.name}")
    findings = []
    for (status, found, remedy), pairs in groups.items():
        more = "; so do %d more pairs" % (len(pairs) - 1) if len(pairs) > 1 else ""
        where, more = ("all pairs", "") if len(groups) == 1 else (pairs[0], more)
        findings.append(Finding("transport", where, status, found + more, remedy))
    return findings


def _verdict(one: Examination, other: Examination) -> Verdict:
    fabrics = [one.network.fabric, other.network.fabric]
    ways, others = rdma_of(one), rdma_of(other)
    common = [way for way in ways if way in others]
    words = ["TCP over the private network"]
    remedies = []
    if not any(fabric.reason for fabric in fabrics):
        words.append("TCP over session_fabric" + _link(fabrics))
        if fabrics[0].mtu != fabrics[1].mtu:
            remedies.append("set the same MTU on both interfaces of the fabric")
    words += common
    if ways and others and not common:
        words.append(f"no RDMA in common: {ways[0]}, and {others[0]}")
        remedies.append("put these agents into different resource groups (agent_resource_group)")
    return WARN if remedies else OK, "; ".join(words), "; ".join(remedies)


def rdma_of(one: Examination) -> List[str]:
    """The ways in which containers on the agent can use RDMA."""
    active, fabric = [port for port in one.network.rdma if port.active], one.network.fabric
    if any(port.link_layer != ROCE for port in active):
        return [_INFINIBAND]
    has_fabric = any(port.fabric and ROCE_V2 in port.gids for port in active)
    has_host = any(port.host and (port.fabric or not fabric.interface) for port in active)
    return [_FABRIC] * (has_fabric and not fabric.reason) + [_HOST] * has_host


def _link(fabrics: Sequence[ExaminedFabric]) -> str:
    """Speed and MTU of a link between these interfaces, as far as they are known.

    >>> wide, narrow = ExaminedFabric(mtu=9000, speed=25000), ExaminedFabric(mtu=1500, speed=10000)
    >>> _link([wide, narrow]), _link([ExaminedFabric(mtu=1500)])
    (', 10 Gbit/s, MTU 9000 and 1500', ', MTU 1500')
    """
    speed = min(fabric.speed for fabric in fabrics)
    mtu = " and ".join(dict.fromkeys(str(fabric.mtu) for fabric in fabrics))
    return (", %g Gbit/s" % (speed / 1000) if speed else "") + f", MTU {mtu}"
