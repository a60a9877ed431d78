# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Passes over the queue, on a scripted play."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

import pytest
from conducted import changes_of, conducted, options_of
from samples import decision, plan, request

from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.constants import SESSION_DIRS
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.decision import FencedAgent
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.view import SessionView
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError, SessionError
from ansible_collections.cluster.compute.plugins.plugin_utils._client.request_cache import KeptRequests
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.holder import login
from ansible_collections.cluster.compute.plugins.plugin_utils._session import queue
from ansible_collections.cluster.compute.plugins.plugin_utils._session import reports as reporting
from ansible_collections.cluster.compute.plugins.plugin_utils._session.launch import LaunchResult
from ansible_collections.cluster.compute.plugins.plugin_utils._session.launch_spec import Launch
from ansible_collections.cluster.compute.plugins.plugin_utils._session.queue import follow_up, make_pass
from ansible_collections.cluster.compute.plugins.plugin_utils._session.reports import Reports
from ansible_collections.cluster.compute.plugins.plugin_utils._settings.settings import Settings

ROW = {
    "id": "3614fdf3-0e04-4a4b-9d5c-1f7c0a8e6b11",
    "name": "train",
    "owner": "alice",
    "state": "TERMINATING",
    "reason": "x",
}
SETTINGS = Settings(keep_days=1, keep_logs=1 << 30, queue_age_bound=60, wait_result=True)


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where the controller keeps its requests."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def identity(name: str) -> str:
    return str(uuid5(NAMESPACE_DNS, name))


def waiting(name: str, state: str = "PENDING") -> Json:
    asked = request(name=name)
    return {"id": identity(name), "name": name, "owner": asked.owner, "state": state, "request": asked.to_json()}


def keep(*names: str) -> None:
    """Let the controller have requested the sessions of these names."""
    for name in names:
        KeptRequests(SESSION_DIRS).keep(identity(name), request(name=name), {})


def passing(
    monkeypatch: pytest.MonkeyPatch, *fails: str, names: str = "a", decided: Json | None = None, **changes: Any
) -> Any:
    """A play whose head lets two sessions fit in the first round, on the last of the agents; launches of these names fail.

    The controller has requested them.
    """
    keep("late", "later", "sick")
    rounds = [
        {"fitting": [waiting("late"), waiting("later")], "tried": ["late", "later"], "is_last": False},
        {"fitting": [], "tried": ["late", "later"], "is_last": True, "summary": ["Session last is PENDING: no room."]},
    ]
    usual = {"begun": True, "holder": {}, "summary": [], "remove": [], "ended": []}

    def queue_pass(_host: str, args: Json) -> Json:
        return {**usual, **(rounds.pop(0) if args["verb"] == "decide" else {})}

    def launched(_play: Any, asked: Any, found: Reports) -> LaunchResult:
        launches.append(asked)
        reports.append(found)
        if asked.request.name in fails:
            raise SessionError(f"Session {asked.request.name} was not launched: why.")
        return LaunchResult(Launch(asked, decision("placed", **(decided or {})), plan(asked.request, names[-1])), True)

    reports: list[Reports] = []
    launches: list[Any] = []
    monkeypatch.setattr(queue, "launch", launched)
    monkeypatch.setattr(queue, "checked_settings", lambda *_arguments: SETTINGS)
    script = {
        "queue": queue_pass,
        "report.collect": lambda host, _args: {"agent": {"name": host, "reachable": True}},
        "sessions.list_all": {"sessions": []},
        "queue.maintain": {},
        **changes,
    }
    play = conducted(script, *names)
    play.launches, play.reports = launches, reports
    return play


def test_a_pass_launches_what_fits_and_looks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    play = passing(monkeypatch)
    assert make_pass(play) is True
    assert [asked.request.name for asked in play.launches] == ["late", "later"]
    rounds = [name for _host, name, _args in play.asked if name in ("queue.begin", "queue.decide", "queue.end")]
    assert rounds == ["queue.begin", "queue.decide", "queue.decide", "queue.end"]
    assert play.lines == ["Session last is PENDING: no room."]


