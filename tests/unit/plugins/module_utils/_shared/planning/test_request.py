# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The normal form of a request: its defaults, its digest, and what makes two requests differ."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import GIB, request

from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import digest
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.declaration import declared_choice
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import App, Mount, User
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.capacity import Demand, PerContainer
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request import Request
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request_checks import check_request

BASE = {"name": "train", "owner": "alice"}
DATA = {"source": "/data", "target": "/data"}


def test_what_is_not_said_has_the_documented_default() -> None:
    assert check_request(BASE) == Request(
        name="train",
        owner="alice",
        size=1,
        mode="single-node",
        millicpus=1000,
        memory=GIB,
        shm=64 << 20,
        gpus=0.0,
        group="default",
        agents_policy="preferred",
        strategy="pack",
        network_pool=("10.201.0.0/16",),
        port_range="30000-31000",
        bootstrap_timeout=300,
        verify_timeout=60,
        pull="missing",
        pull_timeout=1800,
    )


FULL = {
    **BASE,
    "cluster_size": "4",
    "cluster_mode": "multi-node",
    "image": "registry:5000/team/image:1.0",
    "cpus": "2",
    "memory": "16g",
    "shm": "1g",
    "gpus": "2",
    "cpu_pinning": "yes",
    "resource_group": "gpu.a100",
    "agents": ["a", "b"],
    "agents_policy": "strict",
    "strategy": "spread",
    "priority": 90,
    "environment": {"A": "x=y", "N": 5, "F": 0.5, "R": "<% rank %>", "T": "a\tb"},
    "mounts": [
        {"source": "/data/", "target": "/data/"},
        {"source": "cache", "target": "/home/work/.cache", "mode": "ro"},
        {"source": "nas:/export/a b".replace(" ", "_"), "target": "/nas", "type": "nfs", "options": {"o": "nolock"}},
    ],
    "apps": [{"name": "jupyter", "port": 8888, "preferred_port": 8888, "public": True}, {"name": "web", "port": "80"}],
    "command": "python train.py\n",
    "command_timeout": 60,
    "bootstrap": "pip install x",
    "on_failure": "terminate",
    "user": {"uid": 2000},
    "network_encrypted": "true",
    "network_pool": ["10.9.0.0/16"],
    "port_range": "40000-40100",
    "bootstrap_timeout": "1200",
    "verify_timeout": 90,
    "pull": "always",
    "pull_timeout": 3600,
}


def test_everything_said_comes_into_one_normal_form() -> None:
    assert check_request(FULL) == Request(
        name="train",
        owner="alice",
        size=4,
        mode="multi-node",
        image="registry:5000/team/image:1.0",
        millicpus=2000,
        memory=16 * GIB,
        shm=GIB,
        gpus=2.0,
        cpu_pinning=True,
        group="gpu.a100",
        agents=("a", "b"),
        agents_policy="strict",
        strategy="spread",
        priority=90,
        environment={"A": "x=y", "N": "5", "F": "0.5", "R": "<% rank %>", "T": "a\tb"},
        mounts=(
            Mount("/data/", "/data", "bind", "rw"),
            Mount("cache", "/home/work/.cache", "volume", "ro"),
            Mount("nas:/export/a_b", "/nas", "nfs", "rw", {"o": "nolock"}),
        ),
        apps=(App("jupyter", 8888, 8888, True), App("web", 80)),
        command="python train.py\n",
        command_timeout=60,
        bootstrap="pip install x",
        on_failure="terminate",
        user=User(uid=2000, gid=2000),
        network_encrypted=True,
        network_pool=("10.9.0.0/16",),
        port_range="40000-40100",
        bootstrap_timeout=1200,
        verify_timeout=90,
        pull="always",
        pull_timeout=3600,
    )


def test_the_demand_is_what_placement_reads() -> None:
    each = PerContainer(2000, 16 * GIB, GIB, 2.0, True)
    expected = Demand(4, each, "multi-node", "gpu.a100", "spread", ("a", "b"), "strict")
    assert check_request(FULL).demand() == expected


