# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A change of the size on a scripted play: every step in order, and back to the former size after a failure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conducted import changes_of, conducted, options_of, reports_of
from samples import decision, plan, request

from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Plan
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import (
    ComputeError,
    InputError,
    SessionError,
    StateError,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request import PRIVATE_FIELDS
from ansible_collections.cluster.compute.plugins.plugin_utils._client.request_cache import (
    KeptRequests,
    NotRequestedError,
)
from ansible_collections.cluster.compute.plugins.plugin_utils._client.session_dir import Artifacts
from ansible_collections.cluster.compute.plugins.plugin_utils._session import launch as launching
from ansible_collections.cluster.compute.plugins.plugin_utils._session import place as placing
from ansible_collections.cluster.compute.plugins.plugin_utils._session.launch import launch
from ansible_collections.cluster.compute.plugins.plugin_utils._session.launch_spec import LaunchSpec
from ansible_collections.cluster.compute.plugins.plugin_utils._session.resize import asked_again
from ansible_collections.cluster.compute.plugins.plugin_utils._settings.settings import Settings

ASKED = request(cluster_size=3, cluster_mode="multi-node")
# What another login may read of it.
PUBLIC = {name: value for name, value in ASKED.to_json().items() if name not in PRIVATE_FIELDS}
PLAN = plan(ASKED, "aab")
ROW = {"id": PLAN.session.id, "name": "train", "owner": "alice", "state": "RUNNING", "reason": "why", "created": 1.0}
ROW.update(changed=2.0, launch=PLAN.session.launch)
IMAGE = {"reference": PLAN.session.image, "present": True, "id": "1"}
AGENTS: list[Json] = [{"name": name, "reachable": True, "image": IMAGE} for name in "abc"]
SETTINGS = Settings()
IDS = [container.id for container in PLAN.containers]


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placing, "load_extra_vars", lambda _loader: {})
    monkeypatch.setattr(launching, "verify", lambda *_arguments: None)
    monkeypatch.setattr(launching, "confirm", lambda *_arguments: {})


def playing(folder: Path, made: Plan = PLAN, script: Json | None = None, **decided: Any) -> Any:
    """Hosts on which a session changes its size."""
    Artifacts(str(folder), "train").identity(PLAN.session.id, create=True)
    usual = {
        "session.place": decision("repair", made, ROW, changed=True, **decided).to_json(),
        "containers": {"changed": True},
        "session.record": {"changed": False, "session": ROW},
    }
    return conducted({**usual, **(script or {})}, "a", "b", "c", session_artifacts=str(folder))


def steps(play: Any) -> list[tuple[str, str]]:
    return [(host, name) for host, name, _args in play.asked]


def test_a_growth_updates_what_runs_after_the_new_containers_have_started(tmp_path: Path) -> None:
    play = playing(tmp_path, former_size=2, added=["sub2"])
    assert launch(play, LaunchSpec(ASKED, SETTINGS), reports_of(AGENTS)).changed
    # Only b gets a container.
    made = [("b", "containers.created"), ("b", "containers.started")]
    each = [(host, "containers.followed") for host in "ab"]
    assert steps(play) == [("a", "session.place"), *made, *each, ("a", "session.record")]
    assert play.lines[0] == "Session train: RUNNING, sub2 added (cluster session, multi-node)"
    assert any(line.startswith("Programs that run keep their environment") for line in play.lines)
    assert len(Artifacts(str(tmp_path), "train").read("ssh_config") or b"") > 0


def test_containers_that_leave_go_first_and_on_their_own_agents(tmp_path: Path) -> None:
    play = playing(tmp_path, former_size=5, removed=[["sub4", "c"], ["sub3", "b"], ["sub5", "elsewhere"]])
    launch(play, LaunchSpec(ASKED, SETTINGS), reports_of(AGENTS))
    assert steps(play) == [
        ("a", "session.place"),
        *[(host, "containers.absent") for host in "bc"],
        *[(host, "containers.followed") for host in "ab"],
        ("a", "session.record"),
    ]
    assert b"sub2" in (Artifacts(str(tmp_path), "train").read("ssh_config") or b"")
    assert options_of(play, "containers.absent")[0] == {"sessions": [PLAN.session.id], "keep": IDS}
    assert play.lines[0].startswith("Session train: RUNNING, sub3, sub4, sub5 removed")


def test_a_former_container_of_an_added_one_goes_although_it_has_the_same_id(tmp_path: Path) -> None:
    play = playing(tmp_path, former_size=2, added=["sub2"], removed=[["sub2", "c"], ["sub2", "b"]])
    launch(play, LaunchSpec(ASKED, SETTINGS), reports_of(AGENTS))
    assert steps(play)[1:3] == [("b", "containers.absent"), ("c", "containers.absent")]
    assert [one["keep"] for one in options_of(play, "containers.absent")] == [IDS[:2], IDS[:2]]


