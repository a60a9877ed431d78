# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action plugins of the role ``agent``: they read the registered results of other hosts and decide on the controller."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.action import (
    agent_info,
    agent_settings,
    reference_image_plan,
    swarm_plan,
)
from ansible_collections.cluster.compute.plugins.module_utils._core.documents import Json
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import ComputeError, InputError
from ansible_collections.cluster.compute.plugins.plugin_utils._action import ComputeAction

HOSTS = ["a1", "a2", "a3"]


def act(action: type[ComputeAction], args: Json, task_vars: Json, answer: Json | Exception | None = None) -> Any:
    """The result of an action whose module returns this answer; ``called`` of the result are the module's options."""
    called: list[Json] = []

    class Played(action):  # type: ignore[misc, valid-type]
        def module(self, name: str, args: Json, task_vars: Json) -> Json:
            called.append(args)
            if isinstance(answer, Exception):
                raise answer
            return dict(answer or {})

    task = SimpleNamespace(check_mode=False, diff=False, args=args, async_val=0, delegate_to=None)
    templar = SimpleNamespace(template=lambda value: value)
    result = Played(task, None, None, None, templar, None).act(dict(args), task_vars)
    return SimpleNamespace(result=result, called=called)


def play(active: list[str] | None = None, **variables: dict[str, Any]) -> Json:
    """Task variables of a play in which hosts registered results: by variable and host."""
    hostvars = {host: {name: found[host] for name, found in variables.items() if host in found} for host in HOSTS}
    return {"hostvars": hostvars, "ansible_play_hosts_all": HOSTS, "ansible_play_hosts": active or HOSTS}


def test_results_of_hosts_leaves_out_hosts_without_the_variable() -> None:
    task_vars = play(found={"a1": {"x": 1}, "a3": "no result"})
    assert ComputeAction.results_of_hosts(None, "found", task_vars) == {"a1": {"x": 1}}  # type: ignore[arg-type]


@pytest.mark.parametrize(("options", "sentence"), [({}, "name"), ({"name": "a1", "nonsense": 3}, "nonsense")])
def test_a_wrong_option_is_no_lost_agent(options: Json, sentence: str) -> None:
    with pytest.raises(ComputeError, match=sentence):
        act(agent_info.ActionModule, options, {}, {"failed": True, "msg": "the module refuses its options"})


def member(number: int, **changes: Any) -> Json:
    found = {"name": f"a{number}", "state": "inactive", "address": f"192.0.2.{number}", "node_id": f"n{number}"}
    return {"swarm": {**found, **changes}}


def test_hosts_that_answered_join_the_head() -> None:
    memberships = {"a1": member(1), "a2": member(2), "a3": {"failed": True}}
    settings = {"a2": {"swarm_manager": True}}
    args = {"memberships": "found", "head": "a1", "answers": [{"skipped": True}]}
    plan = act(swarm_plan.ActionModule, args, play(found=memberships, __agent=settings)).result["plan"]
    assert plan["steps"] == {"a1": "init", "a2": "join"}
    assert plan["managers"] == ["a1", "a2"]
    assert plan["peers"] == {"a1": ["192.0.2.2"], "a2": ["192.0.2.1"]}


def test_hosts_that_have_failed_do_not_join() -> None:
    task_vars = play(["a1"], found={"a1": member(1), "a2": member(2)})
    assert act(swarm_plan.ActionModule, {"memberships": "found", "head": "a1"}, task_vars).result["plan"]["steps"] == {
        "a1": "init"
    }


def test_a_host_that_leaves_has_a_manager_that_stays() -> None:
    leaving = {"a3": member(3, state="active", cluster_id="c")}
    staying = member(1, state="active", cluster_id="c", manager=True)
    args = {"memberships": "found", "leave": True, "agents": HOSTS, "answers": [staying, {"failed": True}]}
    plan = act(swarm_plan.ActionModule, args, play(found=leaving)).result["plan"]
    assert plan == {"keepers": {"a3": "a1"}, "refused": {}, "staying": ["a1", "a2"]}


def test_the_head_builds_the_reference_image_and_the_others_receive_it() -> None:
    images = {host: {"image": {"agent": host, "present": False, "host": "x86_64"}} for host in HOSTS}
    args = {"images": "found", "head": "a2", "answers": [{}]}
    plan = act(reference_image_plan.ActionModule, args, play(["a1", "a2"], found=images)).result["plan"]
    assert (plan["builder"], plan["takers"]) == ("a2", ["a1"])
    assert act(reference_image_plan.ActionModule, args, play()).result["plan"]["takers"] == []


def test_settings_come_from_variables_facts_and_groups() -> None:
    task_vars = {"inventory_hostname": "a2", "groups": {"agents": HOSTS}, "ansible_facts": {"effective_user_id": 0}}
    settings = act(agent_settings.ActionModule, {"become": "yes"}, task_vars).result
    assert (settings["become"], settings["head"], settings["is_head"]) == (True, "a1", False)
    assert settings["swarm_addresses"] == ["a2"]


def test_the_engine_gets_at_least_a_second() -> None:
    with pytest.raises(InputError, match=r"^agent_engine_timeout: 0: must be at least 1"):
        act(agent_settings.ActionModule, {"engine_timeout": 0}, {"inventory_hostname": "a1"})