def test_a_pass_that_gives_a_session_up_has_changed_it(monkeypatch: pytest.MonkeyPatch) -> None:
    given_up = {"fitting": [], "tried": [], "is_last": True, "summary": [], "remove": [], "ended": [ROW]}
    assert make_pass(passing(monkeypatch, **{"queue.decide": given_up})) is True
    assert make_pass(passing(monkeypatch, **{"queue.decide": {**given_up, "ended": []}})) is False


def asked_for_reports(play: Any) -> str:
    return "".join(host for host, name, args in play.asked if name == "report.collect" and args["options"]["image"])


def test_a_launch_of_a_pass_asks_only_the_agents_again_that_have_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter(range(1500, 1600))

    def report(host: str, _args: Json) -> Json:
        return {"agent": {"name": host, "reachable": True, "mtu": next(counts)}}

    play = passing(monkeypatch, names="abc", **{"report.collect": report})
    make_pass(play)
    assert asked_for_reports(play) == "abc" + "c"
    first, second = ({one.name: one.mtu for one in found.agents} for found in play.reports)
    assert list(second) == ["a", "b", "c"]
    assert ({**first, "c": 0}, first["c"] + 1) == ({**second, "c": 0}, second["c"])


@pytest.mark.parametrize(
    ("fails", "decided", "recent"),
    [
        ("late", {}, 30),
        ("", {"remove": ("old",)}, 30),
        ("", {"fenced": {"a": FencedAgent((), rejoins=False, swarm="")}}, 30),
        ("", {}, -1),
    ],
)
def test_a_launch_asks_all_agents_after_a_failure_a_removal_or_some_time(
    fails: str, decided: Json, recent: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporting, "RECENT", recent)
    play = passing(monkeypatch, fails, names="abc", decided=decided)
    with suppress(SessionError):
        make_pass(play)
    assert asked_for_reports(play) == "abcabc"


def test_a_session_that_fails_does_not_keep_others_from_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    play = passing(monkeypatch, "late", **{"queue.maintain": {"failed": True, "msg": "The store is full."}})
    with pytest.raises(ComputeError) as caught:
        make_pass(play)
    assert caught.value.message == "The store is full. late: Session late was not launched: why."
    assert [asked.request.name for asked in play.launches] == ["late", "later"]
    assert play.asked[-1][1] == "queue.end"


def test_a_pass_after_an_end_fails_nothing_and_ignores_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    play = passing(monkeypatch, "late")
    follow_up(play)
    assert play.lines[-1] == "The pass over the queue was not complete: late: Session late was not launched: why."
    assert not any(asked.takes_variables or asked.settings.wait_result for asked in play.launches)


