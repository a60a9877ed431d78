# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks inside the overlay network: each fault has its own line, and an outlier is named."""

from __future__ import annotations

import doctest
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from check_samples import NAMES, overlay

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.examination import (
    InOverlay,
    OverlayMember,
    OverlayPlan,
    Probe,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.findings import Finding
from ansible_collections.cluster.compute.plugins.module_utils._shared.text.table import check_lines
from ansible_collections.cluster.compute.plugins.plugin_utils._doctor import overlay_checks
from ansible_collections.cluster.compute.plugins.plugin_utils._doctor.overlay_checks import check_overlay, matrix

PLAN = OverlayPlan(
    manager="agent1",
    mtu=1450,
    links=(("agent1", "agent2"), ("agent2", "agent3"), ("agent3", "agent1")),
    members=tuple(
        OverlayMember(name, f"check{number}", f"10.201.192.{number + 1}") for number, name in enumerate(NAMES, 1)
    ),
)


def good(**found: dict[str, Any]) -> dict[str, Probe]:
    """What three agents without a fault find, except for these parts of what a container has found, by agent."""
    return {
        name: Probe(
            received=tuple((other, "vxlan") for other in NAMES if other != name),
            overlay=replace(overlay(name, *NAMES, mbits={peer: 940.0}), **found.get(name, {})),
        )
        for name, peer in PLAN.links
    }


def lines(probes: dict[str, Probe], plan: OverlayPlan | None = PLAN) -> list[tuple[str, str, str]]:
    return [(one.status, one.check, one.where) for one in check_overlay(plan, probes)]


def not_ok(probes: dict[str, Probe]) -> list[tuple[str, str, str]]:
    return [line for line in lines(probes) if line[0] != "ok"]


def test_without_a_fault_each_check_is_one_line() -> None:
    found = check_overlay(PLAN, good())
    assert {(one.status, one.where) for one in found} == {("ok", "all pairs")}
    assert [(one.check, one.found) for one in found] == [
        ("overlay names", "6 of 6 resolve"),
        ("overlay", "6 of 6 arrive"),
        ("overlay mtu", "6 of 6 carry 1450 bytes"),
        ("throughput", "940 Mbit/s in 3 pairs, least 940 Mbit/s (agent1 -> agent2)"),
        ("latency", "0.20 ms in 6 pairs, most 0.20 ms (agent1 -> agent2)"),
    ]


@pytest.mark.parametrize(
    ("is_open", "found", "remedy"),
    [
        (True, "though UDP 4789 is open", "look for what drops VXLAN packets after the firewall"),
        (False, "no packet arrives inside the overlay network", "allow UDP 4789 (VXLAN) from agent1 on agent3"),
    ],
)
def test_a_lost_packet_blames_the_firewall_only_if_the_port_is_closed(is_open: bool, found: str, remedy: str) -> None:
    probes = good(agent3={"heard": ()})
    received = (("agent1", "vxlan"), ("agent2", "vxlan")) if is_open else ()
    probes["agent3"] = replace(probes["agent3"], received=received)
    assert not_ok(probes) == [("fail", "overlay", "agent1 -> agent3"), ("fail", "overlay", "agent2 -> agent3")]
    finding = next(one for one in check_overlay(PLAN, probes) if one.status == "fail")
    assert finding.found.endswith(found)
    assert remedy in finding.remedy


def test_the_port_is_that_of_the_swarm() -> None:
    probes = good(agent3={"heard": ()})
    finding = next(one for one in check_overlay(PLAN, probes, 7789) if one.status == "fail")
    assert "though UDP 7789 is open" in finding.found
    probes["agent3"] = replace(probes["agent3"], received=())
    finding = next(one for one in check_overlay(PLAN, probes, 7789) if one.status == "fail")
    assert finding.remedy.startswith("allow UDP 7789 (VXLAN)")


def test_packets_of_the_full_mtu_have_a_check_of_their_own() -> None:
    heard = overlay("agent2", *NAMES).heard
    probes = good(agent2={"heard": tuple(one for one in heard if one != ("agent1", "full"))})
    assert not_ok(probes) == [("fail", "overlay mtu", "agent1 -> agent2")]


@pytest.mark.parametrize("answer", [None, "10.201.192.99", "Name or service not known"])
def test_a_name_must_resolve_to_the_address(answer: str | None) -> None:
    names = {**overlay("agent2", *NAMES).names, "agent3": answer}
    probes = good(agent2={"names": {name: address for name, address in names.items() if address}})
    assert not_ok(probes) == [("fail", "overlay names", "agent2 -> agent3")]


def test_an_agent_with_two_slow_links_is_named_and_not_its_pairs() -> None:
    names = [f"agent{number}" for number in range(1, 6)]
    links = list(zip(names, names[1:] + names[:1], strict=True))
    members = tuple(OverlayMember(name, "", f"10.201.192.{number}") for number, name in enumerate(names, 2))
    slow = {("agent2", "agent3"): 18.0, ("agent3", "agent4"): 17.0}
    probes = {
        pair[0]: Probe(overlay=overlay(pair[0], *names, mbits={pair[1]: slow.get(pair, 940.0)})) for pair in links
    }
    plan = replace(PLAN, links=tuple(links), members=members)
    finding = next(one for one in check_overlay(plan, probes) if one.status == "warn")
    assert (finding.check, finding.where) == ("throughput", "agent3")
    assert finding.found == "18 Mbit/s, where 940 Mbit/s is usual"


def test_a_single_slow_link_is_named() -> None:
    probes = good(agent3={"mbits": {"agent1": 18.0}})
    assert not_ok(probes) == [("warn", "throughput", "agent3 -> agent1")]


@pytest.mark.parametrize("mbits", [{}, {"agent2": 0.0}, {"agent2": None}])
def test_a_link_without_a_measurement_has_no_throughput(mbits: dict[str, float]) -> None:
    probes = good(agent1={"mbits": mbits})
    assert not_ok(probes) == [("warn", "throughput", "agent1 -> agent2")]
    finding = next(one for one in check_overlay(PLAN, probes) if one.status == "warn")
    assert (finding.found, finding.remedy) == (
        "not measured",
        "run check_agents.yml again when the agents have less to do",
    )
    assert matrix(probes)[0].mbits is None


def test_a_late_pair_is_named() -> None:
    probes = good(agent1={"latency": {"agent2": 9.0, "agent3": 0.2}})
    assert not_ok(probes) == [("warn", "latency", "agent1 -> agent2")]


def test_small_differences_are_no_outliers() -> None:
    probes = good(agent1={"latency": {"agent2": 1.9, "agent3": 0.2}, "mbits": {"agent2": 300.0}})
    assert not_ok(probes) == []


@pytest.mark.parametrize(
    ("probe", "line"),
    [
        (Probe(overlay_reason="attaching to network failed"), ("fail", "overlay", "agent2")),
        (Probe(overlay=InOverlay()), ("warn", "overlay", "agent2")),
        (Probe(), ("warn", "overlay", "agent2")),
    ],
)
def test_an_agent_without_a_result_is_named_and_the_others_are_tested(probe: Probe, line: tuple[str, ...]) -> None:  # fmt: skip
    probes = {**good(), "agent2": probe}
    assert not_ok(probes) == [line]
    assert ("ok", "overlay", "all pairs") in lines(probes)


def test_a_network_that_cannot_be_made_is_a_failure() -> None:
    probes = {name: Probe(network_reason="rpc error") for name in NAMES}
    assert lines(probes) == [("fail", "overlay", "all")]


def test_without_a_plan_nothing_is_tested() -> None:
    assert lines(good(), None) == []
    assert lines(good(), OverlayPlan(reason="no manager")) == [("warn", "overlay", "all")]


def test_the_matrix_has_a_row_for_each_sender() -> None:
    pairs = matrix(good())
    assert [(one.sender, one.receiver) for one in pairs] == list(permutations(NAMES, 2))
    assert pairs[1].to_json() == {"from": "agent1", "to": "agent3", "mbits": None, "milliseconds": 0.2}
    finding = Finding("engine", "agent1", "ok", "20.10")
    assert [line.split() for line in check_lines([finding], pairs)] == [
        ["STATUS", "CHECK", "WHERE", "FOUND", "REMEDY"],
        ["ok", "engine", "agent1", "20.10"],
        [],
        ["MBIT/S,", "MS", "AGENT1", "AGENT2", "AGENT3"],
        ["agent1", "-", "940,", "0.20", "-,", "0.20"],
        ["agent2", "-,", "0.20", "-", "940,", "0.20"],
        ["agent3", "940,", "0.20", "-,", "0.20", "-"],
    ]
    assert len(check_lines([finding], [])) == 2


def test_examples() -> None:
    assert doctest.testmod(overlay_checks).failed == 0
