# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What session_roles accepts, what a role has from its session, and what follows for the whole session."""

from __future__ import annotations

import json
from typing import Any

import pytest
from samples import GIB, exactly, plan, request

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Plan
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.topology import kept_apps, waves
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.allocation import wanted_ports
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.catalogue import (
    SHIPPED,
    Environment,
    with_environment,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.policy import parse_policy
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.policy_rules import (
    Use,
    check_policy,
    in_permitted_group,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request import Request

PS, WORKER = {"name": "ps", "size": 2}, {"name": "worker", "size": 4}
BOARD = {"name": "board", "port": 6006, "command": "exec board"}


def test_a_role_has_from_its_session_what_it_does_not_give() -> None:
    made = request(
        cpus=2, memory="4g", gpus=1, roles=[{**PS, "cpus": 1, "memory": "1g", "gpus": 0}, {"name": "main", "gpus": 0}]
    )
    shown = [(role.name, role.size, role.millicpus, role.memory // GIB, role.gpus) for role in made.roles]
    assert shown == [("main", 1, 2000, 4, 0), ("ps", 2, 1000, 1, 0)]
    assert (made.size, [member.hostname for member in made.members]) == (3, ["main1", "ps1", "ps2"])
    assert Request.from_json(json.loads(json.dumps(made.to_json()))) == made


def test_main_is_there_whether_it_is_named_or_not() -> None:
    assert request(roles=[WORKER]) == request(roles=[WORKER, {"name": "main", "size": 1}])


def test_without_roles_nothing_changes() -> None:
    assert request(cluster_size=3, roles=[]) == request(cluster_size=3)
    assert request(cluster_size=3, roles=[]).digest == request(cluster_size=3).digest


@pytest.mark.parametrize("nothing", [[], {}, None])
def test_an_empty_environment_of_a_role_has_no_variables(nothing: Any) -> None:
    """YAML has two words for it."""
    assert request(roles=[{**WORKER, "environment": nothing}]) == request(roles=[WORKER])
    assert request(environment=nothing) == request()
    table = {**SHIPPED, "own": Environment({"1": "own:1"}, environment={"A": "1"})}
    [found] = with_environment({"session_roles": [{**PS, "image": "own", "environment": nothing}]}, table)[
        "session_roles"
    ]
    assert found["environment"] == {"A": "1"}


def test_parameter_servers_and_evaluators_do_not_compute() -> None:
    roles = request(roles=[PS, WORKER, {"name": "evaluator"}, {"name": "data", "compute": False}]).roles
    assert [role.name for role in roles if role.compute] == ["main", "worker"]


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"roles": "ps"}, "session_roles: 'ps': must be a list."),
        (
            {"roles": [{"name": "Ps"}]},
            "session_roles: name: 'Ps': must have at most 16 lower-case letters, digits and '-', begin and end with a letter, and "
            "must not be all or relay.",
        ),
        (
            {"roles": [{"name": "gpu2"}]},
            "session_roles: name: 'gpu2': must have at most 16 lower-case letters, digits and '-', begin and end with a letter, and "
            "must not be all or relay.",
        ),
        ({"roles": [PS, PS]}, "session_roles: 'ps': must be the name of one role only."),
        (
            {"roles": [{"name": "main", "size": 2}]},
            "session_roles: main: size: 2: must be 1: main1 is the one container of this role.",
        ),
        (
            {"roles": [{"name": "main", "command": "train"}]},
            "session_roles: main: command: 'train': must be session_command, which main1 runs.",
        ),
        (
            {"roles": [{"name": "main", "apps": [BOARD]}]},
            "session_roles: main: 'apps': must be in session_apps, which main1 has.",
        ),
        (
            {"roles": [{**PS, "apps": [{"name": "board", "port": 6006}]}]},
            "session_roles: ps: apps: 'board': needs a command: only main1 publishes ports.",
        ),
        (
            {"roles": [{**PS, "apps": [{**BOARD, "public": True}]}]},
            "session_roles: ps: apps: public: True: must be left out: only main1 publishes ports.",
        ),
        (
            {"roles": [{**PS, "apps": [{**BOARD, "preferred_port": 6006}]}]},
            "session_roles: ps: apps: preferred_port: 6006: must be left out: only main1 publishes ports.",
        ),
        (
            {"roles": [{**PS, "apps": [BOARD]}, {**WORKER, "apps": [BOARD]}]},
            "session_roles: worker: apps: 'board': must be the name of one app of the session only.",
        ),
        (
            {"apps": [{"name": "board", "port": 80}], "roles": [{**PS, "apps": [BOARD]}]},
            "session_roles: ps: apps: 'board': must be the name of one app of the session only.",
        ),
        (
            {"roles": [{**PS, "apps": [BOARD, {**BOARD, "name": "other"}]}]},
            "session_roles: ps: apps: port: 6006: must be the port of one app of the role only.",
        ),
        (
            {"network": "host", "roles": [{**PS, "apps": [BOARD]}]},
            "session_roles: ps: apps: 'board': must be left out with session_network host, where only apps of main1 get free ports.",
        ),
        ({"roles": [{**PS, "size": 0}]}, "session_roles: ps: size: 0: must be a whole number from 1 to 1000."),
        ({"roles": [{**PS, "cpus": 0}]}, "session_roles: ps: cpus: 0: must be at least 0.01."),
        ({"roles": [{**PS, "memory": "1m"}]}, "session_roles: ps: memory: '1m': must be at least 6m."),
        (
            {"roles": [{**PS, "memory": "32m", "shm": "64m"}]},
            "session_roles: ps: shm: '64m': must be at most the memory of the role, which is 32m.",
        ),
        (
            {"roles": [{**PS, "cpus": 1.5, "cpu_pinning": True}]},
            "session_roles: ps: cpus: 1.5: must be a whole number with cpu_pinning.",
        ),
        (
            {"roles": [{**PS, "ready": 70000}]},
            "session_roles: ps: ready: 70000: must be a port from 1 to 65535, PORT/path, or a command.",
        ),
        (
            {"roles": [{**PS, "after": ["workers"]}, WORKER]},
            "session_roles: ps: after: 'workers': must be a role of the session, which are main, ps, worker.",
        ),
        (
            {"roles": [{**PS, "after": ["worker"]}, {**WORKER, "after": ["ps"]}]},
            "session_roles: ps: after: 'ps, worker': must not wait for each other.",
        ),
        (
            {"roles": [{**PS, "per_agent": 1}], "cluster_mode": "single-node"},
            "session_roles: ps: per_agent: 1: contradicts session_cluster_mode single-node, which puts 2 containers on one "
            "agent: remove one of the two.",
        ),
        (
            {"cluster_size": 4, "roles": [PS]},
            "session_cluster_size: 4: must be left out with session_roles, whose containers are 3.",
        ),
        (
            {"roles": [{**PS, "size": 1000}]},
            "session_roles: 1001: must have at most 1000 containers in all.",
        ),
        (
            {"roles": [{"name": "main", "compute": False}, PS]},
            "session_roles: 'compute: false': must leave a role that computes.",
        ),
        (
            {"torchrun": "elastic", "torchrun_nodes": "1:7", "roles": [PS, WORKER]},
            "session_torchrun_nodes: '1:7': must end with session_cluster_size, which is 5: torchrun runs in every container.",
        ),
    ],
)
def test_a_broken_rule_is_refused(variables: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=exactly(message)):
        request(**variables)


