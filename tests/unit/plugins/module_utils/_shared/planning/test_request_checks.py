# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules inside and between the variables of a request."""

from __future__ import annotations

from typing import Any

import pytest
from samples import exactly, request

from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request import Request
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request_checks import check_request
from ansible_collections.cluster.compute.plugins.plugin_utils._variables.request_export import variables_of

BASE = {"name": "train", "owner": "alice"}
DATA = {"source": "/data", "target": "/data"}


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (
            {"memory": "1g", "shm": "2g"},
            "session_shm: '2g': must be at most session_memory, which is 1g.",
        ),
        (
            {"read_only_root": True, "disk": "1g"},
            "session_disk: '1g': must be 0 with session_read_only_root, whose writable directories are volumes without a size.",
        ),
        (
            {"cluster_size": 3, "per_agent": 2, "cluster_mode": "single-node"},
            "session_per_agent: 2: contradicts session_cluster_mode single-node, which puts 3 containers on one agent: remove one of the two.",
        ),
        ({"per_agent": -1}, "session_per_agent: -1: must be a whole number from 0 to 1000."),
        ({"cpus": 1.5, "cpu_pinning": True}, "session_cpus: 1.5: must be a whole number with session_cpu_pinning."),
        (
            {"environment": {"DEBUG": True}},
            "session_environment: DEBUG: True: must be a string or a number: put it in quotes.",
        ),
        (
            {"environment": {"TEXT": "a\nb"}},
            r"session_environment: TEXT: 'a\nb': must not contain newlines or control characters.",
        ),
        (
            {"environment": {"NOTHING": None}},
            "session_environment: NOTHING: None: must be a string or a number: put it in quotes.",
        ),
        ({"apps": [{"name": "web", "port": 0}]}, "session_apps: port: 0: must be a whole number from 1 to 65535."),
        (
            {"apps": [{"name": "web", "port": 22}]},
            "session_apps: port: 22: must not be 22, which is the session's SSH port.",
        ),
        (
            {"apps": [{"name": "web", "port": 80, "preferred_port": 70000}]},
            "session_apps: preferred_port: 70000: must be a whole number from 0 to 65535.",
        ),
        (
            {"apps": [{"name": "web", "port": 80, "public": "yep"}]},
            "session_apps: public: 'yep': must be true or false.",
        ),
        (
            {"mounts": [{**DATA, "options": "nolock"}]},
            "session_mounts: options: 'nolock': must be a dictionary of values by printable names.",
        ),
        ({"user": {"uid": 0}}, "session_user: uid: 0: must be a whole number from 1 to 2147483647."),
        ({"user": {"gid": "staff"}}, "session_user: gid: 'staff': must be a whole number from 1 to 2147483647."),
    ],
)
def test_bad_input_inside_and_between_variables(variables: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=exactly(message)):
        check_request({**BASE, **variables})


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "single-node"),
        ({"per_agent": 0}, "single-node"),
        ({"per_agent": 1}, "multi-node"),
        # A session keeps its mode when its size changes.
        ({"cluster_size": 1, "per_agent": 1}, "multi-node"),
        ({"per_agent": 3, "cluster_mode": "single-node"}, "single-node"),
        ({"cluster_size": 1, "roles": [{"name": "ps", "size": 2, "per_agent": 1}]}, "multi-node"),
        ({"cluster_size": 1, "roles": [{"name": "ps", "size": 2}]}, "single-node"),
        (
            {
                "per_agent": 1,
                "cluster_mode": "single-node",
                "cluster_size": 1,
                "roles": [{"name": "main", "per_agent": 0}],
            },
            "single-node",
        ),
        ({"network": "host", "cluster_mode": "single-node"}, "multi-node"),
    ],
)
def test_a_limit_of_containers_on_an_agent_allows_several_agents(variables: dict[str, Any], expected: str) -> None:
    made = check_request({**BASE, "cluster_size": 3, **variables})
    assert made.mode == expected
    written = {name.removeprefix("session_"): value for name, value in variables_of(made).items()}
    assert check_request(written) == made


@pytest.mark.parametrize("missing", ["name", "owner"])
def test_name_and_owner_must_be_given(missing: str) -> None:
    given_ = {name: value for name, value in BASE.items() if name != missing}
    with pytest.raises(InputError, match=exactly("session_%s: None: must be set." % missing)):
        check_request(given_)


def test_a_session_that_no_pool_can_hold_is_refused() -> None:
    """The launch is refused at once, because it would wait forever."""
    pools = ["10.201.0.0/27", "10.202.0.0/26"]

    def asked(**variables: Any) -> Request:
        return check_request({"name": "train", "owner": "alice", **variables})

    assert asked(cluster_size=30, network_pool=pools).size == 30
    message = (
        "session_cluster_size: 31: needs a /25, which no pool of session_network_pool can hold "
        "(10.201.0.0/27, 10.202.0.0/26)."
    )
    with pytest.raises(InputError, match=exactly(message)):
        asked(cluster_size=31, network_pool=pools)


def test_a_small_memory_has_a_small_shared_memory_unless_that_is_chosen() -> None:
    small = request(
        memory="32m", roles=[{"name": "ps"}, {"name": "worker", "memory": "16m"}, {"name": "eval", "memory": "2g"}]
    )
    assert [role.shm for role in small.roles] == [32 << 20, 32 << 20, 16 << 20, 32 << 20]
    assert (request(memory="32m").shm, request().shm) == (32 << 20, 64 << 20)
    with pytest.raises(InputError, match="shm"):
        request(shm="128m", roles=[{"name": "worker", "memory": "100m"}])
