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
from samples import agent, context, exactly, plan, request

from ansible_collections.cluster.compute.plugins.action import agent_info, session, session_info
from ansible_collections.cluster.compute.plugins.module_utils._core.documents import Json
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import InputError
from ansible_collections.cluster.compute.plugins.module_utils._head.row import Row
from ansible_collections.cluster.compute.plugins.modules import schedule as schedule_module
from ansible_collections.cluster.compute.plugins.modules import session as session_module
from ansible_collections.cluster.compute.plugins.modules import session_info as session_info_module
from ansible_collections.cluster.compute.plugins.plugin_utils._action import login

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
    result = played(agent_info.ActionModule, answer).act({"name": "a", "group": "gpu"}, {})
    may_return = isinstance(answer, AnsibleConnectionFailure)
    agent = {"name": "a", "group": "gpu", "reachable": False, "reason": reason, "may_return": may_return}
    assert result["agent"] == agent
    assert not result.get("failed")


def test_wrong_options_are_the_users_to_mend() -> None:
    answer = {"failed": True, "msg": "cpus: …", "failure": {"code": "input"}}
    assert played(agent_info.ActionModule, answer).act({"name": "a"}, {})["failed"]


# session_info


@pytest.mark.parametrize(("owner", "asked"), [("", {"owner": login()}), ("bob", {"owner": "bob"}), ("all", {})])
def test_lists_are_of_the_controllers_user_unless_somebody_is_named(owner: str, asked: Json) -> None:
    action = played(session_info.ActionModule, {"sessions": [], "queue": []})
    action.act({"owner": owner}, {})
    assert action.asked == [{"agents": [], "viewer": login(), **asked}]


def test_each_session_of_the_queue_names_its_folders() -> None:
    mounts = [{"source": "/data", "target": "/data"}, {"source": "cache", "target": "/c", "type": "volume"}]
    asked = request(name="late", mounts=mounts).to_json()
    waiting = {"name": "late", "state": "PENDING", "request": asked, "requested_here": True}
    result = played(session_info.ActionModule, {"sessions": [waiting], "queue": [waiting]}).act({}, {})
    assert result["queue"] == [{**waiting, "paths": ["/data"]}]


@pytest.mark.parametrize(
    "change",
    [{"image": "x y"}, {"name": "../x"}, {"owner": "a.b"}, {"agents": ["-x"]}, {"mounts": [{"source": "a\nb"}]}],
)
def test_a_request_of_the_store_with_another_value_does_not_stop_the_queue(change: Json) -> None:
    good = {"name": "late", "state": "PENDING", "request": request().to_json(), "requested_here": True}
    evil = {**good, "request": {**good["request"], **change}}
    result = played(session_info.ActionModule, {"sessions": [evil, good], "queue": [evil, good]}).act({}, {})
    assert result["queue"] == [{**good, "paths": []}]
    assert [warning.startswith("The request of the head is refused: ") for warning in result["warnings"]] == [True]


SHOWN = {
    "name": "train",
    "state": "RUNNING",
    "requested_here": True,
    "terminate_when_done": False,
    "on_failure": "keep",
    "containers": [{"hostname": "main1", "state": "running"}],
    "logs": [{"hostname": "sub1"}],
}


def test_the_newest_session_of_a_name() -> None:
    action = played(session_info.ActionModule, {"sessions": [{**SHOWN, "logs": []}, SHOWN], "queue": []})
    assert action.act({"name": "train", "newest": True, "containers": ["main1", "sub1"]}, {})["session"] == SHOWN


@pytest.mark.parametrize(
    ("sessions", "args", "message"),
    [
        ([], {}, "session_name: 'train': no session of yours has this name; sessions.yml lists them."),
        ([], {"owner": "bob"}, "session_name: 'train': no session has this name; sessions.yml lists them."),
        (
            [SHOWN],
            {"containers": ["sub1", "sub7"]},
            "session_logs_containers: 'sub7': session train has no such container, only main1, sub1.",
        ),
    ],
)
def test_a_session_or_container_that_does_not_exist_is_refused(sessions: list[Json], args: Json, message: str) -> None:
    action = played(session_info.ActionModule, {"sessions": sessions, "queue": []})
    with pytest.raises(InputError, match=exactly(message)):
        action.act({"name": "train", "newest": True, **args}, {})


# session: artifacts


