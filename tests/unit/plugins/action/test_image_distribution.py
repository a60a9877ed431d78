# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of ``image_distribution`` that decide, from the registered results of the hosts of a play."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.action import image_distribution
from ansible_collections.cluster.compute.plugins.module_utils._core.documents import Json
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import ComputeError, InputError, StateError

NAME = "train:2"


def image(agent: str, identity: str = "", reason: str = "") -> Json:
    return {
        "agent": agent,
        "present": bool(identity),
        "id": identity,
        "content": "",
        "digests": [],
        "size": 100 if identity else 0,
        "architecture": "x86_64" if identity else "",
        "host": "x86_64",
        "free": -1,
        "reason": reason,
    }


def act(step: str, info: Json, pulled: Json | None = None, controller: Json | None = None, **options: Any) -> Json:
    """The result of a step for hosts that have registered these results."""
    task = SimpleNamespace(check_mode=False, diff=False, args={}, async_val=0, delegate_to=None)
    action = image_distribution.ActionModule(task, None, None, None, None, None)
    action._controller_image = lambda *_arguments: {"localhost": controller} if controller else {}
    skipped = {"changed": False, "skipped": True}
    hosts = {
        name: {"__image_info": result, "__image_pulled": (pulled or {}).get(name, skipped)}
        for name, result in info.items()
    }
    given = {"step": step, "name": NAME, "agents": ["a", "b"], "asked": list(info), **options}
    result: Json = action.act(given, {"hostvars": hosts, "ansible_play_hosts_all": list(hosts)})
    return result


def asked(**ids: str) -> Json:
    return {name: {"changed": False, "image": image(name, identity)} for name, identity in ids.items()}


def test_the_agents_without_the_first_agents_image_pull_it() -> None:
    result = act("plan_pulls", asked(a="1", b="", c="2"))
    assert (result["agents"], result["id"], result["changed"]) == (["b"], "1", False)
    assert result["begun"] > 0


def test_an_agent_that_could_not_pull_gets_a_copy() -> None:
    failed = {"b": {"image": image("b", reason="no such host")}}
    result = act("plan_copies", asked(a="1", b=""), failed, pulls={"agents": ["b"], "begun": 0})
    assert (result["source"], result["agents"], result["id"], result["size"]) == ("a", ["b"], "1", 100)
    assert result["message"] == "Image train:2: copied from a to b (100b)"


def test_an_agent_that_has_pulled_needs_no_copy() -> None:
    pulled = {"b": {"image": image("b", "1")}}
    result = act("plan_copies", asked(a="1", b=""), pulled, pulls={"agents": ["b"], "begun": 0})
    assert (result["agents"], result["message"].startswith("Image train:2: pulled on b in ")) == ([], True)


@pytest.mark.parametrize(
    ("others", "controller", "source"),
    [
        ([image("c", "3")], image("localhost", "4"), "c"),
        ([], image("localhost", "4"), "localhost"),
    ],
)
def test_the_controllers_engine_is_the_last_source(others: list[Json], controller: Json, source: str) -> None:
    options: Json = {"pulls": {"agents": [], "begun": 0}, "other_images": others}
    result = act("plan_copies", asked(a="", b=""), None, controller, **options)
    assert (result["source"], result["agents"]) == (source, ["a", "b"])


def test_an_image_that_no_engine_has_is_refused_by_the_variable_that_names_it() -> None:
    with pytest.raises(InputError, match=r"^session_image: 'train:2': "):
        act("plan_copies", asked(a="", b=""), pulls={"agents": [], "begun": 0})


def test_an_agent_without_a_result_is_named() -> None:
    info = {**asked(a="1"), "b": {"failed": True, "msg": "The engine does not answer."}}
    with pytest.raises(StateError, match=r"^Agent b has not reported its image: The engine does not answer; "):
        act("plan_pulls", info)


def test_a_missing_option_is_refused() -> None:
    with pytest.raises(ComputeError, match="pulls"):
        act("plan_copies", asked(a="", b=""))


def test_only_a_folder_of_this_plugin_is_removed(tmp_path: Path) -> None:
    for name, is_kept in (("image-1", False), ("other", True)):
        archive = tmp_path / name / "image.tar"
        archive.parent.mkdir()
        archive.touch()
        act("clean_up", {}, path=str(archive))
        assert archive.exists() is is_kept
