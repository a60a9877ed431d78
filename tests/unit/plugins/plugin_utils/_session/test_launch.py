# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A launch on a scripted play: every step in order, or nothing of the launch is left."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conducted import changes_of, conducted, options_of, reports_of
from samples import decision, plan, request, running_row

from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Port
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import (
    ComputeError,
    SessionError,
    StateError,
)
from ansible_collections.cluster.compute.plugins.plugin_utils._client.request_cache import KeptRequests
from ansible_collections.cluster.compute.plugins.plugin_utils._client.session_dir import Artifacts
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.phases import containers_of
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.transfer_watch import TERMINAL
from ansible_collections.cluster.compute.plugins.plugin_utils._session import launch as launching
from ansible_collections.cluster.compute.plugins.plugin_utils._session import place as placing
from ansible_collections.cluster.compute.plugins.plugin_utils._session.launch import launch
from ansible_collections.cluster.compute.plugins.plugin_utils._session.launch_spec import LaunchSpec
from ansible_collections.cluster.compute.plugins.plugin_utils._settings.settings import Settings

ASKED = request(cluster_size=2, cluster_mode="multi-node")
PLAN = plan(ASKED, "ab")
ROW = running_row(PLAN)
FAILED = {**ROW, "state": "ERROR", "reason": "why", "launch": PLAN.session.launch}
IMAGE = {"reference": PLAN.session.image, "present": True, "id": "1"}
AGENTS: list[Json] = [{"name": name, "reachable": True, "image": IMAGE} for name in "ab"]
SETTINGS = Settings()
TAKEN = {"failed": True, "msg": "b: port 30000 is taken.", "failure": {"code": "taken"}}
LOST = {"failed": True, "msg": "b cannot be reached.", "failure": {"code": "unreachable"}}


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placing, "load_extra_vars", lambda _loader: {})
    monkeypatch.setattr(launching, "verify", lambda *_arguments: None)
    monkeypatch.setattr(launching, "confirm", lambda *_arguments: {})


def playing(folder: Path, **changes: Any) -> Any:
    """Two hosts that do what a launch asks for."""
    script = {
        "session.place": decision("placed", PLAN, changed=True).to_json(),
        "report.collect": lambda host, _args: {"agent": {"name": host, "reachable": True, "image": IMAGE}},
        "network": {},
        "containers": {"changed": True},
        "logs.read": {"logs": [{"hostname": "sub1", "state": "exited", "text": "last words"}]},
        "session.record": lambda _host, args: {
            "changed": True,
            "session": ROW if args["state"] == "running" else FAILED,
        },
        **changes,
    }
    return conducted(script, "a", "b", session_artifacts=str(folder))


def steps(play: Any) -> list[tuple[str, str, str]]:
    return [(host, name, str(args.get("state", ""))) for host, name, args in play.asked]


def fails_at(state: str, failure: Json) -> Callable[[str, Json], Json]:
    """The containers of b, with this failure in a state."""
    return lambda host, args: failure if (host, args["verb"]) == ("b", state) else {"changed": True}


def test_a_launch_takes_every_step_in_order(tmp_path: Path) -> None:
    play = playing(tmp_path)
    launched = launch(play, LaunchSpec(ASKED, SETTINGS), reports_of(AGENTS))
    assert launched.changed
    assert steps(play) == [
        ("a", "session.place", ""),
        ("a", "containers.created", ""),
        ("b", "containers.created", ""),
        ("a", "containers.started", ""),
        ("b", "containers.started", ""),
        ("a", "session.record", "running"),
    ]
    assert play.lines[0] == "Session train: RUNNING (cluster session, multi-node)"
    assert (tmp_path / "train" / "session.json").exists()
    assert set(play.timings) == {"schedule", "create", "start", "network"}


@pytest.mark.parametrize(("placement", "need_proof"), [("aaa", False), ("aab", True)])
def test_several_agents_must_prove_that_they_share_the_folders(placement: str, need_proof: bool) -> None:
    mounts = [
        {"source": "/data", "target": "/data", "mode": "ro"},
        {"source": "/out", "target": "/out"},
        {"source": "/data", "target": "/again"},
        {"source": "cache", "target": "/cache", "type": "volume"},
    ]
    play = conducted({"folders.mark": {"marks": {}}, "folders": {}}, "a", "b")
    launching.prove_folders(play, plan(request(cluster_size=3, mounts=mounts), placement))
    names = ["folders.mark", "folders.find", "folders.unmark"]
    assert [(host, name) for host, name, _args in play.asked] == list(zip("aba", names, strict=True)) * need_proof
    marked = [(args["folders"], sorted(args["writable"])) for args in options_of(play, "folders.mark")]
    assert marked == [(["/data", "/out"], ["/data", "/out"])] * need_proof


