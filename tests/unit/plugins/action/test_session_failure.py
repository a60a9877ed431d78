# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why a launch failed, from what the hosts of a play have registered."""

from __future__ import annotations

from typing import Any

import pytest
from played import played
from samples import plan, request

from ansible_collections.cluster.compute.plugins.action import session_failure
from ansible_collections.cluster.compute.plugins.module_utils._core.documents import Json
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import SessionError


def failure_of(**hosts: Json) -> Json:
    """The result for hosts with these variables."""
    task_vars: dict[str, Any] = {"ansible_play_hosts_all": list(hosts), "hostvars": hosts}
    asked = {"plan": plan(request(cluster_size=2), "ab").to_json()}
    result: Json = played(session_failure.ActionModule).act(asked, task_vars)
    return result


def host(name: str, reachable: bool = True, **variables: Any) -> Json:
    return {"__session_report": {"agent": {"name": name, "reachable": reachable}}, **variables}


def test_a_failure_is_named_once() -> None:
    failed = {"ansible_failed_result": {"msg": "The image is missing."}}
    result = failure_of(a=host("a", **failed), b=host("b", **failed), c=host("c"))
    assert (result["reason"], result["lost_agents"], result["network_patience"]) == ("The image is missing.", [], 30)


@pytest.mark.parametrize(("code", "is_lost"), [("unreachable", True), ("engine", False), ("taken", False)])
def test_a_lost_connection_is_a_loss_and_other_failures_are_not(code: str, is_lost: bool) -> None:
    failed = {"ansible_failed_result": {"msg": "b cannot be reached.", "failure": {"code": code}}}
    assert failure_of(a=host("a"), b=host("b", **failed))["is_lost"] == is_lost


def test_the_failure_of_an_earlier_session_of_a_pass_is_none_of_this_launch() -> None:
    earlier = {"msg": "Session before was not launched: no room.", "failure": {"code": "session"}}
    result = failure_of(
        a=host("a", ansible_failed_result=earlier), b=host("b", ansible_failed_result={"msg": "b is full."})
    )
    assert result["reason"] == "b is full."


def test_a_failure_of_the_session_is_one_of_every_host() -> None:
    asked = {
        "plan": plan(request(cluster_size=2), "ab").to_json(),
        "fail_with": "Session train was not launched: no room.",
    }
    with pytest.raises(SessionError, match=r"Session train was not launched: no room."):
        played(session_failure.ActionModule).act(asked, {})


def test_a_lost_agent_of_the_session_may_still_hold_something() -> None:
    """An agent on which the removal failed counts as lost; a lost agent without containers of the session is not named."""
    removed = {"__session_rolled_back": {"failed": True, "failure": {"code": "unreachable"}}}
    failed = {"ansible_failed_result": {"msg": "b is gone."}}
    result = failure_of(a=host("a", **failed), b=host("b", **removed), c=host("c", reachable=False))
    assert result["reason"] == "b is gone. Anything left of it on b is removed when that agent answers again."
    assert (result["lost_agents"], result["network_patience"]) == (["c", "b"], 3)


def test_a_lost_engine_is_named_before_what_follows_from_it() -> None:
    follows = {"msg": "a could not attach.", "failure": {"code": "engine"}}
    cause = {"msg": "The engine of b does not answer.", "failure": {"code": "unreachable"}}
    result = failure_of(a=host("a", ansible_failed_result=follows), b=host("b", ansible_failed_result=cause))
    assert result["reason"] == "The engine of b does not answer. a could not attach."
