# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action plugins of the role ``agent``: they read the registered results of other hosts and decide on the controller."""

from __future__ import annotations

import doctest
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure

from ansible_collections.cluster.compute.plugins.action import (
    agent_diagnosis,
    agent_examination_info,
    agent_info,
    port_listener,
    port_probe,
)
from ansible_collections.cluster.compute.plugins.module_utils._core.documents import Json
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import ComputeError
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


LOST = AnsibleConnectionFailure("no route\n to host")


def test_a_host_that_is_lost_is_a_report() -> None:
    result = act(agent_examination_info.ActionModule, {"name": "a1"}, {}, LOST).result
    assert result["report"] == {"name": "a1", "reachable": False, "reason": "no route to host"}


@pytest.mark.parametrize("action", [port_listener, port_probe])
def test_a_host_that_cannot_listen_or_send_says_why(action: Any) -> None:
    assert act(action.ActionModule, {"name": "a1", "mark": "m"}, {}, LOST).result["probe"] == {
        "reason": "no route to host"
    }


def test_an_agent_sends_to_the_reachable_agents() -> None:
    swarm = {"state": "active", "data_path_port": 7789}
    report = {"name": "a1", "address": "192.0.2.1", "mtu": 1450, "swarm": swarm, "reachable": True}
    task_vars = play(found={"a1": {"report": report}, "a2": {"report": {"name": "a2", "reachable": False}}})
    (options,) = act(port_probe.ActionModule, {"name": "a1", "mark": "m", "examinations": "found"}, task_vars).called
    agents = [{"name": "a1", "address": "192.0.2.1", "mtu": 1450, "member": True}]
    assert options == {"name": "a1", "mark": "m", "agents": agents, "vxlan_port": 7789}


def test_a_host_without_an_examination_is_a_failure() -> None:
    lost = {"name": "a1", "reachable": False, "reason": "silent"}
    args = {"examinations": "found", "probes": ["sent"]}
    result = act(agent_diagnosis.ActionModule, args, play(found={"a1": {"report": lost}})).result
    assert result["fit"] is False
    assert [finding["found"] for finding in result["findings"]] == [
        "silent",
        "it was not examined",
        "it was not examined",
    ]


def test_examples() -> None:
    assert doctest.testmod(agent_examination_info).failed == 0