def ask_for_metrics(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    settings = replace(SETTINGS, sessions_metrics=str(path))
    monkeypatch.setattr(queue, "checked_settings", lambda *_arguments: settings)


def test_a_pass_writes_metrics_of_all_owners_after_its_last_launch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    play = passing(monkeypatch, "late", **{"sessions.list_all": {"sessions": [], "agents": [], "time": 5.0}})
    ask_for_metrics(monkeypatch, tmp_path / "a.prom")
    with pytest.raises(SessionError, match=r"^late: Session late was not launched: why\.$"):
        make_pass(play)
    assert "cluster_compute_written_timestamp_seconds 5\n" in (tmp_path / "a.prom").read_text()
    assert [name for _host, name, _args in play.asked[-3:]] == ["queue.end", "report.collect", "sessions.list_all"]
    assert [options.get("owner") for options in options_of(play, "sessions.list_all")] == [login(), None]
    assert play.asked[-2][2]["options"]["measure"] is True


def test_a_pass_whose_metrics_cannot_be_written_has_made_its_launches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    play = passing(monkeypatch, **{"sessions.list_all": {"sessions": [], "agents": [], "time": 5.0}})
    ask_for_metrics(monkeypatch, tmp_path / "none/a.prom")
    with pytest.raises(SessionError, match=r"none/a\.prom cannot be written: No such file or directory"):
        make_pass(play)
    assert [asked.request.name for asked in play.launches] == ["late", "later"]


def test_the_pass_after_an_end_writes_no_metrics(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    play = passing(monkeypatch)
    ask_for_metrics(monkeypatch, tmp_path / "a.prom")
    follow_up(play)
    assert not (tmp_path / "a.prom").exists()


def test_another_pass_that_is_in_progress_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    other = {"begun": False, "holder": {"pid": 1, "machine": "elsewhere"}, "summary": ["A pass is in progress."]}
    play = passing(monkeypatch, queue=other)
    assert make_pass(play) is False
    assert (play.lines, len(play.asked)) == (["A pass is in progress."], 1)


def test_a_repair_that_fails_is_shown_and_fails_no_pass(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    play = passing(monkeypatch, "sick")
    monkeypatch.setattr(
        queue, "sessions_to_repair", lambda _sessions: [SessionView.from_json(waiting("sick", "RUNNING"))]
    )
    make_pass(play)
    assert "Session sick was not repaired: Session sick was not launched: why." in play.lines


def forget(*names: str) -> None:
    for name in names:
        KeptRequests(SESSION_DIRS).forget(identity(name))


LEFT_ALONE = "Session %s is left alone: this controller has not requested it ("


def test_a_pass_leaves_alone_what_this_controller_has_not_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever can write the store of the head can write a session with this owner and this login there."""
    play = passing(monkeypatch)
    forget("later")
    make_pass(play)
    assert [asked.request.name for asked in play.launches] == ["late"]
    assert play.lines[0].startswith(LEFT_ALONE % "later")


def test_a_changed_request_of_a_waiting_session_is_a_failure_of_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    play = passing(monkeypatch)
    KeptRequests(SESSION_DIRS).keep(identity("late"), request(name="late", image="other"), {})
    with pytest.raises(SessionError, match=r"another request of session late than this controller made \(image\)"):
        make_pass(play)
    assert [asked.request.name for asked in play.launches] == ["later"]


def test_a_pass_does_not_repair_what_this_controller_has_not_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    play = passing(monkeypatch)
    monkeypatch.setattr(
        queue, "sessions_to_repair", lambda _sessions: [SessionView.from_json(waiting("sick", "RUNNING"))]
    )
    forget("sick", "late", "later")
    assert make_pass(play) is False
    assert (play.launches, play.lines[0].startswith(LEFT_ALONE % "sick")) == ([], True)


def test_a_pass_does_not_move_what_this_controller_has_not_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    play = losing(monkeypatch, {})
    forget("sick")
    make_pass(play)
    assert options_of(play, "swarm.fence") == []
    assert [asked.relocates for asked in play.launches] == [False, False]
    assert play.lines[0].startswith(LEFT_ALONE % "sick")


def losing(monkeypatch: pytest.MonkeyPatch, node: Json) -> Any:
    """A pass that finds that a session is to move; ``node`` is what the Swarm says about the lost agent."""
    sick = {**waiting("sick", "RUNNING"), **{name: [] for name in ("containers", "degraded")}, "requested_here": True}
    loss = {
        "id": sick["id"],
        "name": "sick",
        "action": "relocate",
        "nodes": {"b": "node-b"},
        "swarms": {},
        "shared": True,
    }
    loss.update(owner="alice", reason="x")
    manager = {"engine": {"swarm": {"manager": True, "state": "active"}}}
    return passing(
        monkeypatch,
        **{
            "report.collect": lambda host, _args: {"agent": {"name": host, "reachable": True, **manager}},
            "sessions.list_all": {"sessions": [{**sick, "on_failure": "keep", "terminate_when_done": False}]},
            "queue.maintain": {"lost": [loss], "fenced": {}},
            "swarm.fence": node,
        },
    )


def test_a_session_moves_after_its_lost_agent_is_fenced(monkeypatch: pytest.MonkeyPatch) -> None:
    play = losing(monkeypatch, {})
    make_pass(play)
    assert [(asked.queued, asked.relocates) for asked in play.launches] == [
        (identity("sick"), True),
        (identity("late"), False),
        (identity("later"), False),
    ]


def test_a_session_whose_agent_is_not_lost_to_the_swarm_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    ready = {"failed": True, "msg": "b does not answer, but its node is ready.", "failure": {"code": "state"}}
    play = losing(monkeypatch, ready)
    make_pass(play)
    assert "Session sick was not relocated: b does not answer, but its node is ready." in play.lines
    assert [asked.request.name for asked in play.launches] == ["late", "later"]


def test_losses_without_their_form_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    play = passing(monkeypatch, **{"queue.maintain": {"lost": [{"name": "sick", "action": "end"}]}})
    with pytest.raises(SessionError, match=r"^The answer of a is refused: it has None in lost\.0\.id"):
        make_pass(play)


DEAD = {"hostname": "main1", "agent": "a", "state": "missing"}
OVER: Json = {
    **{"id": ROW["id"], "name": "train", "owner": "alice", "state": "RUNNING"},
    **{"containers": [DEAD], "degraded": ["main1"]},
    **{"on_failure": "terminate", "terminate_when_done": False, "requested_here": False, "held": False, "holder": None},
}
RUNS = {**OVER, "containers": [{**DEAD, "state": "running"}], "degraded": []}


@pytest.mark.parametrize(
    ("second", "is_ended"),
    [
        (OVER, True),
        (RUNS, False),
        ({**RUNS, "overdue": True, "ends": 1000.0}, True),
        # By the clock of the head alone, which may be ahead.
        ({**RUNS, "overdue": True, "ends": 1e10}, False),
        ({**OVER, "held": True, "holder": {"machine": "other", "pid": 7}}, False),
        ({**OVER, "id": "another"}, False),
        ({**RUNS, "state": "TERMINATING"}, True),
        ({**RUNS, "state": "TERMINATING", "held": True, "holder": {"machine": "other", "pid": 7}}, False),
    ],
)
def test_a_pass_ends_what_is_over_at_a_second_look_and_what_no_other_controller_changes(
    monkeypatch: pytest.MonkeyPatch, second: Json, is_ended: bool
) -> None:
    first = OVER if second["state"] == "RUNNING" else second
    lists = [{"sessions": [first]}, {"sessions": [second]}]
    record = {"changed": True, "session": ROW, "remove": [], "waiting": 0, "grace": 10}
    play = passing(
        monkeypatch, **{"sessions.list_all": lists, "session.record": record, "containers": {"changed": True}}
    )
    make_pass(play)
    begun = [one for one in changes_of(play) if one["state"] == "terminating"]
    # By its ID: another session may have got the name meanwhile.
    assert [one["id"] for one in begun] == [ROW["id"]] * is_ended


def test_a_session_that_is_over_and_has_lost_an_agent_ends_once_for_its_own_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    record = {"changed": True, "session": ROW, "remove": [], "waiting": 0, "grace": 10}
    lost = {**OVER, "action": "end", "reason": "x", "nodes": {}, "swarms": {}, "shared": False}
    script = {"sessions.list_all": {"sessions": [OVER]}, "session.record": record, "queue.maintain": {"lost": [lost]}}
    play = passing(monkeypatch, **script, containers={"changed": True})
    play.check = True
    assert (make_pass(play), play.lines.count("Session train would be terminated.")) == (True, 1)
    play.check = False
    make_pass(play)
    assert [one["reason"] for one in changes_of(play) if one["state"] == "terminating"] == ["", ""]


def reported(play: Any) -> str:
    return "".join(host for host, name, _args in play.asked if name == "report.collect")


def ends(host: str, args: Json) -> Json:
    """Each session of a name has its container on the agent of that name."""
    return {"changed": args["sessions"][0].endswith(host)}


def test_a_pass_that_ends_many_sessions_asks_only_the_agents_again_that_hold_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def record(_host: str, args: Json) -> Json:
        row = {**ROW, "id": args["change"]["id"], "state": args["state"].upper()}
        return {"changed": True, "session": row, "remove": [], "waiting": 0, "grace": 10}

    ids = [ROW["id"][:-1] + name for name in "bcd"]
    over = [
        {**OVER, "id": one, "name": one[-1], "agents": [one[-1]], "containers": [], "on_failure": "keep"} for one in ids
    ]
    monkeypatch.setattr(queue, "finished_sessions", lambda _sessions: [SessionView.from_json(one) for one in over])
    monkeypatch.setattr(queue, "sessions_to_repair", lambda _sessions: [])
    script = {"sessions.list_all": {"sessions": over}, "session.record": record, "containers": ends}
    play = passing(monkeypatch, names="abcd", **script)
    make_pass(play)
    ended = [args["sessions"] for _host, name, args in play.asked if name == "containers.absent"]
    assert ended[::4] == [[one] for one in ids]
    # For the list, for the second look, the agents of each end and of the one before it, and what the last has freed.
    assert reported(play).startswith("abcd" + "abcd" + "b" + "bc" + "cd" + "d")
