# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action plugins. A script supplies the answers of the modules; everything else is real."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure
from played import Answer, played
from samples import agent, context, exactly, plan, request

from ansible_collections.cluster.compute.plugins.action import agent_info, schedule, session, session_info
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import ComputeError, InputError, StateError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json, Plan
from ansible_collections.cluster.compute.plugins.module_utils._head.row import Row
from ansible_collections.cluster.compute.plugins.modules import schedule as schedule_module
from ansible_collections.cluster.compute.plugins.modules import session as session_module
from ansible_collections.cluster.compute.plugins.modules import session_info as session_info_module
from ansible_collections.cluster.compute.plugins.plugin_utils._action import _machine, login
from ansible_collections.cluster.compute.plugins.plugin_utils._artifacts import Artifacts
from ansible_collections.cluster.compute.plugins.plugin_utils._plan_text import unpacked

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
    mounts = [{"source": "/data", "type": "bind"}, {"source": "cache", "type": "volume"}]
    waiting = {"name": "late", "state": "PENDING", "request": {"mounts": mounts}}
    result = played(session_info.ActionModule, {"sessions": [waiting], "queue": [waiting]}).act({}, {})
    assert result["queue"] == [{**waiting, "paths": ["/data"]}]


SHOWN = {"name": "train", "state": "RUNNING", "containers": [{"hostname": "main1"}], "logs": [{"hostname": "sub1"}]}


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


# schedule

ASKED = request(cluster_size=2, environment={"A": "<% rank %>"})


def answer(outcome: str, **fields: Any) -> Json:
    made = plan(ASKED)
    row = Row(made.session.id, "Train-X", "alice", "default", "PENDING", plan=made).to_json()
    answer = {
        "outcome": outcome,
        "session": {**row, "holder": fields.pop("holder", None)},
        "reason": "because",
        "missing": [],
        "plan": None,
    }
    return {**answer, **({"plan": made.to_json()} if outcome in ("placed", "repair", "running") else {}), **fields}


@pytest.fixture(autouse=True)
def no_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "load_extra_vars", lambda _loader: {})


def ask(action: Any, **args: Any) -> Json:
    given = {"request": ASKED.to_json(), "agents": [{"agent": {"name": "a"}}], "artifacts": "/nonexistent", **args}
    result: Json = action.act(given, {})
    return result


@pytest.mark.parametrize("outcome", ["placed", "repair", "running"])
def test_a_plan_has_the_users_variables(outcome: str) -> None:
    action = played(schedule.ActionModule, answer(outcome), diff=True)
    result = ask(action)
    made = Plan.from_json(result["plan"])
    assert [one.environment["A"] for one in made.containers] == ["0", "1"]
    assert ("diff" in result) == (outcome != "running")
    (call,) = action.asked
    assert call["agents"] == [{"name": "a"}]
    assert (call["holder"]["pid"], call["holder"]["host"]) == (os.getppid(), socket.gethostname())


@pytest.mark.parametrize(("outcome", "deploys"), [("placed", True), ("pending", False)])
def test_the_role_gets_the_plan_as_a_text_and_what_it_reads_of_it_apart(outcome: str, deploys: bool) -> None:
    result = ask(played(schedule.ActionModule, answer(outcome, remove=["old"])), plan_format="text")
    assert [result[step] for step in ("removes", "deploys", "has_follow_up")] == [True, deploys, False]
    shown = (
        "Enter it: ssh -F /nonexistent/Train-X/ssh_config main1" if deploys else "Session Train-X is PENDING: because."
    )
    assert result["summary"][-1] == shown
    assert result.get("planned") == (unpacked(result)["plan"]["session"] if deploys else None)


@pytest.mark.parametrize(("outcome", "left"), [("placed", []), ("pending", ["train"])])
def test_a_folder_of_an_ended_session_goes_when_the_next_is_placed(
    outcome: str, left: list[str], tmp_path: Path
) -> None:
    """The head learns which session the folder belongs to, and refuses the launch if that session is live."""
    Artifacts(str(tmp_path), "train").identity("ended", create=True)
    action = played(schedule.ActionModule, answer(outcome))
    ask(action, artifacts=str(tmp_path))
    assert action.asked[0]["kept"] == "ended"
    assert "artifacts" not in action.asked[0]
    assert os.listdir(tmp_path) == left


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "_INTERVAL", 0.0)


