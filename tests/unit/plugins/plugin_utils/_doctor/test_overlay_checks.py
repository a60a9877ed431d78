# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks inside the overlay network: each fault has its own line, and an outlier is named."""

from __future__ import annotations

import doctest
from itertools import permutations
from typing import Any

import pytest
from check_samples import NAMES, overlay

from ansible_collections.cluster.compute.plugins.module_utils._shared.text.table import check_lines
from ansible_collections.cluster.compute.plugins.plugin_utils._doctor import overlay_checks
from ansible_collections.cluster.compute.plugins.plugin_utils._doctor.overlay_checks import check_overlay, matrix

PLAN: dict[str, Any] = {
    "reason": "",
    "manager": "agent1",
    "mtu": 1450,
    "links": [["agent1", "agent2"], ["agent2", "agent3"], ["agent3", "agent1"]],
    "members": [
        {"name": name, "host": f"check{number}", "address": f"10.201.192.{number + 1}"}
        for number, name in enumerate(NAMES, 1)
    ],
}


def good() -> dict[str, Any]:
    """What three agents without a fault find."""
    return {
        name: {
            "received": [[other, "vxlan"] for other in NAMES if other != name],
            "overlay": overlay(name, *NAMES, mbits={peer: 940.0}),
        }
        for name, peer in PLAN["links"]
    }


def lines(probes: dict[str, Any], plan: dict[str, Any] | None = None) -> list[tuple[str, str, str]]:
    return [(one.status, one.check, one.where) for one in check_overlay(PLAN if plan is None else plan, probes)]


def not_ok(probes: dict[str, Any]) -> list[tuple[str, str, str]]:
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
    probes = good()
    probes["agent3"]["overlay"]["heard"] = []
    probes["agent3"]["received"] = [["agent1", "vxlan"], ["agent2", "vxlan"]] if is_open else []
    assert not_ok(probes) == [("fail", "overlay", "agent1 -> agent3"), ("fail", "overlay", "agent2 -> agent3")]
    finding = next(one for one in check_overlay(PLAN, probes) if one.status == "fail")
    assert finding.found.endswith(found)
    assert remedy in finding.remedy


def test_the_port_is_that_of_the_swarm() -> None:
    probes = good()
    probes["agent3"]["overlay"]["heard"] = []
    finding = next(one for one in check_overlay(PLAN, probes, 7789) if one.status == "fail")
    assert "though UDP 7789 is open" in finding.found
    probes["agent3"]["received"] = []
    finding = next(one for one in check_overlay(PLAN, probes, 7789) if one.status == "fail")
    assert finding.remedy.startswith("allow UDP 7789 (VXLAN)")


def test_packets_of_the_full_mtu_have_a_check_of_their_own() -> None:
    probes = good()
    probes["agent2"]["overlay"]["heard"].remove(["agent1", "full"])
    assert not_ok(probes) == [("fail", "overlay mtu", "agent1 -> agent2")]


@pytest.mark.parametrize("answer", [None, "10.201.192.99", "Name or service not known"])
def test_a_name_must_resolve_to_the_address(answer: str | None) -> None:
    probes = good()
    names = probes["agent2"]["overlay"]["names"]
    del names["agent3"]
    names.update({"agent3": answer} if answer else {})
    assert not_ok(probes) == [("fail", "overlay names", "agent2 -> agent3")]


def test_an_agent_with_two_slow_links_is_named_and_not_its_pairs() -> None:
    names = [f"agent{number}" for number in range(1, 6)]
    links = list(zip(names, names[1:] + names[:1], strict=True))
    members = [{"name": name, "address": f"10.201.192.{number}"} for number, name in enumerate(names, 2)]
    slow = {("agent2", "agent3"): 18.0, ("agent3", "agent4"): 17.0}
    probes = {pair[0]: {"overlay": overlay(pair[0], *names, mbits={pair[1]: slow.get(pair, 940.0)})} for pair in links}
    plan = {**PLAN, "links": links, "members": members}
    finding = next(one for one in check_overlay(plan, probes) if one.status == "warn")
    assert (finding.check, finding.where) == ("throughput", "agent3")
    assert finding.found == "18 Mbit/s, where 940 Mbit/s is usual"


def test_a_single_slow_link_is_named() -> None:
    probes = good()
    probes["agent3"]["overlay"]["mbits"] = {"agent1": 18.0}
    assert not_ok(probes) == [("warn", "throughput", "agent3 -> agent1")]


@pytest.mark.parametrize("mbits", [{}, {"agent2": 0.0}, {"agent2": None}])
def test_a_link_without_a_measurement_has_no_throughput(mbits: dict[str, float]) -> None:
    probes = good()
    probes["agent1"]["overlay"]["mbits"] = mbits
    assert not_ok(probes) == [("warn", "throughput", "agent1 -> agent2")]
    finding = next(one for one in check_overlay(PLAN, probes) if one.status == "warn")
    assert (finding.found, finding.remedy) == (
        "not measured",
        "run check_agents.yml again when the agents have less to do",
    )
    assert matrix(probes)[0]["mbits"] is None


def test_a_late_pair_is_named() -> None:
    probes = good()
    probes["agent1"]["overlay"]["latency"]["agent2"] = 9.0
    assert not_ok(probes) == [("warn", "latency", "agent1 -> agent2")]


def test_small_differences_are_no_outliers() -> None:
    probes = good()
    probes["agent1"]["overlay"]["latency"]["agent2"] = 1.9
    probes["agent1"]["overlay"]["mbits"]["agent2"] = 300.0
    assert not_ok(probes) == []


@pytest.mark.parametrize(
    ("probe", "line"),
    [
        ({"overlay_reason": "attaching to network failed"}, ("fail", "overlay", "agent2")),
        ({"overlay": {"names": {}, "heard": [], "latency": {}, "mbits": {}, "measured": False}}, ("warn", "overlay", "agent2")),
        ({}, ("warn", "overlay", "agent2")),
    ],
)  # fmt: skip
def test_an_agent_without_a_result_is_named_and_the_others_are_tested(probe: dict[str, Any], line: tuple[str, ...]) -> None:  # fmt: skip
    probes = {**good(), "agent2": probe}
    assert not_ok(probes) == [line]
    assert ("ok", "overlay", "all pairs") in lines(probes)


def test_a_network_that_cannot_be_made_is_a_failure() -> None:
    probes = {name: {"network_reason": "rpc error"} for name in NAMES}
    assert lines(probes) == [("fail", "overlay", "all")]


def test_without_a_plan_nothing_is_tested() -> None:
    assert lines(good(), {}) == []
    assert lines(good(), {"reason": "no manager", "members": []}) == [("warn", "overlay", "all")]


def test_the_matrix_has_a_row_for_each_sender() -> None:
    pairs = matrix(good())
    assert [(one["from"], one["to"]) for one in pairs] == list(permutations(NAMES, 2))
    assert pairs[1] == {"from": "agent1", "to": "agent3", "mbits": None, "milliseconds": 0.2}
    finding = {"status": "ok", "check": "engine", "where": "agent1", "found": "20.10", "remedy": ""}
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