def test_the_result_is_kept_while_the_session_lives(tmp_path: Path) -> None:
    made = plan(request(cluster_size=2))
    row = Row(made.session.id, "train", "alice", "default", "RUNNING", plan=made, changed=5.0).to_json()
    args = {
        "state": "running",
        "id": made.session.id,
        "artifacts": str(tmp_path),
        "plan": made.to_json(),
        "address": "::1",
    }
    folder = tmp_path / "train"
    played(session.ActionModule, {"session": row}, check=True).act(dict(args), {})
    assert not folder.exists()
    action = played(session.ActionModule, {"session": row})
    result = action.act({**args, "timings": {"create": 0.5}}, {})
    assert json.loads((folder / "session.json").read_text()) == result["document"]
    assert (result["document"]["session"]["running"], result["document"]["timings"]) == (5.0, {"create": 0.5})
    assert {name for call in action.asked for name in call} == {"state", "id", "holder"}
    played(session.ActionModule, {"session": dict(row, state="TERMINATED")}).act(dict(args), {})
    assert not folder.exists()


def test_the_result_of_the_command_is_kept_in_the_document(tmp_path: Path) -> None:
    made = plan(request(command="train"))
    row = Row(made.session.id, "train", "alice", "default", "RUNNING", plan=made).to_json()
    args = {"state": "running", "id": made.session.id, "artifacts": str(tmp_path)}
    launched = {**args, "plan": made.to_json(), "address": "::1", "timings": {}}
    document = played(session.ActionModule, {"session": row}).act(launched, {})["document"]
    assert document["command"] == {"result": "", "reason": ""}
    ended = dict(row, result="FAILURE", reason="exit code 3")
    played(session.ActionModule, {"session": ended}).act({**args, "result": "FAILURE", "reason": "exit code 3"}, {})
    kept = json.loads((tmp_path / "train" / "session.json").read_text())
    assert kept == {**document, "command": {"result": "FAILURE", "reason": "exit code 3"}}


def test_a_refusal_keeps_nothing(tmp_path: Path) -> None:
    answer = {"failed": True, "msg": "no"}
    assert played(session.ActionModule, answer).act({"state": "running", "artifacts": str(tmp_path)}, {})["failed"]
    assert list(tmp_path.iterdir()) == []


def test_ending_a_session_that_does_not_exist_removes_only_what_others_left() -> None:
    result = played(session.ActionModule, {"session": {}, "remove": ["old"]}).act({"state": "terminating"}, {})
    assert (result["is_terminating"], result["remove"]) == (False, ["old"])


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


def test_the_modules_decide_over_the_documents_as_ansible_passes_them(tmp_path: Path) -> None:
    """From a checked request to the end, through the modules' own functions and a store in a folder."""
    folder = tmp_path / "state"
    holder = dict(context(agent("a")).holder)
    common = {"agents": [REPORT], "holder": holder, "lease": 600, "folders": [], "state_dir": str(folder)}
    queue = {"queue_policy": "backfill", "queue_age_bound": 3600, "takeover": "", "kept": ""}
    asked = {**common, **queue, "request": request(cluster_size=2).to_json()}

    def decide(check_mode: bool = False) -> Json:
        result: Json = json.loads(json.dumps(schedule_module.work(asked, check_mode)))
        return result

    def move(state: str, **fields: Any) -> Json:
        blank = dict.fromkeys(("id", "name", "owner"))
        texts = {"reason": "", "result": "", "launch": "", "reached": [], "logs": []}
        return session_module.work({**common, **blank, **texts, "state": state, **fields}, False)

    _through_its_life(decide, move, folder)
    [ended] = _listed(folder)
    assert (ended["state"], ended["logs"]) == ("TERMINATED", [{"hostname": "main1", "state": "ended", "text": "bye"}])
    _through_another_life(decide, move, folder)
    # Only the logs of the newest session are read: a name may have had a hundred sessions.
    assert [[log["text"] for log in one["logs"]] for one in _listed(folder)] == [[], ["hello again"]]


def _listed(folder: Path) -> list[Json]:
    asked = {"name": None, "owner": None, "ended": True, "agents": [REPORT], "state_dir": str(folder), "logs": True}
    asked.update(state=None, limit=0, samples=0, whole_requests=False, viewer="alice")
    sessions: list[Json] = session_info_module.work(asked, False)["sessions"]
    return sessions


def _through_its_life(decide: Callable[..., Json], move: Callable[..., Json], folder: Path) -> None:
    planned = decide(check_mode=True)
    assert (planned["outcome"], planned["changed"], folder.exists()) == ("placed", True, False)
    placed = decide()
    assert (placed["outcome"], placed["changed"], placed["session"]["state"]) == ("placed", True, "PREPARING")
    identity = placed["session"]["id"]
    assert decide()["outcome"] == "held"
    running = move("running", id=identity)
    assert (running["changed"], running["diff"]) == (
        True,
        {"before": {"state": "PREPARING"}, "after": {"state": "RUNNING"}},
    )
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