@pytest.mark.usefixtures("no_pause")
def test_a_session_waits_for_its_turn() -> None:
    action = played(schedule.ActionModule, answer("pending"), answer("pending"), answer("placed"))
    assert ask(action, wait="60")["outcome"] == "placed"
    assert len(action.asked) == 3


def test_a_session_that_does_not_wait_is_pending_and_no_failure() -> None:
    action = played(schedule.ActionModule, answer("pending"))
    result = ask(action)
    assert (result["outcome"], result.get("failed", False), len(action.asked)) == ("pending", False, 1)


@pytest.mark.usefixtures("no_pause")
def test_a_session_that_has_waited_in_vain_says_so() -> None:
    result = ask(played(schedule.ActionModule, answer("pending")), wait=0.05)
    assert result["failed"]
    assert result["msg"] == "Session Train-X is still PENDING after 0.05 s: because."


def test_check_mode_does_not_wait() -> None:
    action = played(schedule.ActionModule, answer("pending"), check=True)
    assert not ask(action, wait=3600).get("failed")
    assert len(action.asked) == 1


@pytest.mark.parametrize("wait", ["soon", -1, "nan", 10**9])
def test_a_wait_is_a_number_of_seconds(wait: object) -> None:
    with pytest.raises(InputError, match=r"^session_wait: .*must be a number of seconds from 0 to 604800\.$"):
        ask(played(schedule.ActionModule, answer("placed")), wait=wait)


def test_the_lease_covers_a_bootstrap_script_and_a_pull() -> None:
    asked = request(bootstrap="pip install x", pull="always")
    action = played(schedule.ActionModule, answer("pending"))
    ask(action, request=asked.to_json(), lease=60)
    assert action.asked[0]["lease"] == 60 + asked.bootstrap_timeout + asked.pull_timeout


def test_the_command_line_replaces_what_a_waiting_session_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value from another source is ignored: the session is launched as it was requested."""
    given = {"session_verify_timeout": "90", "session_pull": ""}
    monkeypatch.setattr(schedule, "load_extra_vars", lambda _loader: given)
    asked = request(cluster_size=2, pull="never", bootstrap_timeout=7)
    action = played(schedule.ActionModule, answer("placed"))
    result = ask(action, request=asked.to_json())
    manner = {name: result["deployment"][name] for name in ("verify_timeout", "pull", "bootstrap_timeout")}
    assert manner == {"verify_timeout": 90, "pull": "never", "bootstrap_timeout": 7}
    assert action.asked[0]["request"] == asked.to_json()


def ended_process() -> Json:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    return {"machine": _machine(), "user": "alice", "pid": process.pid, "start": "1"}


def test_a_controller_that_is_gone_is_taken_over_at_once() -> None:
    action = played(schedule.ActionModule, answer("held", holder=ended_process()), answer("placed"))
    assert ask(action)["outcome"] == "placed"
    assert action.asked[1]["takeover"] == plan(ASKED).session.launch


@pytest.mark.parametrize("holder", [{"machine": "elsewhere", "pid": 1}, None])
def test_a_controller_that_may_be_alive_is_respected(holder: Json | None) -> None:
    action = played(
        schedule.ActionModule, answer("held", holder=holder, reason="session Train-X is being launched by bob")
    )
    message = "Session Train-X is being launched by bob; wait for it, or terminate it with terminate.yml."
    with pytest.raises(StateError, match=exactly(message)):
        ask(action)
    assert len(action.asked) == 1


# All of them


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (InputError("x", 1, "no"), {"code": "input", "message": "x: 1: no.", "where": "x"}),
        (ComputeError("It broke.", "a"), {"code": "failed", "message": "It broke.", "where": "a"}),
    ],
)
def test_an_error_is_a_sentence_and_a_failure_for_playbooks(
    monkeypatch: pytest.MonkeyPatch, error: ComputeError, failure: Json
) -> None:
    monkeypatch.setattr("ansible.plugins.action.ActionBase.run", lambda *_args, **_kwargs: {})
    action = played(schedule.ActionModule, error)
    action._task.args = {"request": ASKED.to_json()}
    result = action.run(None, {})
    assert (result["failed"], result["msg"], result["failure"]) == (True, failure["message"], failure)


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
    common = {"agents": [REPORT], "holder": holder, "lease": 600, "state_dir": str(folder)}
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
