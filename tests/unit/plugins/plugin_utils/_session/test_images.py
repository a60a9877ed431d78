# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who pulls an image and who gets a copy, by what the hosts of a play answer."""

from __future__ import annotations

from typing import Any

import pytest
from ansible import constants
from conducted import conducted, options_of
from samples import decision, plan, request

from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.image import AgentImage
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import AgentReport
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError, InputError
from ansible_collections.cluster.compute.plugins.plugin_utils._session import images
from ansible_collections.cluster.compute.plugins.plugin_utils._session.images import (
    ImageTarget,
    check_exist,
    distribute,
)
from ansible_collections.cluster.compute.plugins.plugin_utils._session.launch_spec import Launch, LaunchSpec

NAME = "train:2"


def described(agent: str, identity: str = "", reason: str = "", host: str = "x86_64") -> AgentImage:
    architecture, size = (host, 100) if identity else ("", 0)
    present = bool(identity)
    return AgentImage(
        agent, present=present, id=identity, size=size, architecture=architecture, host=host, reason=reason
    )


def image(agent: str, identity: str = "", reason: str = "", host: str = "x86_64") -> Json:
    return described(agent, identity, reason, host).to_json()


@pytest.fixture(autouse=True)
def temporary(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(constants, "DEFAULT_LOCAL_TMP", str(tmp_path))
    monkeypatch.setattr(images, "_controller_image", lambda *_arguments: {})


def play(ids: Json, pulled: Json | None = None, check: bool = False) -> Any:
    """Hosts with these images; ``pulled`` are their images after a pull."""

    def has(host: str, _args: Json) -> Json:
        return {"image": image(host, ids[host])} if isinstance(ids[host], str) else dict(ids[host])

    script = {
        "image.describe": has,
        "image.pull": lambda host, _args: {"image": (pulled or {})[host]},
        "image.export": {"changed": False},
        "image.load": {"changed": True},
    }
    return conducted(script, *ids, check=check, inventory={"c": {}, "localhost": {}})


def done(play: Any, **more: Any) -> list[tuple[str, str]]:
    """The hosts and the modules that change something."""
    distribute(play, ImageTarget(NAME, needing=["a", "b"], asked=play.names, variable="session_image", **more))
    return [(host, name) for host, name, _options in play.asked if name != "image.describe"]


def test_the_agents_without_the_first_agents_image_pull_it() -> None:
    run = play({"a": "1", "b": "", "c": "2"}, {"b": image("b", "1")})
    assert done(run) == [("b", "image.pull")]
    assert options_of(run, "image.pull")[0]["image_id"] == "1"
    assert run.lines[0].startswith("Image train:2: pulled on b in ")


def test_an_agent_that_could_not_pull_gets_a_copy() -> None:
    run = play({"a": "1", "b": ""}, {"b": image("b", reason="no such host")})
    assert done(run) == [("b", "image.pull"), ("a", "image.export"), ("b", "image.load")]
    [export], [load] = options_of(run, "image.export"), options_of(run, "image.load")
    assert (export["image_id"], export["size"], load["image_id"]) == ("1", 100, "1")
    assert run.lines == ["Image train:2: copied from a to b (100b)"]


def test_the_archive_of_a_copy_is_removed_from_the_controller(tmp_path: Any) -> None:
    done(play({"a": "1", "b": ""}, {"b": image("b", reason="no such host")}))
    assert list(tmp_path.glob(images.PREFIX + "*")) == []


def test_check_mode_copies_nothing() -> None:
    run = play({"a": "1", "b": ""}, {"b": image("b", reason="no such host")}, check=True)
    assert done(run) == [("b", "image.pull")]
    assert run.lines == ["Image train:2: copied from a to b (100b)"]


@pytest.mark.parametrize(
    ("others", "controller", "source"),
    [
        ([described("c", "3")], described("localhost", "4"), "c"),
        ([], described("localhost", "4"), "localhost"),
    ],
)
def test_the_controllers_engine_is_the_last_source(
    others: list[AgentImage], controller: AgentImage, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "_controller_image", lambda *_arguments: {"localhost": controller})
    assert done(play({"a": "", "b": ""}), pull="never", elsewhere=others)[0] == (source, "image.export")


def test_an_image_that_no_engine_has_is_refused_by_the_variable_that_names_it() -> None:
    with pytest.raises(InputError, match=r"^session_image: 'train:2': "):
        done(play({"a": "", "b": ""}), pull="never")


def test_an_agent_that_cannot_say_what_it_has_is_named() -> None:
    with pytest.raises(ComputeError, match="The engine does not answer"):
        done(play({"a": "1", "b": {"failed": True, "msg": "b: The engine does not answer."}}))


def test_agents_of_two_architectures_get_an_image_of_their_own_each() -> None:
    """As when the reference image is given to all agents, or a session of roles has two images."""
    own, lacking = image("c", "2", host="aarch64"), image("b", host="aarch64")
    run = play({"a": {"image": image("a", "1")}, "b": {"image": lacking}, "c": {"image": own}, "d": ""})
    distribute(run, ImageTarget(NAME, needing=["a", "b", "d"], asked=run.names, pull="never"))
    loads = [(host, params["image_id"]) for host, name, params in run.asked if name == "image.load"]
    assert loads == [("d", "1"), ("b", "2")]
    assert run.lines == ["Image train:2: copied from a to d (100b)", "Image train:2: copied from c to b (100b)"]


@pytest.mark.parametrize(
    ("held", "refusing", "pull", "message"),
    [
        ("", "ab", "missing", "no agent has it, and the pull failed (no such image)"),
        ("", "", "never", "no agent has it, and session_pull is never"),
        ("", "a", "missing", ""),
        ("1", "ab", "missing", ""),
    ],
)
def test_an_image_of_a_role_that_exists_nowhere_is_refused_before_another_is_pulled(
    held: str, refusing: str, pull: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "_controller_image", lambda *_arguments: {"localhost": described("localhost")})

    def has(host: str, args: Json) -> Json:
        return {"image": image(host, held if args["name"] == "own:1" else "1")}

    def asked(host: str, _args: Json) -> Json:
        return {"image": image(host, reason="no such image." if host in refusing else "")}

    run = conducted({"image.describe": has, "image.ask": asked}, "a", "b", inventory={"localhost": {}})
    both = [ImageTarget(name, needing=["a", "b"], asked=["a", "b"], pull=pull) for name in (NAME, "own:1")]
    if message:
        with pytest.raises(InputError) as raised:
            check_exist(run, both)
        assert message in raised.value.message
        assert "own:1" in raised.value.message
    else:
        check_exist(run, both)
    assert {name for _host, name, _options in run.asked} <= {"image.describe", "image.ask"}


@pytest.mark.parametrize(
    ("pull", "outcome", "effective"),
    [("always", "placed", "always"), ("always", "repair", "missing"), ("never", "repair", "never")],
)
def test_a_repair_never_fetches_a_newer_image(pull: str, outcome: str, effective: str) -> None:
    asked = request(pull=pull)
    placed = Launch(LaunchSpec(asked), decision(outcome), agents=[AgentReport("a"), AgentReport("b", reachable=False)])
    [wanted] = ImageTarget.of_session(play({"a": ""}), placed, plan(asked, "a"))
    assert (wanted.pull, wanted.asked, wanted.rivals) == (effective, ["a"], ["a"])
