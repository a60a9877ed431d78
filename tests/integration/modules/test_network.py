# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A session's network on a real engine: created once, never adopted or overwritten, removed with the session."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import docker
import pytest
from engine_lab import Shape, run_module

from ansible_collections.cluster.compute.plugins.module_utils._shared import label
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Plan


@pytest.fixture(scope="module")
def client(engine_host: str) -> Any:
    return docker.APIClient(base_url=engine_host, version="auto")


@pytest.fixture
def plan(client: Any) -> Iterator[Plan]:
    made = Shape(subnet=78).plan()
    yield made
    for network in client.networks(names=[made.network.name]):
        client.remove_network(network["Id"])


def listed(client: Any, plan: Plan) -> list[dict[str, Any]]:
    return [one for one in client.networks() if one["Name"] == plan.network.name]


def test_a_network_is_created_once_and_removed_once(client: Any, plan: Plan) -> None:
    shown = run_module("network", check=True, diff=True, plan=plan.to_json())
    assert shown["changed"], shown
    assert shown["diff"]["before"] == {}
    assert shown["diff"]["after"]["subnet"] == "10.213.78.0/24"
    assert listed(client, plan) == []
    made = run_module("network", plan=plan.to_json())
    assert made["changed"]
    assert set(made) == set(shown) - {"diff"}
    network = listed(client, plan)[0]
    assert made["network"]["id"] == network["Id"]
    assert network["Labels"][label.SESSION] == plan.session.id
    assert network["IPAM"]["Config"][0]["IPRange"] == "10.213.78.128/25"
    assert run_module("network", plan=plan.to_json())["changed"] is False
    options = {"state": "absent", "sessions": [plan.session.id]}
    assert run_module("network", check=True, **options)["removed"] == [plan.network.name]
    assert len(listed(client, plan)) == 1
    assert run_module("network", **options)["removed"] == [plan.network.name]
    assert listed(client, plan) == []
    assert run_module("network", **options)["changed"] is False
    assert run_module("network", state="absent", sessions=[])["changed"] is False


def test_the_mtu_is_the_plans(client: Any, plan: Plan) -> None:
    plan = replace(plan, network=replace(plan.network, mtu=1350))
    run_module("network", plan=plan.to_json())
    assert listed(client, plan)[0]["Options"]["com.docker.network.driver.mtu"] == "1350"
    assert run_module("network", plan=plan.to_json())["changed"] is False


def test_drift_is_refused(plan: Plan) -> None:
    run_module("network", plan=plan.to_json())
    wider = replace(plan, network=replace(plan.network, subnet="10.213.78.0/23"))
    result = run_module("network", plan=wider.to_json())
    assert result["failure"]["code"] == "state"
    assert "has another subnet than the plan" in result["msg"]


def test_a_stranger_is_left_alone(client: Any, plan: Plan) -> None:
    identity = client.create_network(plan.network.name)["Id"]
    result = run_module("network", plan=plan.to_json())
    assert result["failure"]["code"] == "conflict"
    assert f"({identity[:12]}) does not belong to this session; remove or rename it." in result["msg"]
    run_module("network", state="absent", plan=plan.to_json())
    assert listed(client, plan)[0]["Id"] == identity


def test_an_overlap_is_reported(plan: Plan, client: Any) -> None:
    run_module("network", plan=plan.to_json())
    other = Shape(subnet=78).plan()
    result = run_module("network", plan=other.to_json())
    assert result["failure"]["code"] == "taken", result
    assert "overlaps" in result["msg"]
    assert "choose another pool of subnets" in result["msg"]
    assert listed(client, other) == []


def test_a_network_in_use_is_reported_at_the_deadline(plan: Plan, client: Any) -> None:
    import engine_lab

    engine_lab.make_image(client)
    run_module("network", plan=plan.to_json())
    settings = client.create_networking_config({plan.network.name: client.create_endpoint_config()})
    user = client.create_container(
        engine_lab.IMAGE, ["sleep", "60"], entrypoint=["/bin/busybox"], networking_config=settings
    )
    client.start(user["Id"])
    try:
        result = run_module("network", state="absent", sessions=[plan.session.id], deadline=1)
        assert "active endpoints" in result["msg"]
    finally:
        client.remove_container(user["Id"], force=True)
    assert run_module("network", state="absent", sessions=[plan.session.id], deadline=10)["changed"]
