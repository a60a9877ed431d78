# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agents that pull, the image that is used, and the agents that get a copy."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.client import UnreachableError
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.images import WantedPull, pull_image
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.image import AgentImage
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError
from ansible_collections.cluster.compute.plugins.plugin_utils._session.image_distribution import (
    Copies,
    Pulls,
    by_agent,
    by_architecture,
    check_copies,
    distribution_message,
    plan_copies,
    plan_pulls,
    plan_reference_image,
)

MIB = 1 << 20


def image(agent: str, identity: str = "", **changes: Any) -> AgentImage:
    found = AgentImage(
        agent=agent,
        present=bool(identity),
        id=identity,
        content=identity and "content-" + identity,
        digests=(f"a@sha256:{identity}",) if identity else (),
        size=100 * MIB if identity else 0,
        architecture="x86_64" if identity else "",
        host="x86_64",
        free=10 << 30,
    )
    return replace(found, **changes)


def images(**ids: str) -> dict[str, AgentImage]:
    return by_agent([image(agent, identity) for agent, identity in ids.items()])


OLD = image("a", "old", made="2026-03-01T00:00:00+00:00", owner="alice", digests=())
NEW = image("b", "new", made="2026-03-02T00:00:00+00:00", owner="alice", digests=())


@pytest.mark.parametrize(
    ("has", "pull", "pullers", "wanted"),
    [
        ({"a": "", "b": ""}, "missing", ["a", "b"], ""),
        ({"a": "1", "b": ""}, "missing", ["b"], "1"),
        ({"a": "", "b": "1"}, "missing", ["a"], "1"),
        ({"a": "1", "b": "2"}, "missing", ["b"], "1"),
        ({"a": "1", "b": "1"}, "missing", [], "1"),
        ({"a": "1", "b": "1"}, "always", ["a", "b"], ""),
        ({"a": "1", "b": ""}, "never", [], "1"),
        ({"a": "", "b": ""}, "never", [], ""),
    ],
)
def test_who_pulls(has: dict[str, str], pull: str, pullers: list[str], wanted: str) -> None:
    plan = plan_pulls(["a", "b"], images(**has, c="3"), pull)
    assert (plan.agents, plan.id) == (tuple(pullers), wanted)


@pytest.mark.parametrize(
    ("has", "source", "copies"),
    [
        ({"a": "1", "b": "1", "c": "2"}, "a", ()),
        ({"a": "1", "b": "2"}, "a", ("b",)),
        ({"a": "", "b": "2"}, "b", ("a",)),
        ({"a": "", "b": "", "c": "3"}, "c", ("a", "b")),
        ({"a": "", "b": ""}, "", ("a", "b")),
    ],
)
def test_whose_image_counts(has: dict[str, str], source: str, copies: tuple[str, ...]) -> None:
    plan = plan_copies(["a", "b"], images(**has))
    assert (plan.source, plan.copies) == (source, copies)


def test_the_newest_image_of_a_container_counts_wherever_it_is() -> None:
    """An agent that was lost during a commit keeps the former image of the name."""
    for needing in (["a"], ["a", "b"], ["b", "a"]):
        plan = plan_copies(needing, {"a": OLD, "b": NEW}, rivals="ab")
        assert (plan.source, plan.id, plan.copies) == ("b", "new", ("a",))
        assert plan_pulls(needing, {"a": OLD, "b": NEW}, "missing", rivals="ab").id == "new"
    other = image("a", "other")
    assert plan_copies(["a"], {"a": other, "b": NEW}, rivals="ab") == plan_copies(["a"], {"a": other})


@pytest.mark.parametrize(
    ("rivals", "changes"),
    [
        ("a", {}),
        ("ab", {"owner": "bob"}),
        ("ab", {"owner": ""}),
        ("ab", {"made": "9"}),
        ("ab", {"present": False}),
    ],
    ids=["another group", "another owner", "no owner", "no time", "no image"],
)
def test_an_agent_decides_for_no_others_by_what_it_calls_newer(rivals: str, changes: dict[str, Any]) -> None:
    known = {"a": OLD, "b": replace(NEW, **changes)}
    assert plan_copies(["a"], known, rivals=rivals).source == "a"
    assert plan_pulls(["a"], known, "missing", rivals=rivals).id == "old"


