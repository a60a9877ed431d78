# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A controller killed at a phase boundary: the next run of the same command, or of terminate.yml, ends clean."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from controller import SMALL, Controller, Session

PHASES = {
    "scheduled": "Placing the session",
    "created": "Creating 2 containers",
    "started": "Starting 2 containers",
    "verified": "Verifying SSH to 2 containers",
}
# The sessions of these phases are killed again, during their termination.
ENDINGS = {
    "created": "Ending the session",
    "verified": "Removing containers",
}
SIZE = {"session_cluster_size": 2, **SMALL}


def launched_again(controller: Controller, phase: str, alone: bool = False) -> None:
    """Kill a launch, and launch again. ``alone``: only the controller is killed; the processes that it started continue."""
    name = f"{phase}-alone" if alone else phase
    controller.killed("cluster_session", PHASES[phase], alone=alone, session_name=name, **SIZE)
    controller.launch(name, session_cluster_size=2).check()
    recorded = states(controller, name)
    assert recorded[-1] == ("RUNNING", 0)
    assert all(before == ("ERROR", 0) for before in recorded[:-1])
    assert sorted(line.split()[0] for line in controller.engine(name)) == ["container", "container", "network"]
    assert Session(controller, name).say("main1", "ssh sub1 hostname") == "sub1"
    if name in ENDINGS:
        controller.killed("terminate", ENDINGS[name], session_name=name)
        ended(controller, name)


def ended_instead(controller: Controller, phase: str, bootstrap: str = "") -> None:
    """Kill a launch, and terminate the session. With a ``bootstrap`` that fails, the launch is about to remove its containers."""
    name = f"{phase}-failed" if bootstrap else f"{phase}-ended"
    controller.killed("cluster_session", PHASES[phase], session_name=name, session_bootstrap=bootstrap, **SIZE)
    ended(controller, name)


def ended(controller: Controller, name: str) -> None:
    controller.terminate(name).check()
    assert controller.engine(name) == {}
    assert not (controller.artifacts / name).exists()
    assert {state for state, _lease in states(controller, name)} <= {"TERMINATED", "ERROR"}
    assert not [row for row in controller.holding() if row[0] == name]


def ended_before_its_folder(controller: Controller, phase: str) -> None:
    """The end is recorded, and its controller is killed before it removes the session's folder."""
    name = f"{phase}-folder"
    controller.killed("cluster_session", PHASES[phase], session_name=name, **SIZE)
    folder, kept = controller.artifacts / name, controller.folder / f"{name}-kept"
    shutil.copytree(folder, kept)
    controller.terminate(name).check()
    shutil.move(kept, folder)
    ended(controller, name)


def states(controller: Controller, name: str) -> list[tuple[str, float]]:
    return [(state, lease) for other, state, lease, _reason in controller.rows() if other == name]


STORIES = {
    **{phase: (launched_again, phase) for phase in PHASES},
    "created-alone": (launched_again, "created", True),
    "created-ended": (ended_instead, "created"),
    "started-failed": (ended_instead, "started", "exit 3"),
    "started-ended": (ended_before_its_folder, "started"),
}


@pytest.fixture(scope="module")
def stories(controller: Controller) -> Iterator[dict[str, Future[None]]]:
    """Run all stories, three at a time."""
    with ThreadPoolExecutor(3) as threads:
        yield {name: threads.submit(act, controller, *given) for name, (act, *given) in STORIES.items()}


@pytest.mark.parametrize("story", STORIES)
def test_clean_after_the_kill(stories: dict[str, Future[None]], story: str) -> None:
    stories[story].result()


def test_a_concurrent_launch_is_refused_or_waits(controller: Controller) -> None:
    """A launch never takes over from a live controller: the error names the controller that launches."""
    with ThreadPoolExecutor(2) as threads:
        both = [threads.submit(controller.launch, "twice") for _ in range(2)]
        outcome = {launch.result().code: launch.result() for launch in both}
    assert 0 in outcome
    if 2 in outcome:
        assert "session twice is being launched by" in outcome[2].message.lower()
    assert states(controller, "twice") == [("RUNNING", 0)]


def test_a_pass_completes_the_end_of_a_session(controller: Controller) -> None:
    controller.launched("passed")
    controller.killed("terminate", ENDINGS["verified"], session_name="passed")
    controller.play("schedule").check()
    assert controller.engine("passed") == {}
    assert states(controller, "passed") == [("TERMINATED", 0)]
