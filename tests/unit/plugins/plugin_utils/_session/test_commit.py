# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of steps that make an image of a container, and what other agents do to it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible import constants
from ansible.errors import AnsibleConnectionFailure
from conducted import conducted, options_of
from samples import plan, request, running_row

from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.session_json import SessionDocument
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError, InputError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.variable import COMMIT
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.conductor import StepError
from ansible_collections.cluster.compute.plugins.plugin_utils._session import commit as conductor
from ansible_collections.cluster.compute.plugins.plugin_utils._variables.request_variables import checked_settings

MADE = plan(request(cluster_size=2, cluster_mode="multi-node"), "bc")
DOCUMENT = SessionDocument.of_plan(MADE, running_row(MADE), [])
GIVEN = {"session_name": "train", "session_commit_image": "team/train:2"}


@pytest.fixture(autouse=True)
def controller(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(constants, "DEFAULT_LOCAL_TMP", str(tmp_path))
    monkeypatch.setattr(conductor, "Shell", lambda _folder, _name: SimpleNamespace(document=DOCUMENT))


class World:
    """Three agents, of which only the one with the container has the image; ``broken`` has answers for a step and an agent."""

    def __init__(self, *, broken: dict[tuple[str, str], Any] | None = None, check: bool = False, **given: Any) -> None:
        self.broken = broken or {}
        self.machines: dict[str, str] = {}
        script = {"image": self.answer, "store": self.answer}
        self.play = conducted(script, "a", "b", "c", check=check, **{**GIVEN, **given})

    def answer(self, host: str, params: Json) -> Any:
        verb = params["verb"]
        if (verb, host) in self.broken:
            return self.broken[verb, host]
        image = {"agent": host, "present": host == "b", "id": "sha256:new" * (host == "b"), "content": "", "reason": ""}
        machine = self.machines.get(host, "x86_64")
        image.update(digests=[], size=100, architecture="x86_64" * (host == "b"), host=machine, free=-1)
        return {
            "measure": {"size": 100, "message": "up to 100b"},
            "commit": {"changed": True, "image": image},
            "describe": {"image": image},
        }.get(verb, {})

    def commit(self) -> Json:
        settings = checked_settings(self.play.action, COMMIT)
        return conductor.commit_container(self.play, settings)

    def changes(self) -> list[tuple[str, str]]:
        changing = ("image.commit", "image.load", "image.export")
        return [(host, name) for host, name, _params in self.play.asked if name in changing]


def test_the_image_is_made_where_the_container_is_and_copied_to_the_others() -> None:
    world = World()
    assert world.commit() == {"changed": True, "image": "team/train:2", "id": "sha256:new"}
    assert world.changes() == [
        ("b", "image.commit"),
        ("b", "image.export"),
        ("a", "image.load"),
        ("c", "image.load"),
    ]
    assert [load["owner"] for load in options_of(world.play, "image.load")] == ["alice", "alice"]
    [asked] = options_of(world.play, "image.commit")
    wanted = {
        "session": MADE.session.id,
        "owner": "alice",
        "name": "train",
        "container": "main1",
        "image": "team/train:2",
    }
    assert asked == {"wanted": {**wanted, "squash": False}, "deadline": 3600}
    assert world.play.said.index("up to 100b") < world.play.said.index("Image team/train:2 is sha256:new on b")


def test_a_check_asks_and_changes_nothing() -> None:
    world = World(check=True)
    assert world.commit() == {"changed": True, "image": "team/train:2", "id": ""}
    assert "up to 100b" in world.play.said
    assert world.changes() == []


@pytest.mark.parametrize(
    ("step", "host"), [("check_commit", "a"), ("check_name", "c"), ("measure", "b")], ids=["policy", "name", "space"]
)
def test_nothing_is_changed_after_a_refusal(step: str, host: str) -> None:
    world = World(broken={(step, host): ComputeError("it is refused").failure.to_result()})
    with pytest.raises(StepError, match="it is refused"):
        world.commit()
    assert world.changes() == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"session_owner": "bob"}, "is not the owner of session train, who is alice"),
        ({"session_commit_container": "sub2"}, "has no such container"),
        ({"session_commit_image": "cluster-compute/lab:1.0"}, "must not begin with cluster-compute/"),
        ({"session_commit_image": "a@sha256:" + "0" * 64}, "must be a name with or without a tag"),
        ({"session_commit_image": ""}, "session_commit_image"),
        ({"session_name": ""}, "must be given"),
    ],
)
def test_bad_input_is_refused_before_any_host_is_asked(given: Json, message: str) -> None:
    world = World(**given)
    with pytest.raises(InputError, match=message):
        world.commit()
    assert world.play.asked == []


def test_the_container_of_another_agent() -> None:
    world = World(session_commit_container="sub1", session_commit_squash="yes")
    world.broken["commit", "c"] = {"changed": True, "image": {"agent": "c", "id": "sha256:c"}}
    assert world.commit()["id"] == "sha256:c"
    [asked] = options_of(world.play, "image.commit")
    assert (asked["wanted"]["container"], asked["wanted"]["squash"]) == ("sub1", True)


def test_an_agent_that_does_not_answer_gets_no_image() -> None:
    world = World(broken={("check_name", "c"): AnsibleConnectionFailure("no route")})
    world.commit()
    assert world.changes() == [("b", "image.commit"), ("b", "image.export"), ("a", "image.load")]
    [warning] = world.play.warnings
    assert warning == "c cannot be reached; a former image of this name stays there until a launch replaces it."


def test_a_copy_that_fails_leaves_the_image() -> None:
    world = World(broken={("load", "a"): ComputeError("its disk is full").failure.to_result()})
    assert world.commit()["id"] == "sha256:new"
    [warning] = world.play.warnings
    assert warning.startswith("Image team/train:2 is on b, and not on all other agents: ")
    assert "its disk is full" in warning


def test_an_image_of_a_container_stays_on_agents_of_its_architecture() -> None:
    world = World()
    world.machines["a"] = "aarch64"
    world.commit()
    assert [host for host, name in world.changes() if name == "image.load"] == ["c"]
    assert world.play.warnings == []