@pytest.mark.parametrize(("digests", "pullers"), [((), ()), (("x@sha256:new",), ("a",)), (("x@new",), ())])
def test_an_image_of_a_container_that_no_registry_has_is_copied(
    digests: tuple[str, ...], pullers: tuple[str, ...]
) -> None:
    """A registry can have another image of that name. An engine with containerd's store calls an image's own ID its digest."""
    known = {"a": OLD, "b": replace(NEW, digests=digests)}
    assert plan_pulls(["a"], known, "missing", rivals="ab").agents == pullers
    assert plan_copies(["a"], known, rivals="ab").copies == ("a",)


ARM = {"architecture": "aarch64", "host": "aarch64"}


def test_an_image_comes_from_an_agent_of_the_same_architecture() -> None:
    """Each architecture has an image of its own under the same name."""
    known = {"a": image("a", "1"), "b": image("b", host="aarch64"), "c": image("c", "2", **ARM)}
    assert by_architecture("ab", known) == [["a"], ["b"]]
    plan = plan_copies(["b"], known)
    assert (plan.source, plan.id, plan.copies) == ("c", "2", ("b",))
    check_copies("x:1", "b", plan, known, "session_image")
    # An x86 agent may hold it, too.
    known["c"] = replace(known["c"], host="x86_64")
    assert plan_copies(["b"], known).source == "c"


def test_a_newer_image_of_a_container_counts_for_its_own_architecture_only() -> None:
    known = {"a": OLD, "b": replace(NEW, **ARM)}
    assert plan_copies(["a"], known, rivals="ab").source == "a"
    assert plan_pulls(["a"], known, "missing", rivals="ab").id == "old"


def test_the_same_image_on_engines_that_number_them_differently() -> None:
    assert image("a", "1").is_same("2", "content-1")
    assert not image("a", "1", content="").is_same("2", "")
    assert not image("a").is_same("", "")