@pytest.mark.parametrize("variables", [BASE, FULL])
def test_the_normal_form_survives_json(variables: dict[str, Any]) -> None:
    request = check_request(variables)
    document = json.loads(json.dumps(request.to_json()))
    assert document == request.to_json()
    again = Request.from_json(document)
    assert again == request
    assert again.digest == request.digest
    assert again.differences(request) == []


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "cluster_size": st.integers(1, 1000),
            "cpus": st.integers(10, 10**6).map(lambda millis: millis / 1000),
            "memory": st.integers(64 << 20, 1 << 50),
            "gpus": st.sampled_from([0, 0.25, 1, 8]),
            "priority": st.integers(0, 100),
            "environment": st.dictionaries(
                st.from_regex(r"[A-Z_]{1,5}", fullmatch=True),
                st.text(st.characters(exclude_categories=["Cc", "Cs"])),
            ),
            "command": st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
        },
    )
)
def test_any_good_request_survives_json(variables: dict[str, Any]) -> None:
    request = check_request({**BASE, **variables})
    again = Request.from_json(json.loads(json.dumps(request.to_json())))
    assert (again, again.digest) == (request, request.digest)


@pytest.mark.parametrize(
    ("mine", "yours"),
    [
        ({"cpus": "2"}, {"cpus": 2.0}),
        ({"memory": "1g"}, {"memory": "1024m"}),
        ({"gpus": 1}, {"gpus": "1.0"}),
        ({"cluster_size": "3"}, {"cluster_size": 3}),
        ({"mounts": [DATA]}, {"mounts": [{"source": "/data", "target": "/data/", "type": "bind", "mode": "rw"}]}),
        ({"environment": {"A": 1, "B": "2"}}, {"environment": {"B": "2", "A": "1"}}),
        ({"user": {"uid": 1000}}, {}),
        ({"network_encrypted": False}, {"network_encrypted": "no"}),
    ],
)
def test_the_same_said_in_other_words_is_the_same_request(mine: dict[str, Any], yours: dict[str, Any]) -> None:
    first, second = check_request({**BASE, **mine}), check_request({**BASE, **yours})
    assert first.digest == second.digest
    assert first.differences(second) == []


@pytest.mark.parametrize(
    ("variables", "names"),
    [
        ({"cluster_size": 3}, ["size"]),
        ({"cpus": 2, "environment": {"A": "1"}}, ["millicpus", "environment"]),
        ({"mounts": [DATA]}, ["mounts"]),
        ({"user": {"uid": 7}}, ["user"]),
        ({"apps": [{"name": "web", "port": 80}]}, ["apps"]),
    ],
)
def test_differences_are_named(variables: dict[str, Any], names: list[str]) -> None:
    other = check_request({**BASE, **variables})
    assert check_request(BASE).differences(other) == other.differences(check_request(BASE)) == names
    assert check_request(BASE).digest != other.digest


def test_how_it_is_launched_is_kept_and_makes_no_other_request() -> None:
    manner = {"bootstrap_timeout": 1200, "verify_timeout": 90, "pull": "never", "pull_timeout": 60}
    other = check_request({**BASE, **manner})
    assert {name: other.to_json()[name] for name in manner} == manner
    assert check_request(BASE).differences(other) == []
    assert check_request(BASE).digest == other.digest


def test_a_request_that_was_stored_without_how_it_is_launched_has_the_defaults() -> None:
    document = check_request(BASE).to_json()
    for name in ("bootstrap_timeout", "verify_timeout", "pull", "pull_timeout"):
        del document[name]
    assert Request.from_json(document) == check_request(BASE)


def test_a_new_variable_changes_no_digest_at_its_default() -> None:
    """A variable that a release adds has its default in every request that a store holds."""

    @dataclass(frozen=True)
    class LaterRequest(Request):
        later: str = declared_choice(("usual", "other"), "A variable that a release adds.")

    later = LaterRequest(**{known.name: getattr(request(), known.name) for known in fields(Request)})
    assert later.digest == request().digest
    assert replace(later, later="other").digest != request().digest


def test_a_digest_covers_only_what_differs_from_the_default() -> None:
    given = {"name": "train", "owner": "alice", "millicpus": 2000, "user": {"uid": 7, "gid": 7}}
    asked = check_request({"name": "train", "owner": "alice", "cpus": 2, "user": {"uid": 7}, "pull": "never"})
    assert asked.digest == digest(given)
