# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The forms of a plan: the whole, the short one, and the part of an agent, whose size follows its own containers."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from samples import plan, request

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.payloads import (
    AgentSettings,
    container_body,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Plan
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.plan import with_user_environment


def made(placement: str) -> Plan:
    asked = request(cluster_size=len(placement), cpus=0.1, memory="64m", shm="1m", network_pool=["10.64.0.0/16"])
    own = [{"OWN": str(rank), "LONG": "x" * 100} if rank % 2 else {"NL": "a\nb"} for rank in range(len(placement))]
    return with_user_environment(plan(asked, placement), own)


@pytest.mark.parametrize("placement", ["a", "aab", "a" * 40])
def test_a_short_plan_is_the_same_plan(placement: str) -> None:
    whole = made(placement)
    short = json.loads(json.dumps(whole.to_short_json()))
    assert Plan.from_json(short) == whole == Plan.from_json(whole.to_json())
    assert Plan.from_json(short).to_json() == whole.to_json()


def test_an_agent_makes_the_same_containers_from_its_part() -> None:
    whole = made("aaabbbbc")
    for agent in "abc":
        part = Plan.from_parameter(json.loads(json.dumps(whole.part(agent).to_parameter())))
        assert list(part.containers) == whole.on(agent)
        assert part.part(agent) == part, "a part of a part is the part"
        for container in part.containers:
            wanted = container_body(whole, container, AgentSettings())
            assert container_body(part, container, AgentSettings()) == wanted


def size(document: object) -> int:
    return len(json.dumps(document, separators=(",", ":")))


def test_what_an_agent_receives_follows_its_own_containers() -> None:
    """Ten containers of 100, 200 and 400; what grows are the lists of all names."""
    own, lists = [], []
    for count in (100, 200, 400):
        whole = made("a" * 10 + "b" * (count - 10))
        document = whole.part("a").to_parameter()
        lists.append(size(document.pop("peers")) + size(document.pop("shared")["environment"]))
        own.append(size(document))
    assert max(own) < 1.1 * min(own)
    assert lists[-1] < 4.5 * lists[0], "the lists of names grow linearly"
    assert size(whole.to_short_json()) < 0.2 * size(whole.to_json())


def test_a_part_without_containers_has_the_network() -> None:
    part = made("aab").part("z")
    assert (part.containers, part.network) == ((), made("aab").network)
    assert replace(part, containers=made("aab").containers, peers=()) == made("aab")