@pytest.mark.parametrize(
    ("missing", "made"), [(["sub1"], "1 container"), (["main1", "sub1"], "2 containers on 2 agents")]
)
def test_a_repair_names_what_it_makes_and_updates_only_what_keeps_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: list[str], made: str
) -> None:
    repair = decision("repair", PLAN, changed=True, missing=missing)
    play = playing(tmp_path, **{"session.place": repair.to_json()})
    shown: list[tuple[str, str]] = []
    phase = play.phase
    monkeypatch.setattr(
        play, "phase", lambda key, part=None: (shown.append((key, containers_of(part or PLAN))), phase(key, part))[1]
    )
    launch(
        play,
        LaunchSpec(ASKED, SETTINGS, queued=PLAN.session.id, takes_variables=False, is_checked=True),
        reports_of(AGENTS),
    )
    assert [what for key, what in shown if key in ("create", "start")] == [made, made]
    assert ("containers.followed" in [name for _host, name, _more in play.asked]) == (len(missing) == 1)


@pytest.mark.parametrize("outcome", ["running", "repair"])
def test_an_app_of_a_role_that_was_removed_is_not_shown_again(tmp_path: Path, outcome: str) -> None:
    """Its container keeps it no more. An app of the same role that runs is shown."""
    apps = [{"name": name, "port": port, "command": "serve"} for name, port in (("board", 6006), ("notes", 6007))]
    wanted = request(cluster_mode="multi-node", roles=[{"name": "ps", "apps": apps}])
    planned = plan(wanted, "ab")
    decided = decision(outcome, planned, missing=["main1"], ended_apps=["board"])
    play = playing(tmp_path, **{"session.place": decided.to_json()})
    Artifacts(play.artifacts, planned.session.name).identity(planned.session.id, create=True)
    asked = LaunchSpec(wanted, SETTINGS, queued=planned.session.id, takes_variables=False, is_checked=True)
    launch(play, asked, reports_of(AGENTS))
    assert "App notes: in ps1, by SSH tunnel" in play.lines
    assert not [line for line in play.lines if "board" in line]
    document = json.loads((tmp_path / planned.session.name / "session.json").read_text())
    assert [app["name"] for app in document["apps"]] == ["ssh", "notes"]


@pytest.mark.parametrize(
    ("keeps", "shown"), [(["notes"], ["notes"]), (["board", "notes"], ["board", "notes", "plots"])]
)
def test_a_repair_writes_no_url_of_an_app_that_was_removed(tmp_path: Path, keeps: list[str], shown: list[str]) -> None:
    """main1 has its list of apps still if it was only started again. The head says the same of the apps of a role."""
    apps = [{"name": name, "port": port, "command": "serve"} for name, port in (("board", 6006), ("notes", 6007))]
    of_role = [{"name": "plots", "port": 6008, "command": "serve"}]
    roles = [{"name": "ps", "apps": of_role}]
    wanted = request(cluster_mode="multi-node", apps=apps, roles=roles)
    inside = {"ssh": 22, "board": 6006, "notes": 6007}
    ports = [Port(name, port, "127.0.0.1", 30000 + number) for number, (name, port) in enumerate(inside.items())]
    planned = plan(wanted, "ab", ports=tuple(ports))
    ended = [] if "plots" in shown else ["plots"]
    decided = decision("repair", planned, missing=["main1"], ended_apps=ended)
    found = {"changed": False, "apps": [{"name": name, "state": "ready"} for name in keeps], "relays": []}
    play = playing(tmp_path, **{"session.place": decided.to_json(), "apps": found})
    Artifacts(play.artifacts, planned.session.name).identity(planned.session.id, create=True)
    asked = LaunchSpec(wanted, SETTINGS, queued=planned.session.id, takes_variables=False, is_checked=True)
    launch(play, asked, reports_of(AGENTS))
    lines = (tmp_path / planned.session.name / "apps").read_text().splitlines()
    assert [line.partition(" ")[0] for line in lines] == shown


@pytest.mark.parametrize(("fabric", "hosts"), [(False, ["a"]), (True, ["a", "b"])])
def test_a_repair_also_looks_for_containers_that_lack_their_fabric(
    tmp_path: Path, fabric: bool, hosts: list[str]
) -> None:
    wanted = replace(ASKED, fabric=fabric)
    planned = plan(wanted, "ab")
    repair = decision("repair", planned, changed=True, missing=["main1"])
    play = playing(tmp_path, **{"session.place": repair.to_json()})
    asked = LaunchSpec(wanted, SETTINGS, queued=PLAN.session.id, takes_variables=False, is_checked=True)
    launch(play, asked, reports_of(AGENTS))
    assert [host for host, name, _more in play.asked if name == "containers.started"] == hosts


