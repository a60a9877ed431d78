# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The events of a build: the bytes of its steps, and one sentence for a failure. The engine is a fake."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.image_build import (
    Build,
    BuildCount,
    BuildLog,
    build_image,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import EngineError

FIRST, SECOND = "1293be401b99", "f1f9621979ca"
FAILED = "The command '/bin/sh -c make' returned a non-zero code: 2"


class FakeEngine:
    """Sends events, and answers for the size of a container with its next answer."""

    agent = "agent1"

    def __init__(self, *events: dict[str, Any], sizes: tuple[int | EngineError, ...] = (), built: bool = False) -> None:
        self.events, self.answers, self.built = events, list(sizes), built
        self.asked: list[str] = []

    def build(self, _options: object, listen: Any) -> None:
        for event in self.events:
            listen(event)

    def hasty(self, _seconds: int) -> FakeEngine:
        return self

    def image(self, _name: str) -> dict[str, str] | None:
        return {"Id": "sha256:1"} if self.built else None

    def sizes(self, identity: str) -> dict[str, int]:
        self.asked.append(identity)
        size = self.answers.pop(0)
        if isinstance(size, EngineError):
            raise size
        return {"SizeRw": size} if size >= 0 else {}


def stream(*texts: str) -> list[dict[str, Any]]:
    return [{"stream": text} for text in texts]


def built(engine: FakeEngine) -> str:
    return build_image(engine, Build("team/train:2", "", {}, 60), "")  # type: ignore[arg-type]


def test_the_bytes_of_ended_steps_are_added() -> None:
    silence = EngineError("no answer")
    engine, log = FakeEngine(sizes=(10, 40, silence, -1, 5)), BuildLog()
    count = BuildCount(engine, log)  # type: ignore[arg-type]
    assert count.bytes() == 0
    log.add({"stream": f" ---> Running in {FIRST}\n"})
    assert [count.bytes() for _turn in range(4)] == [10, 40, 40, 40]
    log.add({"stream": f" ---> Running in {SECOND}\n"})
    assert count.bytes() == 45
    assert engine.asked == [FIRST] * 4 + [SECOND]


@pytest.mark.parametrize("text", [" ---> Running in ../../x\n", " ---> Running in 12\n", f"said: Running in {FIRST}\n"])
def test_only_the_builder_names_a_container(text: str) -> None:
    log = BuildLog()
    log.add({"stream": text})
    assert log.container == ""


def test_a_build_that_succeeds_returns_the_id() -> None:
    events = stream("E: this was tried again\n", "Successfully built 0\n", "Successfully tagged team/train:2\n")
    assert built(FakeEngine(*events, {"aux": {"ID": "sha256:1"}}, built=True)) == "sha256:1"


@pytest.mark.parametrize("texts", [(), ("Step 1/2 : RUN make",), ("Successfully tagged a:1\n", "Step 2/2 : RUN make")])
def test_a_build_whose_stream_ends_early_is_not_the_former_image_of_its_name(texts: tuple[str, ...]) -> None:
    with pytest.raises(EngineError, match="the engine ended the build early"):
        built(FakeEngine(*stream(*texts), built=True))


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        (
            [
                *stream("Step 1/2 : RUN make", "\n", f" ---> Running in {FIRST}\n", "a.c:1:1: error: no ;\nmake: 2\n"),
                *stream(f"Removing intermediate container {FIRST}\n"),
                {"error": FAILED, "errorDetail": {"code": 2, "message": FAILED}},
            ],
            "a.c:1:1: error: no ; (exit code 2)",
        ),
        ([*stream(f" ---> Running in {FIRST}\n"), {"error": FAILED, "errorDetail": {"code": 2}}], FAILED),
        ([*stream("older\n"), {"error": "COPY failed: no such file."}], "COPY failed: no such file"),
        ([{"error": "\x1b]0;title\x07", "errorDetail": None}], "\\x1b]0;title\\x07"),
        ([{"errorDetail": {"message": "COPY failed: no such file."}}], "COPY failed: no such file"),
        ([], "the engine ended the build early; check the log of that engine"),
    ],
)
def test_a_failure_is_one_sentence(events: list[dict[str, Any]], reason: str) -> None:
    with pytest.raises(EngineError) as caught:
        built(FakeEngine(*events))
    assert caught.value.message == f"agent1: team/train:2 cannot be built: {reason}."


def test_a_build_that_is_late_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    end = threading.Event()
    engine = FakeEngine()
    monkeypatch.setattr(engine, "build", lambda _wanted, _listen: end.wait(30))
    with pytest.raises(
        EngineError, match="team/train:2 cannot be built: it has not ended within 0 s; raise image_build"
    ):
        build_image(engine, Build("team/train:2", "", {}, 0), str(tmp_path / "progress"))  # type: ignore[arg-type]
    end.set()
