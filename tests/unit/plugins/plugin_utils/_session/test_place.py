# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The place of a session: plans, waiting, and controllers that hold a session."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conducted import changes_of, conducted, options_of, reports_of
from samples import SESSION, decision, exactly, plan, request

from ansible_collections.cluster.compute.plugins.module_utils._head.session_record import SessionRecord
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.decision import Holder
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import (
    ComputeError,
    EngineError,
    StateError,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request import Request
from ansible_collections.cluster.compute.plugins.module_utils._steps import session
from ansible_collections.cluster.compute.plugins.module_utils._steps.step import Head
from ansible_collections.cluster.compute.plugins.plugin_utils._client.request_cache import (
    FOLDER,
    KeptRequests,
    NotRequestedError,
)
from ansible_collections.cluster.compute.plugins.plugin_utils._client.session_dir import Artifacts
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.holder import _machine
from ansible_collections.cluster.compute.plugins.plugin_utils._session import place as placing
from ansible_collections.cluster.compute.plugins.plugin_utils._session.launch_spec import Launch, LaunchSpec
from ansible_collections.cluster.compute.plugins.plugin_utils._session.place import place_session, show_place
from ansible_collections.cluster.compute.plugins.plugin_utils._session.reports import Exclusions
from ansible_collections.cluster.compute.plugins.plugin_utils._settings.settings import Settings

ASKED = request(cluster_size=2, environment={"A": "<% rank %>"})


def answer(outcome: str, **fields: Any) -> Json:
    made = plan(ASKED)
    row = SessionRecord(made.session.id, "Train-X", "alice", "default", "PENDING", plan=made).to_json()
    row["holder"] = fields.pop("holder", None)
    has_plan = outcome in ("placed", "repair", "running")
    return {**decision(outcome, made if has_plan else None, row, reason="because").to_json(), **fields}


@pytest.fixture(autouse=True)
def no_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placing, "load_extra_vars", lambda _loader: {})


AGENTS = [{"name": "a", "reachable": True}]


def asking(*answers: Any, folder: Path, **more: Any) -> Any:
    """A play whose head gives these answers."""
    report = {"agent": AGENTS[0]}
    script = {"session.place": list(answers), "report.collect": report}
    return conducted(script, "a", session_artifacts=str(folder), **more)


def ask(
    play: Any, asked: Request = ASKED, agents: list[Json] | None = None, queued: str = "", **settings: Any
) -> Launch:
    named = Settings(**settings)
    return place_session(play, LaunchSpec(asked, named, queued=queued), reports_of(agents or AGENTS), Exclusions())


@pytest.mark.parametrize("outcome", ["placed", "repair", "running"])
def test_a_plan_has_the_users_variables(outcome: str, tmp_path: Path) -> None:
    play = asking(answer(outcome), folder=tmp_path)
    placed = ask(play)
    assert placed.plan
    assert [one.environment["A"] for one in placed.plan.containers] == ["0", "1"]
    [call] = options_of(play, "session.place")
    assert call["agents"] == reports_of(AGENTS).documents
    assert (call["holder"]["pid"], call["holder"]["host"]) == (os.getppid(), socket.gethostname())


@pytest.mark.parametrize(("outcome", "deploys"), [("placed", True), ("pending", False)])
def test_people_learn_what_is_decided(outcome: str, deploys: bool, tmp_path: Path) -> None:
    play = asking(answer(outcome), folder=tmp_path)
    placed = ask(play)
    enter = f"Enter it: ssh -F {tmp_path}/Train-X/ssh_config main1"
    assert (placed.deploys, show_place(play, placed)[-1]) == (
        deploys,
        enter if deploys else "Session Train-X is PENDING: because.",
    )


@pytest.mark.parametrize(("outcome", "left"), [("placed", [".requests"]), ("pending", [".requests", "train"])])
def test_a_folder_of_an_ended_session_goes_when_the_next_is_placed(
    outcome: str, left: list[str], tmp_path: Path
) -> None:
    """The head learns which session the folder belongs to, and refuses the launch if that session is live."""
    Artifacts(str(tmp_path), "train").identity("ended", create=True)
    play = asking(answer(outcome), folder=tmp_path)
    ask(play)
    assert options_of(play, "session.place")[0]["kept"] == "ended"
    assert sorted(os.listdir(tmp_path)) == left


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placing, "_INTERVAL", 0.0)


