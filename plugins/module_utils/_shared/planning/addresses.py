# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Addresses: a subnet sized to the session, static addresses in it, and host ports for what main1 publishes."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, replace
from typing import Iterable, List, Sequence, Set, Tuple

from ..errors import ConflictError, InputError

_LONGEST_PREFIX = 27
_POOL_RULE = "must be a private IPv4 network of at least /%d, as in 10.201.0.0/16" % _LONGEST_PREFIX
# https://www.rfc-editor.org/rfc/rfc1918 and https://www.rfc-editor.org/rfc/rfc6598
_PRIVATE = tuple(map(ipaddress.IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")))


@dataclass(frozen=True)
class Subnet:
    """A session's subnet: the gateway and the containers in the lower half, the engines' own endpoints in the upper.

    An engine hands out addresses of its own (an overlay has one load-balancer endpoint per agent) from ``ip_range``
    only, so a static address in the lower half never collides with one.
    """

    subnet: str
    gateway: str
    ip_range: str
    addresses: Tuple[str, ...]


# Of a session on the network of its agents, whose addresses come from them.
NO_SUBNET = Subnet("", "", "", ())


def prefix_for(size: int) -> int:
    """The longest prefix of which each half can hold ``size`` containers and the gateway."""
    prefix = _LONGEST_PREFIX
    while (1 << (31 - prefix)) < size + 2:
        prefix -= 1
    return prefix


def choose_subnet(size: int, pools: Sequence[str], taken: Iterable[str]) -> Subnet:
    """The first subnet of the pools that overlaps with none of ``taken``: routes, networks and subnets of other sessions."""
    prefix = prefix_for(size)
    blocked = _merged(taken)
    for pool in pools:
        network = _pool(pool)
        if network.prefixlen <= prefix:
            found = _first_free(network, prefix, blocked)
            if found is not None:
                return _layout(found, size)
    raise ConflictError(
        "No free /%d is left in the address pool %s: end sessions, or enlarge session_network_pool."
        % (prefix, ", ".join(pools))
    )


def at_slots(subnet: str, slots: Sequence[int]) -> Subnet:
    """A subnet that was chosen before, whose addresses are at these places, counted from 0."""
    network, size = ipaddress.IPv4Network(subnet), max(slots) + 1
    if network.prefixlen > prefix_for(size):
        raise ConflictError(
            "The subnet %s is too small for %d containers: end the session with terminate.yml." % (subnet, size)
        )
    found = _layout(network, size)
    return replace(found, addresses=tuple(found.addresses[slot] for slot in slots))


def slot_of(gateway: str, address: str) -> int:
    """The place of an address in its subnet.

    >>> slot_of("10.201.0.1", at_slots("10.201.0.0/27", [0, 7]).addresses[1])
    7
    """
    return int(ipaddress.IPv4Address(address)) - int(ipaddress.IPv4Address(gateway)) - 1


def host_subnet(addresses: Sequence[str]) -> Subnet:
    """The smallest subnet that has the addresses of hosts, and one below them in place of a gateway."""
    numbers = [int(ipaddress.IPv4Address(address)) for address in addresses]
    lowest, highest = min(numbers) - 1, max(numbers)
    network = ipaddress.IPv4Network((lowest, 32))
    while int(network.broadcast_address) < highest:
        network = network.supernet()
    return Subnet(str(network), str(network.network_address), str(network), tuple(addresses))


def choose_port(preferred: int | None, first: int, last: int, taken: Set[int]) -> int:
    """The preferred port if it is free, else the first free one of the range; the caller adds it to ``taken``."""
    if preferred and preferred not in taken:
        return preferred
    for port in range(first, last + 1):
        if port not in taken:
            return port
    raise ConflictError("No port is free in %d-%d: end sessions, or enlarge session_port_range." % (first, last))


def check_pools(pools: Sequence[object]) -> List[str]:
    """The address pools in their normal form. Raises InputError for a pool that is too small for any session."""
    if not pools:
        raise InputError("session_network_pool", pools, _POOL_RULE)
    return [str(_pool(str(pool))) for pool in pools]


def _pool(text: str) -> ipaddress.IPv4Network:
    try:
        network = ipaddress.IPv4Network(text)
    except ValueError:
        raise InputError("session_network_pool", text, _POOL_RULE) from None
    if network.prefixlen > _LONGEST_PREFIX or not any(network.subnet_of(private) for private in _PRIVATE):
        raise InputError("session_network_pool", text, _POOL_RULE)
    return network


def _merged(taken: Iterable[str]) -> List[ipaddress.IPv4Network]:
    networks = (ipaddress.ip_network(text, strict=False) for text in set(taken))
    return sorted(
        ipaddress.collapse_addresses(network for network in networks if isinstance(network, ipaddress.IPv4Network))
    )


def _first_free(
    pool: ipaddress.IPv4Network, prefix: int, blocked: Sequence[ipaddress.IPv4Network]
) -> ipaddress.IPv4Network | None:
    """The first free subnet, in one pass over ``blocked``, which is sorted and disjoint, however large the pool is."""
    step = 1 << (32 - prefix)
    start, end = int(pool.network_address), int(pool.broadcast_address)
    for network in blocked:
        if start + step - 1 < int(network.network_address):
            break
        if int(network.broadcast_address) >= start:
            start = -(-(int(network.broadcast_address) + 1) // step) * step
    return ipaddress.IPv4Network((start, prefix)) if start + step - 1 <= end else None


def _layout(network: ipaddress.IPv4Network, size: int) -> Subnet:
    lower, upper = network.subnets(prefixlen_diff=1)
    base = int(lower.network_address)
    addresses = tuple(str(ipaddress.IPv4Address(base + 2 + rank)) for rank in range(size))
    return Subnet(str(network), str(ipaddress.IPv4Address(base + 1)), str(upper), addresses)