@pytest.mark.parametrize(("check", "diff", "is_last"), [(True, True, True), (True, False, False), (False, True, False)])
def test_a_difference_comes_before_the_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, check: bool, diff: bool, is_last: bool
) -> None:
    """Ansible shows the difference when the task has ended."""
    play = conducted({}, check=check, diff=diff)
    monkeypatch.setattr(TERMINAL, "phase", str(tmp_path / "phase"))
    play.show(["Session train: would be launched"])
    assert (bool(play.lines), bool(play.said)) == (is_last, not is_last)


def test_roles_start_when_those_before_them_are_ready(tmp_path: Path) -> None:
    roles = [{"name": "worker", "after": ["ps"]}, {"name": "ps", "command": "serve", "ready": 80}]
    asked = request(cluster_mode="multi-node", roles=roles)
    made = plan(asked, "aab")
    play = playing(tmp_path, **{"session.place": decision("placed", made, changed=True).to_json()})
    launch(play, LaunchSpec(asked, SETTINGS), reports_of(AGENTS))
    started = [
        (host, name, [one["hostname"] for one in args["plan"]["containers"]])
        for host, name, args in play.asked
        if name in ("containers.started", "containers.begun")
    ]
    assert started == [
        ("a", "containers.started", ["main1"]),
        ("b", "containers.started", ["ps1"]),
        ("b", "containers.begun", ["ps1"]),
        ("a", "containers.started", ["worker1"]),
    ]
    assert [len(args["plan"]["peers"]) for _host, name, args in play.asked if name == "containers.started"] == [3] * 3


def test_the_commands_of_roles_begin_after_a_repair_that_was_interrupted_before(tmp_path: Path) -> None:
    """All containers run, so the head finds none missing."""
    asked = request(roles=[{"name": "ps", "command": "serve"}])
    made = plan(asked, "aa")
    Artifacts(str(tmp_path), "train").identity(made.session.id, create=True)
    play = playing(tmp_path, **{"session.place": decision("repair", made, changed=True).to_json()})
    launch(play, LaunchSpec(asked, SETTINGS), reports_of(AGENTS))
    begun = [[one["hostname"] for one in args["plan"]["containers"]] for args in options_of(play, "containers.begun")]
    assert begun == [["ps1"]]


def test_a_launch_that_fails_leaves_nothing_and_keeps_the_logs(tmp_path: Path) -> None:
    failure = {"failed": True, "msg": "sub1: on b it does not start."}
    play = playing(tmp_path, containers=fails_at("started", failure))
    with pytest.raises(SessionError, match=r"^Session train was not launched: why$"):
        launch(play, LaunchSpec(ASKED, SETTINGS), reports_of(AGENTS))
    assert steps(play)[-6:] == [
        ("a", "logs.read", ""),
        ("b", "logs.read", ""),
        ("a", "containers.absent", ""),
        ("b", "containers.absent", ""),
        ("a", "network.absent", ""),
        ("a", "session.record", "failed"),
    ]
    [recorded] = changes_of(play)
    assert (recorded["reason"], recorded["retry"], len(recorded["logs"])) == ("sub1: on b it does not start.", False, 2)
    assert (recorded["id"], recorded["undone"]) == (PLAN.session.id, True)
    assert not (tmp_path / "train").exists()


def test_a_bug_leaves_nothing_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_arguments: object) -> None:
        raise KeyError("gone")

    monkeypatch.setattr(launching, "verify", broken)
    play = playing(tmp_path)
    with pytest.raises(SessionError) as caught:
        launch(play, LaunchSpec(ASKED, SETTINGS), reports_of(AGENTS))
    assert changes_of(play)[0]["reason"] == "KeyError: 'gone'"
    assert "Traceback" in caught.value.trace


def test_what_is_taken_is_avoided_in_another_place(tmp_path: Path) -> None:
    """The head lets the session wait again: another subnet and other ports are chosen."""
    answers = [TAKEN, {"changed": True}]

    def containers(host: str, args: Json) -> Json:
        return answers.pop(0) if (host, args["verb"]) == ("b", "created") else {"changed": True}

    def state(_host: str, args: Json) -> Json:
        return {"changed": True, "session": ROW if args["state"] == "running" else {**ROW, "state": "PENDING"}}

    play = playing(tmp_path, containers=containers, **{"session.record": state})
    assert launch(play, LaunchSpec(ASKED, SETTINGS), reports_of(AGENTS)).changed
    first, second = options_of(play, "session.place")
    assert PLAN.network.subnet not in first["agents"][0].get("routes", [])
    assert PLAN.network.subnet in second["agents"][0]["routes"]
    assert [one["retry"] for one in changes_of(play) if one["state"] == "failed"] == [True]