@pytest.mark.usefixtures("no_pause")
def test_a_session_waits_for_its_turn_and_is_placed_by_new_reports(tmp_path: Path) -> None:
    play = asking(answer("pending"), answer("pending"), answer("placed"), folder=tmp_path)
    assert ask(play, wait=60).decision.outcome == "placed"
    assert [name for _host, name, _options in play.asked] == [
        "session.place",
        *["report.collect", "session.place"] * 2,
    ]


def test_a_session_that_does_not_wait_is_pending_and_no_failure(tmp_path: Path) -> None:
    play = asking(answer("pending"), folder=tmp_path)
    assert (ask(play).decision.outcome, len(play.asked)) == ("pending", 1)
    assert play.session == ASKED.name  # an interruption names it from now on


@pytest.mark.usefixtures("no_pause")
def test_a_session_that_has_waited_in_vain_says_so(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=exactly("Session Train-X is still PENDING after 0.05 s: because.")):
        ask(asking(answer("pending"), folder=tmp_path), wait=0.05)


@pytest.mark.parametrize("check", [False, True])
def test_a_session_that_is_pending_is_a_failure_if_that_is_asked_for(check: bool, tmp_path: Path) -> None:
    with pytest.raises(StateError, match=exactly("Session Train-X is PENDING: because.")):
        ask(asking(answer("pending"), folder=tmp_path, check=check), fail_when_pending=True)
    placed = ask(asking(answer("placed"), folder=tmp_path, check=check), fail_when_pending=True)
    assert placed.decision.outcome == "placed"


def small(cpus: int, name: str = "a") -> Json:
    return {"name": name, "capacity": {"millicpus": 1000 * cpus, "memory": 8 << 30}}


@pytest.mark.parametrize("check_mode", [True, False])
def test_what_the_agents_could_never_hold_waits_for_another_agent(check_mode: bool, tmp_path: Path) -> None:
    head = Head(str(tmp_path / "state"), check_mode)
    waits = session.place(head, ASKED, [small(1)], Holder())
    assert (waits["outcome"], waits["reason"]) == (
        "pending",
        "no host can hold this as they are: largest free when empty a: needs 2 CPUs, 1 free; add a host or ask for less",
    )
    # An agent that does not answer might hold it.
    unknown = session.place(head, ASKED, [small(1), {"name": "b", "reachable": False}], Holder())
    assert unknown["reason"] == "a: needs 2 CPUs, 1 free; b cannot be reached"
    assert session.place(head, ASKED, [small(1), small(2, "b")], Holder())["outcome"] == "placed"


@pytest.mark.parametrize("check_mode", [True, False])
def test_what_the_agents_could_never_hold_is_refused_and_not_recorded_if_that_is_asked_for(
    check_mode: bool, tmp_path: Path
) -> None:
    message = (
        "Session train cannot be launched: the agents could not hold it even without other sessions (a: needs 2 CPUs, 1 free); "
        "ask for less, or add agents."
    )
    head = Head(str(tmp_path / "state"), check_mode)
    with pytest.raises(EngineError, match=exactly(message)):
        session.place(head, ASKED, [small(1)], Holder(), refuse_impossible=True)
    if not check_mode:
        assert session.place(head, ASKED, [small(1)], Holder())["is_new"]
        # A session that waits already keeps waiting: agents change.
        assert session.place(head, ASKED, [small(1)], Holder(), refuse_impossible=True)["outcome"] == "pending"


@pytest.mark.parametrize("refuses", [True, False])
def test_the_head_is_asked_to_refuse_what_cannot_be_held_by_a_setting(refuses: bool, tmp_path: Path) -> None:
    play = asking(answer("pending"), folder=tmp_path)
    ask(play, refuse_impossible=refuses)
    assert options_of(play, "session.place")[0].get("refuse_impossible", False) is refuses


