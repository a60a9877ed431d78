# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import exactly

from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ConflictError, InputError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.addresses import (
    at_slots,
    check_pools,
    choose_port,
    choose_subnet,
    prefix_for,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.units import parse_port_range

POOL = ["10.201.0.0/16"]
# Whatever routes and networks a host has, in and around the pool, host bits and IPv6 included.
TAKEN = st.lists(
    st.one_of(
        st.builds(
            lambda third, fourth, prefix: "10.201.%d.%d/%d" % (third, fourth, prefix),
            st.integers(0, 255),
            st.integers(0, 255),
            st.integers(18, 32),
        ),
        st.sampled_from(["10.200.0.0/16", "10.202.0.0/15", "172.17.0.0/16", "fd00::/64", "10.201.0.5"]),
    ),
    max_size=12,
)


@pytest.mark.parametrize(
    ("size", "prefix"),
    [(1, 27), (3, 27), (14, 27), (15, 26), (30, 26), (31, 25), (62, 25), (63, 24), (510, 22), (511, 21), (1000, 21)],
)
def test_a_subnet_is_as_large_as_the_session_needs(size: int, prefix: int) -> None:
    assert prefix_for(size) == prefix


@given(st.integers(1, 1000), TAKEN)
def test_a_subnet_touches_nothing_taken_and_holds_everyone(size: int, taken: list[str]) -> None:
    blocked = [IPv4Network(one, strict=False) for one in taken if ":" not in one]
    places = IPv4Network(POOL[0]).subnets(new_prefix=prefix_for(size))
    first = next((one for one in places if not any(one.overlaps(other) for other in blocked)), None)
    if first is None:
        with pytest.raises(ConflictError):
            choose_subnet(size, POOL, taken)
        return
    chosen = choose_subnet(size, POOL, taken)
    subnet, inner = IPv4Network(chosen.subnet), IPv4Network(chosen.ip_range)
    assert subnet == first
    addresses = [IPv4Address(one) for one in chosen.addresses]
    assert len(set(addresses)) == size
    usable = set(range(int(subnet.network_address) + 1, int(subnet.broadcast_address)))
    for address in [*addresses, IPv4Address(chosen.gateway)]:
        assert int(address) in usable
        assert address not in inner
    assert IPv4Address(chosen.gateway) not in addresses
    # An endpoint of every agent's engine has a place, too.
    assert inner.subnet_of(subnet)
    assert inner.num_addresses - 1 >= size


@given(st.lists(st.integers(1, 200), max_size=30))
def test_subnets_chosen_one_after_the_other_are_apart(sizes: list[int]) -> None:
    taken: list[str] = []
    for size in sizes:
        taken.append(choose_subnet(size, POOL, taken).subnet)
    networks = [IPv4Network(one) for one in taken]
    assert not any(a.overlaps(b) for n, a in enumerate(networks) for b in networks[:n])


@given(st.integers(1, 1000), TAKEN)
def test_the_layout_follows_from_subnet_and_size(size: int, taken: list[str]) -> None:
    chosen = choose_subnet(size, ["10.0.0.0/8"], taken)
    assert at_slots(chosen.subnet, range(size)) == chosen


def test_the_first_free_place_is_taken() -> None:
    assert choose_subnet(3, POOL, []).subnet == "10.201.0.0/27"
    assert choose_subnet(3, POOL, ["10.201.0.0/27", "10.201.0.70/32"]).subnet == "10.201.0.32/27"
    chosen = choose_subnet(3, POOL, ["10.201.0.0/27", "10.201.0.33/32"])
    assert (chosen.subnet, chosen.gateway, chosen.ip_range) == ("10.201.0.64/27", "10.201.0.65", "10.201.0.80/28")
    assert chosen.addresses == ("10.201.0.66", "10.201.0.67", "10.201.0.68")


def test_pools_are_tried_in_their_order() -> None:
    assert choose_subnet(20, ["10.1.0.0/27", "10.2.0.0/24", "10.3.0.0/24"], ["10.2.0.0/16"]).subnet == "10.3.0.0/26"


def test_an_exhausted_pool_is_refused() -> None:
    message = "No free /27 is left in the address pool 10.1.0.0/26: end sessions, or enlarge session_network_pool."
    with pytest.raises(ConflictError, match=exactly(message)):
        choose_subnet(3, ["10.1.0.0/26"], ["10.1.0.0/27", "10.1.0.60/32"])


def test_a_pool_that_is_a_route_of_an_agent_is_no_pool() -> None:
    with pytest.raises(ConflictError):
        choose_subnet(1, POOL, ["10.0.0.0/8"])


@pytest.mark.parametrize(
    ("preferred", "taken", "port"),
    [(None, set(), 30000), (0, {30000}, 30001), (8080, set(), 8080), (8080, {8080}, 30000), (30001, {30000}, 30001)],
)
def test_a_preferred_port_is_tried_first(preferred: int | None, taken: set[int], port: int) -> None:
    assert choose_port(preferred, 30000, 30002, taken) == port


def test_exhausted_ports_are_refused() -> None:
    message = "No port is free in 30000-30001: end sessions, or enlarge session_port_range."
    with pytest.raises(ConflictError, match=exactly(message)):
        choose_port(30001, 30000, 30001, {30000, 30001})


@pytest.mark.parametrize(("text", "ports"), [("30000-31000", (30000, 31000)), ("1024-1024", (1024, 1024))])
def test_a_port_range(text: str, ports: tuple[int, int]) -> None:
    assert parse_port_range(text) == ports


@pytest.mark.parametrize(
    "text",
    ["", "30000", "30000-", "31000-30000", "80-90", "30000-70000", "a-b", None, "1-2-3", "²²²²-30000", "-1-3"],
)
def test_other_port_ranges_are_refused(text: object) -> None:
    with pytest.raises(InputError, match=r"must be FIRST-LAST with ports from 1024 to 65535\.$"):
        parse_port_range(text)


def test_pools_are_networks() -> None:
    assert check_pools(["10.0.0.0/8", "192.168.7.0/27"]) == ["10.0.0.0/8", "192.168.7.0/27"]


@pytest.mark.parametrize("pool", ["10.201.0.1/16", "10.201.0.0/33", "fd00::/64", "private", "", None, "10.0.0.0/28"])
def test_other_pools_are_refused(pool: object) -> None:
    with pytest.raises(InputError, match=r"^session_network_pool: .*must be a private IPv4 network of at least /27"):
        check_pools([pool])


def test_there_is_a_pool() -> None:
    with pytest.raises(InputError, match=r"^session_network_pool: \[\]: "):
        check_pools([])
