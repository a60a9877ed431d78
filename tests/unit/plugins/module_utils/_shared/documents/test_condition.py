# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a container that runs is as its plan has it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from samples import observed, plan, request, seen_with

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.condition import compared
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import ObservedContainer

PLAN = plan(request(cluster_size=2, cpus=2, memory="1g"), "aa")
MAIN = PLAN.main
RIGHT: dict[str, Any] = {
    "network": PLAN.network.name,
    "address": MAIN.address,
    "published": [port.host_port for port in MAIN.ports],
    "enforced": {"millicpus": 2000, "memory": 1 << 30, "pids": 32768, "cpuset": ""},
}


def seen(state: str = "running", **data: Any) -> ObservedContainer:
    usual = observed(MAIN, PLAN.session.id, state)
    return seen_with(usual, **{**RIGHT, **data})


def judged(**data: Any) -> tuple[str, str]:
    found = compared(PLAN, MAIN, seen(**data))
    return found.state, found.fault or ""


@pytest.mark.parametrize("data", [{}, {"enforced": {}}, {"enforced": {"memory": (1 << 30) - 4096, "millicpus": 2000}}])
def test_a_container_as_planned_runs(data: dict[str, Any]) -> None:
    assert judged(**data) == ("running", "")


def test_a_report_without_what_is_compared_has_no_fault() -> None:
    assert compared(PLAN, MAIN, observed(MAIN, PLAN.session.id)).state == "running"


@pytest.mark.parametrize(
    ("data", "state", "fault"),
    [
        ({"network": "", "address": ""}, "detached", "is not on the network of the session"),
        ({"network": "other"}, "detached", "is not on the network of the session"),
        ({"address": "10.9.9.9"}, "detached", f"has the address 10.9.9.9 in place of {MAIN.address}"),
        ({"address": ""}, "detached", f"has the address none in place of {MAIN.address}"),
        ({"published": []}, "unpublished", f"does not publish port {MAIN.ports[0].host_port}"),
        ({"engine_name": "mine"}, "changed", f"has the name mine in place of {MAIN.name}"),
        ({"enforced": {"millicpus": 500}}, "changed", "has 0.5 CPUs in place of 2"),
        ({"enforced": {"millicpus": 0}}, "changed", "has unlimited CPUs in place of 2"),
        ({"enforced": {"memory": 1 << 29}}, "changed", "has 512m memory in place of 1g"),
        (
            {"enforced": {"pids": 9, "cpuset": "0"}},
            "changed",
            "has 9 processes in place of 32768, the CPUs 0 in place of all",
        ),
    ],
)
def test_what_a_user_of_the_engine_has_changed_is_named(data: dict[str, Any], state: str, fault: str) -> None:
    assert judged(**data) == (state, fault)


@pytest.mark.parametrize("state", ["exited", "paused", "waiting", "apart", "restarting"])
def test_only_a_container_that_runs_is_compared(state: str) -> None:
    assert judged(state=state, network="", enforced={"pids": 1}) == (state, "")


def test_pinned_cpus_have_no_quota() -> None:
    pinned = replace(MAIN, resources=replace(MAIN.resources, cpuset="0-1"))
    for cpuset, state in (("0-1", "running"), ("7", "changed")):
        assert compared(PLAN, pinned, seen(enforced={"millicpus": 0, "cpuset": cpuset})).state == state


def test_on_the_network_of_the_hosts_no_place_is_compared() -> None:
    shared = plan(request(cluster_size=1, network="host"), "a", hosts={"a": ("192.0.2.1", "eth0")})
    usual = observed(shared.main, shared.session.id)
    one = seen_with(usual, **{"network": "host", "address": "", "published": []})
    assert compared(shared, shared.main, one).state == "running"