def test_check_mode_counts_the_sessions_that_the_command_would_launch_first(tmp_path: Path) -> None:
    """Two of these fit beside each other; each of them would fit alone."""
    agents = [{"name": "a", "capacity": {"millicpus": 4000, "memory": 32 << 30}}]
    asked = [request(name=f"train-{number}", cpus=2) for number in (1, 2, 3)]
    head = Head(str(tmp_path / "state"), True)
    found = [session.place(head, one, agents, Holder(), before=asked[:number]) for number, one in enumerate(asked)]
    assert [one["outcome"] for one in found] == ["placed", "placed", "pending"]
    assert found[2]["reason"].startswith("a: needs 2 CPUs, 0 free")


def test_check_mode_does_not_wait(tmp_path: Path) -> None:
    play = asking(answer("pending"), folder=tmp_path, check=True)
    assert ask(play, wait=3600).decision.outcome == "pending"
    assert len(play.asked) == 1


def test_the_lease_covers_a_bootstrap_script_and_a_pull(tmp_path: Path) -> None:
    asked = request(bootstrap="pip install x", pull="always")
    play = asking(answer("pending"), folder=tmp_path)
    ask(play, asked, launch_timeout=60)
    assert (
        options_of(play, "session.place")[0]["lease"] == 60 + asked.grace + asked.bootstrap_timeout + asked.pull_timeout
    )


