# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The results of several agents as one."""

from __future__ import annotations

from ansible_collections.cluster.compute.plugins.plugin_utils._joint_result import joint_result

MADE = {"changed": True, "changed_names": ["x.main1"], "containers": [{"hostname": "main1"}], "duration": 1.5}


def failed(code: str, message: str) -> dict[str, object]:
    return {
        "failed": True,
        "msg": message,
        "failure": {"code": code, "message": message, "where": "b"},
        "duration": 0.1,
    }


def test_lists_follow_the_order_of_the_agents_and_the_slowest_counts() -> None:
    other = {"changed": False, "changed_names": ["x.sub1"], "containers": [], "duration": 0.5, "network_duration": 0.2}
    assert joint_result({"b": MADE, "a": other}) == {
        "changed": True,
        "changed_names": ["x.main1", "x.sub1"],
        "duration": 1.5,
        "network_duration": 0.2,
    }


def test_differences_become_one_list() -> None:
    one, several = {"before": "a"}, [{"before": "b"}, {"before": "c"}]
    assert joint_result({"a": {"diff": one}, "b": {"diff": several}})["diff"] == [one, *several]


def test_no_agent_is_no_change() -> None:
    assert joint_result({}) == {"changed": False}


def test_each_different_failure_is_named_once() -> None:
    result = joint_result(
        {"a": failed("engine", "Full."), "b": MADE, "c": failed("engine", "Full."), "d": failed("x", "Y.")}
    )
    assert (result["failed"], result["msg"], result["changed"]) == (True, "Full. Y.", True)
    assert result["failure"] == {"code": "engine", "message": "Full. Y.", "where": "b"}


def test_a_lost_engine_comes_before_the_failures_that_follow_from_it() -> None:
    """The engine of the head has the network of all: without it, no other engine can attach a container."""
    result = joint_result({"a": failed("engine", "Could not attach."), "b": failed("unreachable", "No answer of b.")})
    assert result["msg"] == "No answer of b. Could not attach."
    assert result["failure"]["code"] == "unreachable"


def test_a_long_failure_keeps_its_advice() -> None:
    sentence = "The engine could not do it: %s; free some space." % ("x" * 400)
    assert joint_result({"a": failed("engine", sentence)})["msg"] == sentence


def test_a_failure_that_another_placement_avoids_decides() -> None:
    result = joint_result({"a": failed("engine", "Full."), "b": failed("taken", "Port 80 is used.")})
    assert result["failure"]["code"] == "taken"


def test_a_module_that_breaks_off_says_what_it_printed() -> None:
    result = joint_result({"a": {"failed": True, "msg": "", "module_stderr": "python3: not found"}})
    assert result["msg"] == "python3: not found"
