# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from samples import agent, plan, request

from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import AgentReport, ImageState
from ansible_collections.cluster.compute.plugins.plugin_utils._session.deployment import (
    image_is_settled,
    lease_seconds,
    network_host,
    network_patience,
    unreachable_agents,
)

BRIDGE = plan(request(cluster_size=2))
OVERLAY = plan(request(cluster_size=3), "bbc")


def status(name: str, **fields: Any) -> AgentReport:
    names = ("reference", "id", "made", "owner")
    own = {name: fields.pop("image_" + name) for name in names if "image_" + name in fields}
    image = ImageState(**{"reference": "reference", "id": "sha256:1", **own})
    return replace(agent(name, **fields), image=image)


def test_the_report_of_a_host_that_cannot_be_reached_is_enough() -> None:
    report = {"name": "a", "group": "default", "reachable": False, "reason": "timed out"}
    assert AgentReport.from_json(report) == AgentReport("a", reachable=False, reason="timed out")


@pytest.mark.parametrize(
    ("managers", "lost", "head", "host"),
    [
        ("ab", "", "a", "b"),
        ("ac", "", "b", "c"),
        ("bc", "", "c", "c"),
        ("ab", "a", "a", "b"),
        ("b", "", "a", "b"),
        ("", "", "a", "a"),
        ("ab", "ab", "a", "a"),
    ],
)
def test_a_manager_that_answers_makes_the_overlay(managers: str, lost: str, head: str, host: str) -> None:
    statuses = [status(name, manager=name in managers, reachable=name not in lost) for name in "abc"]
    assert network_host(OVERLAY, statuses, head) == host


def test_a_manager_with_containers_makes_the_overlay() -> None:
    """It does so with the task that creates its containers: the session needs no task for the network alone."""
    statuses = [status("a", manager=True), status("b"), status("c", manager=True)]
    assert network_host(OVERLAY, statuses, head="a") == "c"


def test_a_manager_of_another_swarm_makes_no_overlay() -> None:
    statuses = [status("a", manager=True, swarm="swarm2"), status("b"), status("c", manager=True)]
    assert network_host(OVERLAY, statuses, "a") == "c"


def test_the_agent_of_main1_makes_the_bridge() -> None:
    assert network_host(BRIDGE, [status("b", manager=True), status("a")], "b") == "a"


@pytest.mark.parametrize(
    ("unreachable", "failed", "lost", "patience"),
    [("", "", (), 30), ("b", "", ("b",), 3), ("", "c", ("c",), 3), ("b", "cb", ("b", "c"), 3)],
)
def test_a_lost_agent_shortens_the_removal_of_networks(
    unreachable: str, failed: str, lost: tuple[str, ...], patience: int
) -> None:
    statuses = [status(name, reachable=name not in unreachable) for name in "abc"]
    assert unreachable_agents(statuses, failed) == lost
    assert network_patience(lost) == patience
    assert network_patience(lost, has_waited=True) == 3


@pytest.mark.parametrize(
    ("pull", "statuses", "is_settled"),
    [
        ("missing", [status("b"), status("c")], True),
        ("never", [status("b"), status("c")], True),
        ("always", [status("b"), status("c")], False),
        ("missing", [status("b"), status("c", image_id="")], False),
        ("missing", [status("b"), status("c", image_id="sha256:2")], False),
        ("missing", [status("b"), status("c", image_reference="other")], False),
        ("missing", [status("b", image_reference="other"), status("c", image_reference="other")], False),
        ("missing", [status("b")], False),
        ("missing", [status("a", image_id=""), status("b"), status("c")], True),
        ("missing", [status(name, image_made="2026-03-01") for name in "abc"], True),
        ("missing", [status("a", image_made="2026-03-01"), status("b"), status("c")], True),
        (
            "missing",
            [status("a", image_made="2026-03-02"), *(status(one, image_made="2026-03-01") for one in "bc")],
            False,
        ),
        (
            "missing",
            [status("a", image_made="9", image_owner="bob"), *(status(one, image_made="2026-03-01") for one in "bc")],
            True,
        ),
        (
            "missing",
            [status("a", image_made="9", group="other"), *(status(one, image_made="2026-03-01") for one in "bc")],
            True,
        ),
    ],
)
def test_an_image_is_settled_when_all_agents_of_the_session_have_the_same(
    pull: str, statuses: list[AgentReport], is_settled: bool
) -> None:
    assert image_is_settled(OVERLAY, statuses, pull) is is_settled


@pytest.mark.parametrize(
    ("variables", "statuses", "seconds"),
    [
        ({}, [status("a")], 600),
        ({"bootstrap": "true"}, [status("a")], 630),
        ({}, [status("a"), status("b", image_id="")], 1600),
        ({}, [status("a"), status("b", image_id="", reachable=False)], 600),
        ({"pull": "always"}, [status("a")], 1600),
        ({"pull": "always", "bootstrap": "true"}, [status("a")], 1630),
        ({"apps": [{"name": "web", "port": 80, "command": "serve"}], "apps_timeout": 900}, [status("a")], 1500),
        ({"apps": [{"name": "web", "port": 80}], "apps_timeout": 900}, [status("a")], 600),
        ({"grace": 3600}, [status("a")], 4200),
    ],
)
def test_a_lease_covers_all_that_a_launch_may_wait_for(
    variables: Json, statuses: list[AgentReport], seconds: int
) -> None:
    wanted = request(**{"bootstrap_timeout": 30, "pull_timeout": 1000, "grace": 0, **variables})
    assert lease_seconds(wanted, statuses, launch_timeout=600) == seconds


def test_an_agent_needs_only_the_image_of_its_own_roles() -> None:
    made = plan(request(cluster_mode="multi-node", roles=[{"name": "ps", "image": "own:1"}]), "bc")
    assert made.images == {"reference": ("b",), "own:1": ("c",)}
    assert image_is_settled(made, [status("b"), status("c", image_id="")], "missing")
    assert not image_is_settled(made, [status("b", image_id=""), status("c")], "missing")


def test_a_launch_may_wait_for_every_role() -> None:
    asked = request(
        grace=0, apps_timeout=60, roles=[{"name": "ps", "ready": 80}, {"name": "data", "ready": 80}, {"name": "worker"}]
    )
    assert lease_seconds(asked, [status("a")], 600) == 720


def test_a_launch_may_wait_for_the_image_of_every_role() -> None:
    """Reports are about the image of main1 alone. Another controller must not take the launch for lost meanwhile."""
    roles = [{"name": "ps", "image": "own:1"}, {"name": "data", "image": "own:1"}, {"name": "worker", "image": "own:2"}]
    asked = request(grace=0, pull_timeout=1000, roles=roles)
    assert lease_seconds(asked, [status("a")], 600) == 2600
    assert lease_seconds(asked, [status("a", image_id="")], 600) == 3600
