# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order in which the containers of a launch start and get their files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from samples import plan, request

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine import starting
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.data_folders import CHECKED
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.secrets import SecretFiles
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Plan
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ConflictError, EngineError

INIT = Path(__file__).resolve().parents[6] / "roles/image/files/init.sh"


class Engine:
    """Writes down what happens to its containers, by hostname."""

    def __init__(self, plan: Plan) -> None:
        self.events: list[str] = []
        self._members = {one.id: {"Id": one.hostname, "State": "running"} for one in plan.containers}

    def members(self, _session: str) -> dict[str, dict[str, Any]]:
        return self._members

    def start(self, identity: str, _subject: str) -> None:
        self.events.append(f"start {identity}")

    @contextmanager
    def standard_input(self, identity: str, _subject: str) -> Iterator[Any]:

        def send(data: bytes, wanted: bytes) -> None:
            self.events.append(f"send {identity} {data.decode()}, {wanted.decode()}")

        yield send


def test_the_files_are_made_before_the_container_that_they_are_read_from_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(starting, "SETTLE", 0)
    monkeypatch.setattr(starting, "run_all", partial(starting.run_all, limit=1))
    made = plan(request(cluster_size=2), ["a", "a"])
    engine: Any = Engine(made)

    def files(name: str) -> bytes:
        engine.events.append(f"make {name}")
        return b"all"

    waiting = [(one, {"Id": one.hostname, "State": "created"}) for one in made.containers]
    start = starting.Starting(
        engine, made, "a", {one.hostname: partial(files, one.hostname) for one in made.containers}
    )
    start.carry_out(waiting)
    assert engine.events == [
        "start main1",
        "make main1",
        "send main1 3\nall, the files of the session have arrived",
        "make sub1",
        "start sub1",
        "send sub1 3\nall, the files of the session have arrived",
    ]


@pytest.mark.parametrize("words", [starting.RECEIVED, CHECKED])
def test_pid_1_says_what_is_waited_for(words: bytes) -> None:
    assert f'say "{words.decode()}"' in INIT.read_text()


def test_a_container_that_has_ended_before_it_gets_its_secrets_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine answers 409 for a program in it."""

    class Ended(Engine):
        def members(self, _session: str) -> dict[str, dict[str, Any]]:
            return {one: {**listed, "State": "exited"} for one, listed in self._members.items()}

        def inspect(self, _identity: str, _subject: str) -> dict[str, Any]:
            return {"State": {"Status": "exited", "ExitCode": 1}}

        def logs(self, *_given: Any, **_options: Any) -> str:
            return "the bootstrap script failed\n"

        def unpack(self, *_given: Any) -> None:
            raise ConflictError("main1: the engine could not pass files on: container main1 is not running.")

    made = plan(request())
    delivery = SecretFiles({"token": "eA=="}, {}, "")
    start = starting.Starting(Ended(made), made, "a", {}, delivery)  # type: ignore[arg-type]
    with pytest.raises(
        EngineError, match=r"main1: on a the container ended with exit code 1 .*bootstrap script failed"
    ):
        start.carry_out([(made.main, {"Id": "main1", "State": "created"})])