def test_a_head_that_lets_a_session_be_placed_again_for_ever_is_not_obeyed(tmp_path: Path) -> None:
    again = {"changed": True, "session": {**ROW, "state": "PENDING"}}
    play = playing(tmp_path, containers=fails_at("created", TAKEN), **{"session.record": again})
    with pytest.raises(SessionError, match=r"^Session train was not launched: b: port 30000 is taken\.$"):
        launch(play, LaunchSpec(ASKED, SETTINGS), reports_of(AGENTS))
    assert len(options_of(play, "session.place")) == launching._MOST_ATTEMPTS


@pytest.mark.parametrize(("queued", "retry"), [("", False), (PLAN.session.id, True)])
def test_a_lost_connection_keeps_the_place_of_a_session_of_the_queue(queued: str, retry: bool, tmp_path: Path) -> None:
    play = playing(tmp_path, containers=lambda host, _args: LOST if host == "b" else {"changed": True})
    KeptRequests(str(tmp_path)).keep(PLAN.session.id, ASKED, {})
    with pytest.raises(SessionError):
        launch(play, LaunchSpec(ASKED, SETTINGS, queued=queued), reports_of(AGENTS))
    [recorded] = changes_of(play)
    assert recorded["retry"] is retry
    assert recorded["reason"].endswith("Anything left of it on b is removed when that agent answers again.")


def test_a_repair_that_fails_keeps_what_runs(tmp_path: Path) -> None:
    repair = {
        "outcome": "repair",
        "session": ROW,
        "plan": PLAN.to_json(),
        "reason": "",
        "missing": ["sub1"],
        "remove": [],
    }
    play = playing(tmp_path, containers=fails_at("started", LOST), **{"session.place": repair})
    with pytest.raises(SessionError, match=r"^Session train was not repaired: "):
        launch(play, LaunchSpec(ASKED, SETTINGS), reports_of(AGENTS))
    assert options_of(play, "logs.read") == []
    assert options_of(play, "network.absent") == []
    assert all(args.get("launch") for args in options_of(play, "containers.absent"))


def test_a_session_of_the_queue_that_cannot_be_launched_is_an_error(tmp_path: Path) -> None:
    failed = {"failed": True, "outcome": "failed", "session": FAILED, "reason": "no folder", "msg": "no folder."}
    play = playing(tmp_path, **{"session.place": failed})
    KeptRequests(str(tmp_path)).keep(PLAN.session.id, ASKED, {})
    with pytest.raises(ComputeError, match="no folder"):
        launch(play, LaunchSpec(ASKED, SETTINGS, queued=PLAN.session.id), reports_of(AGENTS))
    assert [name for _host, name, _args in play.asked] == ["session.place"]


@pytest.mark.parametrize("written", ["session.json", "trace.json"])
def test_a_controller_that_cannot_write_the_result_has_launched_nothing(
    written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last files of a launch are written before the head records that it runs."""
    write = Artifacts.write

    def full(artifacts: Artifacts, name: str, content: bytes, mode: int = 0o600) -> bool:
        if name == written:
            raise ComputeError(f"{name} cannot be written: No space left on device.")
        return write(artifacts, name, content, mode)

    monkeypatch.setattr(Artifacts, "write", full)
    play = playing(tmp_path)
    with pytest.raises(SessionError, match="was not launched"):
        launch(play, LaunchSpec(ASKED, SETTINGS), reports_of(AGENTS))
    [change] = changes_of(play)
    assert (change["state"], "cannot be written: No space left" in change["reason"]) == ("failed", True)


def test_an_engine_under_two_names_gets_no_session(tmp_path: Path) -> None:
    """It would be given twice what it has. Engines that are not known may be different ones."""
    play = playing(tmp_path)
    named = [{**agent, "engine": {"identity": "1"}} for agent in AGENTS]
    with pytest.raises(StateError, match=r"^a and b are the same engine: remove one of them from the inventory\.$"):
        launch(play, LaunchSpec(ASKED, SETTINGS), reports_of(named))
    assert play.asked == []
    launch(play, LaunchSpec(ASKED, SETTINGS), reports_of([{**agent, "engine": {"identity": ""}} for agent in AGENTS]))