REFUSED: dict[str, tuple[dict[str, AgentImage], str]] = {
    "no agent has it": (
        {"a": image("a", reason="no such host."), "b": image("b")},
        "session_image: 'x:1': no agent has it, and the pull failed (no such host); build it on an agent, "
        "correct its name, or set session_registry, session_registry_username and session_registry_password.",
    ),
    "another architecture, by its own pull": (
        {"a": image("a", "1", host="aarch64"), "b": image("b", "1", host="aarch64")},
        "session_image: 'x:1': is built for x86_64, but a is aarch64; choose an image for that architecture, or other agents.",
    ),
    "another architecture, and no pull": (
        {"a": image("a", "1"), "b": image("b", host="aarch64", reason="no such host.")},
        "session_image: 'x:1': is built for x86_64, but b is aarch64, and its pull failed (no such host); choose an image for that "
        "architecture, or other agents.",
    ),
    "another architecture": (
        {"a": image("a", "1"), "b": image("b", host="aarch64")},
        "session_image: 'x:1': is built for x86_64, but b is aarch64; choose an image for that architecture, or other agents.",
    ),
    "no room": (
        {"a": image("a", "1"), "b": image("b", free=150 * MIB)},
        "b has 150m free, but copying image x:1 temporarily needs 200m; free some space there.",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_copied(case: str) -> None:
    found, sentence = REFUSED[case]
    with pytest.raises(ComputeError, match="^%s$" % re.escape(sentence)):
        check_copies("x:1", "ab", plan_copies(["a", "b"], found), found, "session_image")


def test_the_misspelled_name_of_an_environment_is_named() -> None:
    found = {"a": image("a", reason="no such host.")}
    with pytest.raises(
        ComputeError, match=r"the pull failed \(no such host\); did you mean the environment pytorch\?; build it on"
    ):
        check_copies("pytorhc", "a", plan_copies(["a"], found), found, "session_image")


def test_one_line() -> None:
    plan = Copies("a", "1", "", 100 * MIB, ("b", "c"))
    assert (
        distribution_message("x:1", ["a"], plan, 4.21)
        == "Image x:1: pulled on a in 4.2 s, copied from a to b, c (100m)"
    )
    assert distribution_message("x:1", [], Copies("a", "1"), 1) == ""


ASKED = "registry.example.org/team/train@sha256:" + "a" * 64


@pytest.mark.parametrize("pull", ["missing", "always", "never"])
def test_no_agent_replaces_an_image_by_digest(pull: str) -> None:
    """The first agent has another image than it says."""
    found = images(lost="evil", good="right", new="")
    plan = plan_pulls(["lost", "good", "new"], found, pull, ASKED)
    pullers = {"missing": ("new",), "always": ("lost", "good", "new"), "never": ()}
    assert plan == Pulls(pullers[pull])
    assert plan_copies(["lost", "good", "new"], found, ASKED).copies == ("new",)


class Puller:
    """An engine that notes what it pulls."""

    agent = "good"

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def hasty(self, _seconds: int) -> Puller:
        return self

    def ask_registry(self, reference: str, _login: object) -> None:
        self.resolved = reference

    def pull(self, repository: str, tag: str, *_more: object) -> None:
        self.asked.append((repository, tag))


class Silent(Puller):
    """An engine whose registry does not answer."""

    def ask_registry(self, reference: str, _login: object) -> None:
        raise UnreachableError(f"no answer about {reference}", self.agent)


def test_an_image_by_digest_is_pulled_by_exactly_that_digest() -> None:
    engine: Any = Puller()
    assert pull_image(engine, WantedPull(ASKED, digests=[ASKED.replace("a" * 64, "e" * 64)]), 1e12) == ""
    assert engine.asked == [("registry.example.org/team/train", "sha256:" + "a" * 64)]
    assert engine.resolved == ASKED


@pytest.mark.parametrize("name", [ASKED, ASKED.partition("@")[0] + ":1"])
def test_a_registry_that_does_not_answer_is_given_up_before_the_pull(name: str) -> None:
    """Also for the digest of another agent's image."""
    engine: Any = Silent()
    asked = WantedPull(name, digests=[ASKED])
    assert "registry.example.org does not answer within 10 s" in pull_image(engine, asked, 1e12)
    assert engine.asked == []


def answer(agent: str, present: bool = False, host: str = "x86_64") -> AgentImage:
    return AgentImage(agent, present=present, host=host)


@pytest.mark.parametrize(
    ("images", "builders", "sources", "takers"),
    [
        ([], "", "", ""),
        ([answer("a1"), answer("a2"), answer("a3")], "a2", "a2", "a1 a3"),
        ([answer("a1"), answer("a3")], "a1 a3", "", ""),
        # What another agent says that it has is given to none.
        ([answer("a1"), answer("a2"), answer("a3", present=True)], "a2", "a2", "a1"),
        ([answer("a1", present=True), answer("a2", present=True), answer("a3")], "", "a2", "a3"),
        ([answer("a1"), answer("a2"), answer("a3", host="aarch64")], "a2 a3", "a2", "a1"),
        (
            [answer("a1", host="aarch64"), answer("a2", host="aarch64"), answer("a3", True), answer("a4")],
            "a2 a4",
            "a2",
            "a1",
        ),
        ([answer("a1"), answer("elsewhere", present=True)], "a1", "", ""),
        ([answer("a2"), answer("elsewhere")], "a2", "a2", ""),
    ],
    ids=str,
)
def test_only_the_head_gives_its_image_to_others(images: Any, builders: str, sources: str, takers: str) -> None:
    """PID 1 of the containers of all owners is in it."""
    plan = plan_reference_image(images, "a2", ["a1", "a2", "a3", "a4"])
    found = [plan.builders, tuple(image.agent for image in plan.sources), plan.takers]
    assert found == [tuple(builders.split()), tuple(sources.split()), tuple(takers.split())]


@pytest.mark.parametrize("has_image", [True, False])
def test_a_head_that_is_not_in_the_play_builds_nothing(has_image: bool) -> None:
    plan = plan_reference_image([answer("a1"), answer("a3"), answer("head", has_image)], "head", ["a1", "a3"])
    assert (plan.builders, plan.takers) == (((), ("a1", "a3")) if has_image else (("a1", "a3"), ()))
