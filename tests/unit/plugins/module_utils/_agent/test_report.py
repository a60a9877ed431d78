# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a measured report says of the containers, beside an engine that is not there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._agent import report
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.client import (
    Engine,
    LateError,
    UnreachableError,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared import label
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Gpu, Resources
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import (
    AppState,
    GpuUse,
    Measured,
    ObservedContainer,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import (
    ConflictError,
    EngineError,
    InputError,
)


def entry(name: str, state: str, *gpus: str, **fields: Any) -> ObservedContainer:
    own = Resources(gpus=tuple(map(Gpu, gpus)))
    return ObservedContainer(**{"id": "c", "session": "s", **fields}, engine_id=name, state=state, resources=own)


class Waiting(Engine):
    """An engine whose containers wait for their secrets, if it answers."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def has_path(self, _identity: str, path: str, _subject: str = "") -> bool:
        assert path == "/etc/cluster-compute/run/c/.waits_for_secrets"
        if self.error:
            raise self.error
        return True

    def check_answers(self) -> None:
        """The engine answers beside a container of which it says nothing."""


def test_a_container_that_waits_for_its_secrets_does_not_run_yet() -> None:
    kept = entry("e", "running", hostname="sub1", labels={label.SECRETS: "true"})
    assert report.with_wait(Waiting(), kept) == replace(kept, state="waiting")
    for other in (replace(kept, state="exited"), replace(kept, labels={label.SECRETS: ""}), replace(kept, labels={})):
        assert report.with_wait(Waiting(AssertionError("not asked")), other) == other
    for error in (EngineError("it has just gone"), ConflictError("it is not running"), LateError("it hangs")):
        assert report.with_wait(Waiting(error), kept) == kept
    with pytest.raises(UnreachableError):
        report.with_wait(Waiting(UnreachableError("no engine")), kept)


def test_a_main1_that_ends_while_its_apps_are_read_fails_no_report() -> None:
    """An engine starts no program in a container that has just ended: it answers with a conflict."""

    class Ended(Engine):
        def __init__(self) -> None:
            pass

        def read_file(self, *_place: Any) -> bytes:
            raise ConflictError("main1: the engine could not read it: the container is not running")

    main = entry("e", "running", session="c", hostname="main1")
    assert report.with_apps(Ended(), main, True, None) == main


@pytest.mark.parametrize(
    ("changes", "apps_of", "is_asked"),
    [
        ({}, None, True),
        ({}, ["others", "demo"], True),
        ({}, ["others"], False),
        ({"state": "exited"}, None, False),
        ({"labels": {label.APPS: ""}}, None, False),
        ({"labels": {}}, None, False),
    ],
)
def test_a_container_whose_role_has_apps_says_how_they_are(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], apps_of: list[str] | None, is_asked: bool
) -> None:
    usual = replace(entry("e", "running", hostname="ps1", labels={label.APPS: "true"}), name="demo")
    asked = replace(usual, **changes)
    statuses = [AppState("board", "ready")]
    monkeypatch.setattr(report, "read_statuses", lambda *place: statuses if place[1:] == ("e", "c", "ps1") else [])
    found = report.with_apps(Waiting(), asked, True, apps_of)
    assert found.apps == (tuple(statuses) if is_asked else None)


def test_each_running_container_has_the_use_of_its_own_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Measured(100, 2048)
    monkeypatch.setattr(
        report, "measure_containers", lambda _engine, running, *_others: dict.fromkeys(running[:2], counted)
    )
    engine: Any = None
    use = (GpuUse("GPU-1", 97), GpuUse("GPU-2", 0))
    entries = [entry("a", "running", "GPU-2"), entry("b", "running"), entry("c", "running"), entry("d", "exited")]
    found = {one.engine_id: one.measured for one in report.measured_use(engine, entries, use)}
    assert found == {"a": replace(counted, gpus=use[1:]), "b": counted, "c": None, "d": None}


@pytest.mark.parametrize("shares", [0, -1, 0.5])
def test_a_gpu_has_at_least_one_share(shares: float) -> None:
    """A part of one is what agent_gpu_sharing mig reports of a MIG device."""
    with pytest.raises(InputError, match="shares must be at least 1"):
        report.Overrides.from_options({"gpus": [{"id": "GPU-1", "shares": shares}]})