def test_roles_start_in_waves() -> None:
    roles = request(roles=[{**WORKER, "after": ["ps", "data"]}, PS, {"name": "data", "after": ["ps"]}]).roles
    assert waves(roles) == [("main", "ps"), ("data",), ("worker",)]


def test_an_environment_gives_a_role_its_image_and_variables() -> None:
    table = {**SHIPPED, "own": Environment({"1": "own:1"}, environment={"A": "1", "B": "1"})}
    found = with_environment({"session_roles": [{**PS, "image": "own", "environment": {"B": "2"}}, WORKER]}, table)
    assert found["session_roles"] == [{**PS, "image": "own:1", "environment": {"A": "1", "B": "2"}}, WORKER]


def test_a_role_names_apps_of_its_environment_or_of_that_of_the_session() -> None:
    lab = SHIPPED["lab"].apps
    roles = [{**PS, "apps": ["terminal", BOARD]}, {**WORKER, "image": "own", "apps": ["board"]}]
    table = {**SHIPPED, "own": Environment({"1": "own:1"}, apps={BOARD["name"]: BOARD})}
    found = with_environment({"session_image": "lab", "session_roles": roles}, table)["session_roles"]
    assert [role["apps"] for role in found] == [[lab["terminal"], BOARD], [BOARD]]
    roles[1]["apps"] = ["terminal"]
    with pytest.raises(
        InputError, match="session_roles: worker: apps: 'terminal': the environment own has no app of this name"
    ):
        with_environment({"session_image": "lab", "session_roles": roles}, table)


