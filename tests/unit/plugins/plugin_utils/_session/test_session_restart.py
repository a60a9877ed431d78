# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A restart on a scripted play: the named containers are stopped, and then the session is repaired."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conducted import changes_of, conducted, options_of
from samples import decision, exactly, plan, request, running_row

from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError
from ansible_collections.cluster.compute.plugins.plugin_utils._client.request_cache import (
    KeptRequests,
    NotRequestedError,
)
from ansible_collections.cluster.compute.plugins.plugin_utils._session import launch as launching
from ansible_collections.cluster.compute.plugins.plugin_utils._session import place as placing
from ansible_collections.cluster.compute.plugins.plugin_utils._session import session as restarting
from ansible_collections.cluster.compute.plugins.plugin_utils._session.session import restart
from ansible_collections.cluster.compute.plugins.plugin_utils._variables import request_variables

ASKED = request(cluster_size=3, cluster_mode="multi-node")
PLAN = plan(ASKED, "abb")
ROW = running_row(PLAN)
IMAGE = {"reference": PLAN.session.image, "present": True, "id": "1"}
STORED: Json = {
    "id": PLAN.session.id,
    "state": "RUNNING",
    "on_failure": "keep",
    "request": ASKED.to_json(),
}


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (placing, request_variables):
        monkeypatch.setattr(module, "load_extra_vars", lambda _loader: {})
    monkeypatch.setattr(launching, "verify", lambda *_arguments: None)
    monkeypatch.setattr(launching, "confirm", lambda *_arguments: {})


def playing(folder: Path, stored: Json | None = None, check: bool = False, **given: Any) -> Any:
    """Two hosts on which the session runs, and lacks what is stopped. This controller has requested it."""
    KeptRequests(str(folder)).keep(PLAN.session.id, ASKED, {})
    decided = [decision("running", PLAN), decision("repair", PLAN, missing=["sub1"])]
    script = {
        "sessions.request": {**STORED, **(stored or {})},
        "session.place": [one.to_json() for one in decided],
        "report.collect": lambda host, _args: {"agent": {"name": host, "reachable": True, "image": IMAGE}},
        "network": {},
        "containers": {"changed": True},
        "session.record": {"changed": True, "session": ROW},
    }
    own = {"session_artifacts": str(folder), "session_name": "train", "session_owner": "alice"}
    return conducted(
        script, "a", "b", check=check, **own, **{f"session_{name}": value for name, value in given.items()}
    )


def stopped(play: Any) -> dict[str, list[str]]:
    """The containers that each host was asked to stop."""
    return {
        host: [one["hostname"] for one in options["plan"]["containers"]]
        for host, step, options in play.asked
        if step == "containers.stopped"
    }


@pytest.mark.parametrize(
    ("names", "expected"),
    [([], {"a": ["main1"], "b": ["sub1", "sub2"]}), (["sub1"], {"b": ["sub1"]})],
)
def test_containers_are_stopped_and_then_repaired(
    tmp_path: Path, names: list[str], expected: dict[str, list[str]]
) -> None:
    play = playing(tmp_path, restart_containers=names)
    assert restart(play)["changed"]
    assert stopped(play) == expected
    steps = [step for _host, step, _options in play.asked]
    assert steps.index("containers.stopped") < steps.index("containers.started")
    assert changes_of(play)[0]["state"] == "running"
    assert {options["queued"] for options in options_of(play, "session.place")} == {PLAN.session.id}
    assert "Session train: RUNNING, sub1 brought back (cluster session, multi-node)" in play.lines


def test_check_mode_stops_nothing(tmp_path: Path) -> None:
    play = playing(tmp_path, check=True)
    restart(play)
    assert stopped(play) == {}
    assert play.lines[-1] == "Session train: main1, sub1, sub2 would be restarted"


def test_an_app_restarts_without_its_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apps: list[Any] = []
    monkeypatch.setattr(restarting, "restart_apps", lambda _play, _plan, names, seconds: apps.append((names, seconds)))
    play = playing(tmp_path, {"on_failure": "terminate"}, restart_app="board")
    restart(play)
    assert (apps, stopped(play)) == ([(["board"], 120)], {})


def test_check_mode_says_that_an_app_would_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restarting, "restart_apps", lambda *_arguments: None)
    play = playing(tmp_path, check=True, restart_app="board")
    restart(play)
    assert play.lines[-1] == "Session train: app board would be restarted"


@pytest.mark.parametrize(
    ("stored", "given", "message"),
    [
        ({"state": "PENDING"}, {}, "session_name: 'train': must be a running session, and is PENDING."),
        ({"on_failure": "terminate"}, {}, f"session_name: 'train': {restarting._ENDS}."),
        (
            {},
            {"restart_containers": ["sub7"]},
            "session_restart_containers: 'sub7': must be a container of the session: main1, sub1, sub2.",
        ),
    ],
)
def test_what_cannot_be_restarted_is_refused(tmp_path: Path, stored: Json, given: Json, message: str) -> None:
    play = playing(tmp_path, stored, **given)
    with pytest.raises(InputError, match=exactly(message)):
        restart(play)
    assert stopped(play) == {}


def test_a_session_that_this_controller_has_not_requested_is_left_alone(tmp_path: Path) -> None:
    play = playing(tmp_path)
    KeptRequests(str(tmp_path)).forget(PLAN.session.id)
    with pytest.raises(NotRequestedError, match=r"^Session train is left alone: this controller has not requested it"):
        restart(play)
    assert (stopped(play), options_of(play, "session.place")) == ({}, [])
