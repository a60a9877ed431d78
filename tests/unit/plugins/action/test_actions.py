# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action plugins. A script supplies the answers of the modules; everything else is real."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure
from played import Answer, played
from samples import agent, context, request

from ansible_collections.cluster.compute.plugins.action import agent_info
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError
from ansible_collections.cluster.compute.plugins.module_utils._steps import session, sessions
from ansible_collections.cluster.compute.plugins.module_utils._steps.step import Head, run_step
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.results import with_failure_message

# agent_info


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (AnsibleConnectionFailure("Failed to connect:\n  no route  to host"), "Failed to connect: no route to host"),
        ({"failed": True, "msg": "Docker SDK is missing", "failure": {"code": "library"}}, "Docker SDK is missing"),
        ({"failed": True, "msg": "", "module_stderr": "python3: not found"}, "python3: not found"),
        ({"failed": True}, "the module failed"),
        ({"failed": True, "msg": "x" * 500}, "x" * 300),
    ],
)
def test_an_agent_that_cannot_be_asked_is_a_report_that_says_so(answer: Answer, reason: str) -> None:
    result = played(agent_info.ActionModule, answer, args={"name": "a", "group": "gpu"}).act()
    may_return = isinstance(answer, AnsibleConnectionFailure)
    agent = {"name": "a", "group": "gpu", "reachable": False, "reason": reason, "may_return": may_return}
    assert result["agent"] == agent
    assert not result.get("failed")


def test_an_agent_whose_step_is_killed_may_return() -> None:
    """Memory may run out on one agent: that keeps no session from the others."""
    killed = {"failed": True, "rc": 137, "module_stdout": "", "module_stderr": "Killed"}
    answer = with_failure_message(killed, "report.collect", "a")
    result = played(agent_info.ActionModule, answer, args={"name": "a"}).act()
    why = "a: step report.collect was ended by SIGKILL; if memory ran out there, free some, and run the same command again"
    assert (result["agent"]["reachable"], result["agent"]["may_return"]) == (False, True)
    assert result["agent"]["reason"] == why + "."


def test_wrong_options_are_the_users_to_mend() -> None:
    answer = {"failed": True, "msg": "cpus: …", "failure": {"code": "input"}}
    with pytest.raises(ComputeError, match="cpus: …"):
        played(agent_info.ActionModule, answer, args={"name": "a"}).act()


# All of them

REPORT: Json = {
    "name": "a",
    "reachable": True,
    "capacity": {"millicpus": 4000, "memory": 16 << 30, "cpu_ids": [0, 1, 2, 3]},
    "image": {"present": True, "architecture": "x86_64"},
    "architecture": "x86_64",
    "ports": [22],
    "routes": ["10.0.0.0/24"],
}


def test_the_steps_decide_over_the_documents_as_ansible_passes_them(tmp_path: Path) -> None:
    """From a checked request to the end, through the steps and a store in a folder."""
    folder = tmp_path / "state"
    holder = context(agent("a")).holder
    params = json.loads(
        json.dumps({"request": request(cluster_size=2).to_json(), "holder": holder.to_json(), "agents": [REPORT]})
    )

    def decide(check_mode: bool = False) -> Json:
        answer = run_step("session.place", session.place, Head(str(folder), check_mode), params)
        result: Json = json.loads(json.dumps(answer))
        return result

    def move(state: str, **fields: Any) -> Json:
        return session.record(Head(str(folder)), state, {"holder": holder.to_json(), "agents": [REPORT], **fields})

    _through_its_life(decide, move, folder)
    [ended] = _listed(folder)
    assert (ended["state"], ended["logs"]) == ("TERMINATED", [{"hostname": "main1", "state": "ended", "text": "bye"}])
    _through_another_life(decide, move, folder)
    # Only the logs of the newest session are read: a name may have had a hundred sessions.
    assert [[log["text"] for log in one["logs"]] for one in _listed(folder)] == [[], ["hello again"]]


def _listed(folder: Path) -> list[Json]:
    found: list[Json] = sessions.list_all(Head(str(folder)), [REPORT], ended=True, logs=True, viewer="alice")[
        "sessions"
    ]
    return found


def _through_its_life(decide: Callable[..., Json], move: Callable[..., Json], folder: Path) -> None:
    planned = decide(check_mode=True)
    assert (planned["outcome"], planned["changed"], folder.exists()) == ("placed", True, False)
    placed = decide()
    assert (placed["outcome"], placed["changed"], placed["session"]["state"]) == ("placed", True, "PREPARING")
    identity = placed["session"]["id"]
    assert decide()["outcome"] == "held"
    running = move("running", id=identity)
    assert (running["changed"], running["session"]["state"]) == (True, "RUNNING")
    assert not move("running", id=identity)["changed"]
    ending = move("terminating", name="train", owner="alice")
    assert (ending["session"]["state"], ending["remove"], ending["plan"]["session"]["id"]) == (
        "TERMINATING",
        [],
        identity,
    )
    logs = [{"logs": [{"hostname": "main1", "text": "bye"}]}]
    assert move("terminated", id=identity, logs=logs)["session"]["state"] == "TERMINATED"
    assert not move("terminating", name="train", owner="alice")["changed"]


def _through_another_life(decide: Callable[..., Json], move: Callable[..., Json], folder: Path) -> None:
    """If a log cannot be kept, the session still ends, and the result contains a warning."""
    identity = decide()["session"]["id"]
    move("terminating", name="train", owner="alice")
    (folder / identity).mkdir(mode=0o700)
    (folder / identity / "sub1.log").mkdir()
    logs = [{"logs": [{"hostname": "main1", "text": "hello again"}]}]
    logs += [{"logs": [{"hostname": "sub1", "text": "lost"}]}]
    ended = move("terminated", id=identity, logs=logs)
    assert ended["session"]["state"] == "TERMINATED"
    assert ended["warnings"] == [
        "Not all logs could be kept in %s: Is a directory; free some space there." % (folder / identity)
    ]
    (folder / identity / "sub1.log").rmdir()