def test_apps_of_a_role_publish_nothing_and_run_in_its_first_container() -> None:
    asked = request(apps=[{**BOARD, "name": "lab"}], roles=[{**WORKER, "apps": [BOARD]}, PS])
    made = plan(asked)
    assert [(one.hostname, app.name) for one, app in kept_apps(made)] == [("main1", "lab"), ("worker1", "board")]
    assert [name for name, *_port in wanted_ports(asked, "127.0.0.1")] == ["ssh", "lab"]
    assert [one.ports for one in made.containers[1:]] == [()] * 6
    labels = {one.hostname: one.labels["cluster.compute.container.apps"] for one in made.containers}
    assert [name for name, label in labels.items() if label] == ["worker1"]
    assert Plan.from_json(json.loads(json.dumps(made.to_json()))) == made


def test_a_policy_without_public_apps_permits_the_apps_of_roles() -> None:
    rules = parse_policy({"owners": {"default": {"public_apps": False, "port_range": "30000-30100"}}})
    made = request(port_range="30000-30100", roles=[{**WORKER, "apps": [BOARD]}])
    check_policy(rules, made)


def test_quotas_count_the_sum_of_all_roles() -> None:
    made = request(memory="1g", roles=[{**PS, "cpus": 2}, {**WORKER, "gpus": 0.5, "memory": "2g"}])
    assert Use.of_request(made) == Use(1, 7, 9000, 11 * GIB, 2.0)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (
            {"images": ["cluster-compute/*", "reference"]},
            "session_image: 'busybox': must match one of: cluster-compute/*, reference (policy of this site).",
        ),
        (
            {"resource_groups": ["default"]},
            "session_resource_group: 'cpu': must be one of: default (policy of this site).",
        ),
        (
            {"cpus": 4},
            "session_roles: 'main:1, ps:2, worker:4': makes 7 CPUs in all, and the policy of this site permits alice 4 at a time.",
        ),
    ],
)
def test_a_policy_binds_every_role(policy: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=exactly(message)):
        check_policy(
            parse_policy({"default": policy}),
            request(roles=[{**PS, "image": "busybox"}, {**WORKER, "resource_group": "cpu"}]),
        )


def test_the_only_permitted_group_is_that_of_every_role_in_the_usual_group() -> None:
    policy = parse_policy({"default": {"resource_groups": ["gpu"]}})
    made = in_permitted_group(policy, request(roles=[{**PS, "resource_group": "cpu"}, WORKER]))
    assert (made.group, [role.group for role in made.roles]) == ("gpu", ["gpu", "cpu", "gpu"])