def test_a_decision_without_its_form_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    play = playing(tmp_path, added=["../sub2"])
    with pytest.raises(ComputeError, match=r"^The decision of a is refused: it has '\.\./sub2' in added\.0\."):
        launch(play, LaunchSpec(ASKED, SETTINGS), reports_of(AGENTS))
    assert steps(play) == [("a", "session.place")]


def test_a_growth_that_fails_is_undone(tmp_path: Path) -> None:
    def containers(host: str, args: Json) -> Json:
        failure = {"failed": True, "msg": "sub2: on b it does not start."}
        return failure if (host, args["verb"]) == ("b", "started") else {"changed": True}

    play = playing(tmp_path, script={"containers": containers}, former_size=2, added=["sub2"])
    with pytest.raises(SessionError, match=r"^Session train was not changed: why$"):
        launch(play, LaunchSpec(ASKED, SETTINGS), reports_of(AGENTS))
    undone = steps(play)[-6:]
    assert undone == [
        *[(host, "containers.absent") for host in "abab"],
        ("a", "containers.followed"),
        ("a", "session.record"),
    ]
    launched, _, kept, _ = options_of(play, "containers.absent")
    assert launched == {"sessions": [PLAN.session.id], "launch": PLAN.session.launch}
    assert kept == {"sessions": [PLAN.session.id], "keep": IDS[:2]}
    [followed] = options_of(play, "containers.followed")
    former = Plan.from_json(followed["plan"])
    assert [name for name, _address in former.peers] == ["main1", "sub1"]
    assert {one.environment["BACKENDAI_CLUSTER_SIZE"] for one in former.containers} == {"2"}


def test_a_controller_without_the_keys_changes_nothing(tmp_path: Path) -> None:
    play = playing(tmp_path, former_size=2, added=["sub2"])
    Artifacts(str(tmp_path), "train").remove(PLAN.session.id)
    with pytest.raises(SessionError, match=r"^Session train was not changed: "):
        launch(play, LaunchSpec(ASKED, SETTINGS), reports_of(AGENTS))
    assert not options_of(play, "containers.created")
    [recorded] = changes_of(play)
    assert "does not have the keys of session train" in recorded["reason"]


def test_scale_takes_all_settings_but_the_size_from_the_head(tmp_path: Path) -> None:
    known = {"id": PLAN.session.id, "state": "RUNNING", "on_failure": "keep", "request": ASKED.to_json()}
    play = playing(tmp_path, script={"sessions.request": known})
    with pytest.raises(NotRequestedError, match=r"^Session train is left alone: this controller has not requested it"):
        asked_again(play, "train", 7)
    KeptRequests(str(tmp_path)).keep(PLAN.session.id, ASKED, {})
    found, session = asked_again(play, "train", 7)
    assert (found.size, found.image, session) == (7, ASKED.image, PLAN.session.id)


def test_scale_does_not_know_which_role(tmp_path: Path) -> None:
    asked = request(roles=[{"name": "worker"}])
    known = {"id": PLAN.session.id, "state": "RUNNING", "on_failure": "keep", "request": asked.to_json()}
    KeptRequests(str(tmp_path)).keep(PLAN.session.id, asked, {})
    with pytest.raises(StateError, match="train has roles: set the size of a role in its session file"):
        asked_again(playing(tmp_path, script={"sessions.request": known}), "train", 7)


def test_a_growth_of_a_role_that_fails_is_undone(tmp_path: Path) -> None:
    """The role in the middle: its last container goes, and the others have their own ranks again."""
    asked = request(cluster_mode="multi-node", roles=[{"name": "ps", "size": 2}, {"name": "worker", "size": 2}])
    made = plan(asked, "aabab")
    failed = {"containers": lambda _host, args: {"failed": args["verb"] == "started", "msg": "no", "changed": True}}
    play = playing(tmp_path, made, failed, former_size=4, added=["ps2"])
    with pytest.raises(SessionError, match="was not changed"):
        launch(play, LaunchSpec(asked, SETTINGS), reports_of(AGENTS))
    ids = [one.id for one in made.containers if one.hostname != "ps2"]
    assert options_of(play, "containers.absent")[-1] == {"sessions": [PLAN.session.id], "keep": ids}
    former = Plan.from_json(options_of(play, "containers.followed")[0]["plan"])
    assert former.peers == tuple((one.hostname, one.address) for one in made.containers if one.hostname != "ps2")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"state": "PENDING"}, "must be a running session, and is PENDING"),
        ({"request": None}, "must be a session of .* that runs or that the head still keeps"),
        (
            {"request": PUBLIC},
            "must be a session of .*: only its owner can read environment, secrets, command, bootstrap",
        ),
    ],
)
def test_scale_needs_a_running_session_that_this_login_may_read(tmp_path: Path, changes: Json, message: str) -> None:
    known = {"id": PLAN.session.id, "state": "RUNNING", "on_failure": "keep", "request": ASKED.to_json(), **changes}
    with pytest.raises(InputError, match=message):
        asked_again(playing(tmp_path, script={"sessions.request": known}), "train", 7)