@pytest.mark.parametrize("takes", [True, False])
def test_the_command_line_replaces_what_a_waiting_session_keeps(
    takes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value from another source is ignored: the session is launched as it was requested."""
    given = {"session_verify_timeout": "90", "session_pull": ""}
    monkeypatch.setattr(placing, "load_extra_vars", lambda _loader: given)
    asked = request(cluster_size=2, pull="never", bootstrap_timeout=7)
    play = asking(answer("placed"), folder=tmp_path)
    placed = place_session(play, LaunchSpec(asked, takes_variables=takes), reports_of(AGENTS), Exclusions())
    used = placed.asked.request
    expected = (90 if takes else asked.verify_timeout, "never", 7)
    assert (used.verify_timeout, used.pull, used.bootstrap_timeout) == expected


def test_an_option_of_the_task_has_precedence_over_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        placing, "load_extra_vars", lambda _loader: {"session_verify_timeout": 90, "session_pull": "always"}
    )
    play = asking(answer("placed"), folder=tmp_path)
    play.action.given = {"session_verify_timeout": 7}
    used = ask(play, request(cluster_size=2, verify_timeout=7)).asked.request
    assert (used.verify_timeout, used.pull) == (7, "always")


def ended_process() -> Json:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    return {"machine": _machine(), "user": "alice", "pid": process.pid, "start": "1"}


def test_a_controller_that_is_gone_is_taken_over_at_once(tmp_path: Path) -> None:
    play = asking(answer("held", holder=ended_process()), answer("placed"), folder=tmp_path)
    assert ask(play).decision.outcome == "placed"
    assert options_of(play, "session.place")[1]["takeover"] == plan(ASKED).session.launch


@pytest.mark.parametrize("holder", [{"machine": "elsewhere", "pid": 1}, None])
def test_a_controller_that_may_be_alive_is_respected(holder: Json | None, tmp_path: Path) -> None:
    reason = "session Train-X is being launched by bob"
    play = asking(answer("held", holder=holder, reason=reason), folder=tmp_path)
    message = "Session Train-X is being launched by bob; wait for it, or terminate it with terminate.yml."
    with pytest.raises(StateError, match=exactly(message)):
        ask(play)
    assert len(play.asked) == 1


@pytest.mark.parametrize(
    ("mode", "guards", "named"),
    [
        ("ab", (("missing", 0), ("present", 7789)), ["a"]),
        ("ab", (("missing", 0), ("missing", 0)), ["a, b"]),
        ("ab", (("", 0), ("present", 7789)), []),
        ("aa", (("missing", 0), ("", 0)), []),
        # The manager knows the port of the Swarm, and the worker has rules for another.
        ("ab", (("present", 7789), ("present", 4789)), ["b"]),
    ],
)
def test_a_launch_over_several_agents_names_those_without_the_rules_of_overlays(
    mode: str, guards: tuple[tuple[str, int], ...], named: list[str], tmp_path: Path
) -> None:
    swarms = ({"node_id": "n1", "data_path_port": 7789}, {"node_id": "n2", "managers": ["n1"]})
    agents = [
        {"name": name, "engine": {"swarm": swarm}, "overlay_guard": {"state": state, "port": port}}
        for name, swarm, (state, port) in zip("ab", swarms, guards, strict=True)
    ]
    asked = request(cluster_size=2, cluster_mode="multi-node")
    play = asking(answer("placed", plan=plan(asked, mode).to_json()), folder=tmp_path)
    ask(play, asked, agents)
    assert [warning.partition(":")[0] for warning in play.warnings] == named
    assert all("run provision_agents.yml" in warning for warning in play.warnings)


SECRET = request(cluster_size=2, secrets=[{"name": "token", "file": "/etc/hostname"}])
GIVEN = {"session_secrets": [{"name": "token", "file": "/etc/hostname"}]}


def test_the_path_of_a_secret_stays_on_the_controller_while_the_session_waits(tmp_path: Path) -> None:
    play = asking(answer("pending"), folder=tmp_path, **GIVEN)
    ask(play, SECRET)
    assert "/etc/hostname" not in str(play.asked)
    assert KeptRequests(str(tmp_path)).files(SESSION) == {"token": "/etc/hostname"}
    assert ask(asking(answer("pending"), folder=tmp_path), SECRET, queued=SESSION).decision.outcome == "pending"


@pytest.mark.parametrize("given", [{}, GIVEN])
def test_a_waiting_session_of_another_controller_gets_no_file_of_this_one(given: Json, tmp_path: Path) -> None:
    play = asking(answer("placed"), folder=tmp_path, **given)
    with pytest.raises(NotRequestedError, match="this controller has not requested it"):
        ask(play, SECRET, queued=SESSION)
    assert play.asked == []


def test_a_changed_request_of_the_store_is_not_launched(tmp_path: Path) -> None:
    ask(asking(answer("pending"), folder=tmp_path, **GIVEN), SECRET)
    play = asking(answer("placed"), folder=tmp_path, **GIVEN)
    changed = Request.from_json({**SECRET.to_json(), "image": "evil"})
    with pytest.raises(ComputeError, match=r"another request of session train than this controller made \(image\)"):
        ask(play, changed, queued=SESSION)
    assert play.asked == []


@pytest.mark.parametrize("outcome", ["placed", "repair", "running"])
def test_a_plan_of_the_head_with_a_further_secret_is_refused(outcome: str, tmp_path: Path) -> None:
    made = plan(ASKED).to_json()
    made["session"]["secrets"] = [{"name": "token", "environment": ""}]
    with pytest.raises(ComputeError, match=r"is not what was requested: secrets is "):
        ask(asking(answer(outcome, plan=made), folder=tmp_path))


@pytest.mark.parametrize(("outcome", "is_given_up"), [("placed", True), ("pending", True), ("running", False)])
def test_a_controller_that_cannot_keep_the_request_gives_the_session_up(
    outcome: str, is_given_up: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: object) -> None:
        raise ComputeError("It cannot be written: No space left on device.")

    monkeypatch.setattr(KeptRequests, "keep", full)
    play = conducted(
        {"session.place": answer(outcome), "session.record": {"session": {}}}, "a", session_artifacts=str(tmp_path)
    )
    with pytest.raises(ComputeError):
        ask(play)
    assert [change["state"] for change in changes_of(play)] == ["failed"] * is_given_up


@pytest.mark.parametrize("outcome", ["pending", "placed", "repair", "running"])
def test_a_request_is_kept_until_its_session_ends(outcome: str, tmp_path: Path) -> None:
    ask(asking(answer(outcome), folder=tmp_path))
    assert os.listdir(tmp_path / FOLDER) == [SESSION]
    # A pass takes it from the store, and finds it unchanged.
    ask(asking(answer(outcome), folder=tmp_path), queued=SESSION)
    assert os.listdir(tmp_path / FOLDER) == [SESSION]
    ask(asking(answer("failed"), folder=tmp_path), queued=SESSION)
    assert os.listdir(tmp_path / FOLDER) == []


def test_a_failure_of_the_head_is_the_error(tmp_path: Path) -> None:
    """A module that fails says nothing of a session."""
    message = "session_name: 'train': is used by a RUNNING session with other settings."
    with pytest.raises(ComputeError, match=exactly(message)):
        ask(asking({"failed": True, "msg": message}, folder=tmp_path))
