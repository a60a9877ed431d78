# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A plan of the head that is not what was requested."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from samples import PUBLIC_KEY, plan, request

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import (
    Mount,
    Plan,
    Port,
    Secret,
    User,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.plan import relaunched
from ansible_collections.cluster.compute.plugins.plugin_utils._session.agreement import check_agreement

ASKED = request(
    cluster_size=3,
    cluster_mode="multi-node",
    command="true\r\n",
    environment={"A": "1"},
    mounts=[{"source": "/data", "target": "/data"}, {"source": "server:/x", "target": "/nfs", "type": "nfs"}],
    secrets=[{"name": "token", "value": "x"}],
    torchrun="static",
)
MADE = plan(ASKED, "aab")


def check(made: Plan, asked: Any = ASKED, agents: tuple[str, ...] = ("a", "b", "c")) -> None:
    check_agreement(made, asked, agents, "head1")


def test_the_plan_of_a_request_agrees_with_it() -> None:
    check(MADE)
    check(Plan.from_json(MADE.to_short_json()))
    check(relaunched(MADE, {"a": {MADE.main.name}}))


def test_the_head_says_which_folders_its_policy_permits() -> None:
    made = plan(ASKED, "aab", permitted_folders=("/",))
    check(Plan.from_json(made.to_short_json()))


def test_a_variable_and_a_label_that_are_absent_are_named() -> None:
    with pytest.raises(ComputeError, match=r"main1\.environment\.\w+ is None"):
        check(replace(MADE, containers=tuple(replace(one, environment={}) for one in MADE.containers)))
    with pytest.raises(ComputeError, match=r"main1\.labels\.[\w.]+ is None"):
        check(replace(MADE, containers=(replace(MADE.main, labels={}), *MADE.containers[1:])))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "other"),
        ("owner", "mallory"),
        ("image", "evil"),
        ("command", "id"),
        ("bootstrap", "id"),
        ("on_failure", "restart"),
        ("mounts", (Mount("/", "/data"),)),
        ("secrets", (Secret("token"), Secret("key"))),
        ("user", User(uid=0)),
        ("rdma", True),
        ("fabric", True),
        ("authorized_keys", (PUBLIC_KEY,)),
        ("lifetime", 1),
        ("size", 2),
        ("group", "other"),
    ],
)
def test_what_the_owner_decides_is_as_requested(field: str, value: object) -> None:
    other = replace(MADE, session=replace(MADE.session, **{field: value}))
    with pytest.raises(
        ComputeError, match=r"^The plan of session train that head1 answers is not what was requested: "
    ):
        check(other)


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"agent": "unknown"}, "main1.agent"),
        ({"ports": (Port("ssh", 22, "127.0.0.1", 22),)}, "port ssh"),
        ({"ports": (Port("ssh", 22, "127.0.0.1", 30000), Port("x", 8888, "0.0.0.0", 30001))}, "ports"),
        ({"environment": {"LD_PRELOAD": "/data/evil.so"}}, "main1.environment.LD_PRELOAD"),
        ({"labels": {"other.program": "run"}}, "main1.labels.other.program"),
        ({"name": "database"}, "main1.name"),
    ],
)
def test_a_container_is_as_requested(fields: dict[str, Any], place: str) -> None:
    first = replace(MADE.main, **fields)
    with pytest.raises(ComputeError, match=r"is not what was requested: %s is " % place):
        check(replace(MADE, containers=(first, *MADE.containers[1:])))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("driver", "host"),
        ("encrypted", True),
        ("name", "bridge"),
        ("ssh_port", 2222),
    ],
)
def test_the_network_is_as_requested(field: str, value: object) -> None:
    with pytest.raises(ComputeError, match=r"is not what was requested: (%s|ports) is " % field):
        check(replace(MADE, network=replace(MADE.network, **{field: value})))


@pytest.mark.parametrize(
    ("ssh", "public", "host_ip", "fits"),
    [
        ("0.0.0.0", True, "0.0.0.0", True),
        ("::", True, "::", True),
        ("::", True, "0.0.0.0", False),
        ("::", False, "::", False),
        ("::", False, "127.0.0.1", True),
    ],
)
def test_a_port_of_an_app_is_published_as_requested(ssh: str, public: bool, host_ip: str, fits: bool) -> None:
    asked = request(name="train", apps=[{"name": "web", "port": 8888, "public": public}])
    made = plan(asked, ports=(Port("ssh", 22, ssh, 30000), Port("web", 8888, host_ip, 30001)))
    with nullcontext() if fits else pytest.raises(ComputeError, match="port web is"):
        check(made, asked)


def test_resources_are_as_requested() -> None:
    first = replace(MADE.main, resources=replace(MADE.main.resources, memory=1 << 40))
    with pytest.raises(ComputeError, match=r"main1\.resources"):
        check(replace(MADE, containers=(first, *MADE.containers[1:])))


def test_a_fabric_is_as_requested() -> None:
    asked = request(name="train", cluster_size=2, cluster_mode="multi-node", cpus=1, fabric=True)
    check(plan(asked, "ab"), asked)
    for wrong in ("", "192.0.2.0/27"):
        with pytest.raises(ComputeError, match=r"fabric is"):
            check(plan(asked, "ab", fabric=wrong), asked)
    with pytest.raises(ComputeError, match=r"fabric is"):
        check(replace(MADE, network=replace(MADE.network, fabric="10.201.0.32/27")))
    first = replace(MADE.main, resources=replace(MADE.main.resources, fabric=True))
    with pytest.raises(ComputeError, match=r"main1\.resources"):
        check(replace(MADE, containers=(first, *MADE.containers[1:])))


def test_a_strict_choice_of_agents_binds_the_head() -> None:
    strict = replace(ASKED, agents=("a",), agents_policy="strict")
    with pytest.raises(ComputeError, match=r"sub2\.agent"):
        check(plan(strict, "aab"), strict)


def test_a_subnet_is_in_a_pool_of_the_request() -> None:
    with pytest.raises(ComputeError, match=r"subnet"):
        check(plan(replace(ASKED, network_pool=("10.9.0.0/16",)), "aab"))
