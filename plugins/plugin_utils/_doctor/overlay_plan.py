# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The throw-away overlay network of a check: who takes part, with which addresses, and which links are measured when."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import List, Mapping, Sequence, Set, Tuple

from ...module_utils._shared.constants import VXLAN_OVERHEAD
from ...module_utils._shared.documents.examination import Examination, InOverlay, OverlayMember, OverlayPlan
from ...module_utils._shared.errors import ConflictError
from ...module_utils._shared.planning.addresses import choose_subnet, prefix_for
from ...module_utils._shared.planning.swarm_plan import swarm_of

Link = Tuple[str, str]


def overlay_plan(
    agents: Sequence[Examination], pools: Sequence[str], encrypted: bool, head: str, seconds: float
) -> OverlayPlan:
    """The plan, with ``reason`` instead of ``members`` if there is nothing to test.

    The agents of the Swarm of the head take part, or of most agents, that have the reference image.
    """
    nodes, cluster, managers = swarm_of({one.name: one.swarm for one in agents}, head)
    members = [one for one, node in zip(agents, nodes) if node.state == "active" and node.cluster_id == cluster]
    ready = [one for one in members if one.engine.image]
    manager = head if head in managers else (managers or [""])[0]
    if len(ready) < 2 or not manager:
        return OverlayPlan(reason="no two agents of a Swarm have the reference image and a manager that answers")
    nets = (one.network for one in agents)
    taken = [subnet for net in nets for subnet in (*net.routes, *net.subnets, *net.session_subnets)]
    try:
        subnet = choose_subnet(len(ready), [*_upper_ends(pools, len(ready)), *pools], taken)
    except ConflictError as error:
        return OverlayPlan(reason=error.message.rstrip("."))
    named = enumerate(zip(ready, subnet.addresses), 1)
    return OverlayPlan(
        members=tuple(OverlayMember(one.name, "check%d" % number, address) for number, (one, address) in named),
        manager=manager,
        subnet=subnet.subnet,
        gateway=subnet.gateway,
        ip_range=subnet.ip_range,
        mtu=min(one.network.mtu for one in ready) - VXLAN_OVERHEAD,
        # Encrypted networks need ESP, which has a check of its own.
        encrypted=encrypted and all(one.esp for one in ready),
        seconds=seconds,
    )


def _upper_ends(pools: Sequence[str], size: int) -> List[str]:
    """The last quarter of each pool: sessions take the first free subnet, and may have reserved it without using it yet.

    >>> _upper_ends(["10.201.0.0/16", "10.1.1.0/27"], 3)
    ['10.201.192.0/18']
    """
    networks = [IPv4Network(pool) for pool in pools]
    return [str(list(pool.subnets(2))[-1]) for pool in networks if pool.prefixlen + 2 <= prefix_for(size)]


def ring(found: Mapping[str, InOverlay]) -> List[Link]:
    """A link from each of these agents to the next, and from the last to the first, without those that packets do not pass.

    ``found`` has what the container of each agent has found.

    >>> answered = {"a": {"b": 0.1, "c": 0.1}, "b": {"a": 0.1}, "c": {"a": 0.1}}
    >>> ring({name: InOverlay(latency=times) for name, times in answered.items()})
    [('a', 'b'), ('c', 'a')]
    """
    names = list(found)
    return [(name, peer) for name, peer in zip(names, names[1:] + names[:1]) if peer in found[name].latency]


def rounds(links: Sequence[Link]) -> List[List[Link]]:
    """The links in rounds of links that can be measured at the same time: no two of them have an agent in common.

    >>> rounds([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])
    [[('a', 'b'), ('c', 'd')], [('b', 'c'), ('d', 'a')]]
    >>> rounds([("a", "b"), ("b", "c"), ("c", "a")])
    [[('a', 'b')], [('b', 'c')], [('c', 'a')]]
    """
    found: List[List[Link]] = []
    busy: List[Set[str]] = []
    for link in links:
        turn = next((number for number, names in enumerate(busy) if not names & set(link)), len(busy))
        if turn == len(busy):
            found.append([])
            busy.append(set())
        found[turn].append(link)
        busy[turn] |= set(link)
    return found
