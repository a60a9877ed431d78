# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The volumes that are removed with ended sessions, if several sessions may mount the same volume; a removal that never succeeds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from samples import plan, request

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.client import Engine
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.removal import (
    Removal,
    mounted,
    remove_containers,
    sort_volumes,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared import label
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.step_documents import Action
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ConflictError
from ansible_collections.cluster.compute.plugins.module_utils._shared.waiting import deadline_in

# Sessions a and b mount `shared`, which a was the first to mount.
OWN, SHARED = ("own", "a"), ("shared", "a")
CASES = [
    ("a ends first", ["a"], {"shared"}, {"b"}, ["own"], ["shared"]),
    ("and b after it", ["b"], set(), set(), ["own", "shared"], []),
    ("both at once", ["a", "b"], set(), set(), ["own", "shared"], []),
    ("b ends first", ["b"], {"own", "shared"}, {"a"}, [], []),
    ("b ends while a's containers are gone, to be brought back", ["b"], set(), {"a"}, [], []),
    ("a stranger mounts it", ["a"], {"shared"}, set(), ["own"], ["shared"]),
]


def volume(name: str, session: str) -> dict[str, Any]:
    return {"Name": name, "Labels": {label.SESSION: session}}


@pytest.mark.parametrize(("case", "sessions", "used", "alive", "go", "left"), CASES, ids=[case[0] for case in CASES])
def test_volumes_go_with_the_last_session(
    case: str, sessions: list[str], used: set[str], alive: set[str], go: list[str], left: list[str]
) -> None:
    assert sort_volumes([volume(*OWN), volume(*SHARED)], sessions, used, alive) == (go, left)


def test_what_is_mounted() -> None:
    containers: list[dict[str, Any]] = [
        {"State": "exited", "Mounts": [{"Type": "volume", "Name": "one"}, {"Type": "bind", "Source": "/data"}]},
        {"State": "removing", "Mounts": [{"Type": "volume", "Name": "two"}]},
        {"State": "running", "Mounts": None},
    ]
    assert mounted(containers) == {"one"}


class Removing(Engine):
    """An engine that is removing its containers, at the request of another command, forever."""

    def __init__(self) -> None:
        self.asked, self._timeout = 0, 1

    def _asking(self, what: str, subject: str = "") -> Any:
        self.asked += 1
        raise ConflictError(f"{subject}: the engine could not {what}: its removal is already in progress.")


def test_a_removal_that_never_succeeds_ends_at_the_deadline_of_its_caller() -> None:
    engine = Removing()
    with pytest.raises(ConflictError, match=r"main1: .* already in progress"):
        remove_containers(engine, [{"Id": "e", "Names": ["/main1"]}], deadline_in(0))
    assert engine.asked == 1


class Listing(Engine):
    """An engine with one container, whose list does not have its hostname."""

    def __init__(self, listed: dict[str, Any], hostname: str) -> None:
        self.listed, self.hostname, self.removed, self._unbounded = listed, hostname, [], set()
        self.agent, self._timeout = "a", 1

    @contextmanager
    def _asking(self, what: str, subject: str = "") -> Iterator[Any]:
        client = SimpleNamespace(
            containers=lambda **_options: [] if self.removed else [self.listed],
            inspect_container=lambda _identity: {"Config": {"Hostname": self.hostname}},
            remove_container=lambda identity, **_options: self.removed.append(identity),
            volumes=lambda **_options: {},
        )
        yield client


RENAMED = [
    ("renamed", "main1", {}, True),
    ("on the network of the agent", "main1", {"NetworkMode": "host"}, True),
    ("of an image of the session", "c0ffee", {}, False),
    ("of an image of the session, elsewhere", "main1", {"NetworkMode": "bridge"}, False),
    ("a relay", "0123456789ab", {"role": "relay"}, True),
]


@pytest.mark.parametrize(("case", "hostname", "other", "is_removed"), RENAMED, ids=[case[0] for case in RENAMED])
def test_a_renamed_container_goes_with_its_session(
    case: str, hostname: str, other: dict[str, str], is_removed: bool
) -> None:
    made = plan(request())
    labels = {**made.main.labels, **({label.ROLE: other["role"]} if "role" in other else {})}
    listed = {
        "Id": "0123456789abcdef",
        "Names": ["/somebody-renamed-me"],
        "State": "exited",
        "Labels": labels,
        "HostConfig": {"NetworkMode": other.get("NetworkMode", made.network.name)},
    }
    engine = Listing(listed, hostname)
    outcome = Removal(engine, [made.session.id], "", 1).carry_out(check=False)
    assert engine.removed == (["0123456789abcdef"] if is_removed else [])
    assert outcome.actions == ((Action("somebody-renamed-me", "removed"),) if is_removed else ())
