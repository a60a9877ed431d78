# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A controller killed at a phase boundary: the next run of the same command, or of terminate.yml, ends clean."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from controller import SMALL, Controller, Done, Session

PHASES = {
    "scheduled": "Place the session",
    "network": "Create the network",
    "created": "Create the containers",
    "equipped": "Give the containers of this agent their identity",
    "started": "Start the containers",
    "verified": "Reach every container by SSH",
}
ENDINGS = {"taken-over": "Take the session over for its end", "removed": "Remove the containers of ended sessions"}
# Only the controller itself: what it has started goes on for a moment, with nobody to tell.
ALONE = {"alone-created": "Create the containers", "alone-network": "Create the network"}
SIZE = {"session_cluster_size": 2, **SMALL}


def _again(controller: Controller, case: str) -> Done:
    """Killed while it is launched, and launched again."""
    task = {**PHASES, **ALONE}[case]
    controller.killed("cluster_session", task, alone=case in ALONE, session_name=case, **SIZE)
    return controller.launch(case, session_cluster_size=2)


def _ended(controller: Controller, case: str) -> Done:
    """Killed while it is launched, and ended."""
    controller.killed("cluster_session", PHASES[case], session_name=f"end-{case}", **SIZE)
    return controller.terminate(f"end-{case}")


def _ended_again(controller: Controller, case: str) -> Done:
    """Launched, killed while it is ended, and ended again."""
    controller.launched(case, session_cluster_size=2)
    controller.killed("terminate", ENDINGS[case], session_name=case)
    return controller.terminate(case)


@pytest.fixture(scope="module")
def results(controller: Controller) -> dict[str, Done]:
    """All of the cases, some at a time."""
    cases = [(_again, case) for case in (*PHASES, *ALONE)]
    cases += [(_ended, case) for case in ("scheduled", "created", "started")] + [
        (_ended_again, case) for case in ENDINGS
    ]
    with ThreadPoolExecutor(3) as threads:
        done = list(threads.map(lambda case: case[0](controller, case[1]), cases))
    return {f"{act.__name__} {case}": one for (act, case), one in zip(cases, done, strict=True)}


def _states(controller: Controller, name: str) -> list[tuple[str, float]]:
    return [(state, lease) for other, state, lease, _reason in controller.rows() if other == name]


@pytest.mark.parametrize("case", [*PHASES, *ALONE])
def test_the_same_command(controller: Controller, results: dict[str, Done], case: str) -> None:
    results[f"_again {case}"].check()
    states = _states(controller, case)
    assert states[-1] == ("RUNNING", 0)
    assert all(before == ("ERROR", 0) for before in states[:-1])
    assert sorted(name.split()[0] for name in controller.engine(case)) == ["container", "container", "network"]
    assert Session(controller, case).say("main1", "ssh sub1 hostname") == "sub1"


@pytest.mark.parametrize("case", ["scheduled", "created", "started"])
def test_terminate(controller: Controller, results: dict[str, Done], case: str) -> None:
    results[f"_ended {case}"].check()
    _nothing(controller, f"end-{case}")


@pytest.mark.parametrize("case", ENDINGS)
def test_terminate_again(controller: Controller, results: dict[str, Done], case: str) -> None:
    results[f"_ended_again {case}"].check()
    _nothing(controller, case)


def _nothing(controller: Controller, name: str) -> None:
    assert controller.engine(name) == {}
    assert not (controller.artifacts / name).exists()
    assert {state for state, _lease in _states(controller, name)} <= {"TERMINATED", "ERROR"}
    assert not [row for row in controller.holding() if row[0] == name]


def test_while_somebody_else_launches_it(controller: Controller) -> None:
    """A controller that lives is not taken over from: who comes second is told who is at it."""
    outcome: dict[str, Any] = {}
    with ThreadPoolExecutor(2) as threads:
        both = [threads.submit(controller.launch, "twice", session_cluster_size=2) for _ in range(2)]
        outcome = {str(one.result().code): one.result() for one in both}
    assert "0" in outcome
    if "2" in outcome:
        assert "session twice is being launched by" in outcome["2"].message.lower()
    assert _states(controller, "twice") == [("RUNNING", 0)]
