# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names belong to owners: two owners on the same head and controller never see, launch, end or overwrite each other's sessions."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from controller import Controller, Session


@pytest.fixture(scope="module")
def other(controller: Controller, tmp_path_factory: pytest.TempPathFactory) -> Controller:
    """A controller of another owner, with the same head, store, engine and artifacts folder."""
    made = Controller(tmp_path_factory.mktemp("other") / "own", controller.host)
    mine = {"session_state_dir": str(controller.state), "session_artifacts": str(controller.artifacts)}
    made = replace(made, folder=made.folder / "again", owner=made.owner, extra=mine)
    made.state, made.artifacts = controller.state, controller.artifacts
    return made


@pytest.fixture(scope="module")
def train(controller: Controller) -> Session:
    return controller.launched("train")


def test_a_name_is_an_owner_s_own(controller: Controller, other: Controller, train: Session) -> None:
    """The artifacts folder of a name belongs to a single session."""
    kept = controller.kept()
    refused = other.launch("train")
    assert refused.code != 0
    assert refused.message == (
        f"session_name: 'train': the controller's directory of that name belongs to a session of {controller.owner}; choose "
        "another name, or set session_artifacts to another directory."
    )
    assert other.engine() == {}
    apart = {"session_artifacts": str(other.folder / "apart")}
    other.launch("train", **apart).check()
    assert controller.kept() == kept
    other.play("terminate", session_name="train", **apart).check()
    assert controller.kept() == kept
    assert train.say("main1", "hostname") == "main1"


def test_a_list_is_its_owner_s(controller: Controller, other: Controller, train: Session) -> None:
    """The table of owners has everybody who holds something; that of sessions has those of the owner."""
    mine = controller.play("sessions").check().text
    theirs = other.play("sessions").check().text
    everybody = other.play("sessions", session_owner="all").check().text
    rows = [re.search(rf"{train.name} +{controller.owner} +RUNNING", text) for text in (mine, theirs, everybody)]
    assert [row is not None for row in rows] == [True, False, True]


def test_logs_and_ends_are_their_owner_s(controller: Controller, other: Controller) -> None:
    controller.launched("alone")
    logs = other.play("session_logs", session_name="alone")
    assert "no session has this name" in logs.message
    assert "There is no live session alone: nothing to end." in other.terminate("alone").check().text
    assert controller.engine("alone") != {}


def test_a_pass_over_the_queue_is_its_owner_s(controller: Controller, other: Controller) -> None:
    controller.launch("waits", agent_schedulable=False).check()
    other.play("schedule").check()
    assert [row[1] for row in controller.rows() if row[0] == "waits"] == ["PENDING"]
    assert "Session waits: RUNNING" in controller.play("schedule").check().text


def test_a_folder_of_the_user_is_left_alone(controller: Controller) -> None:
    folder = Path(controller.artifacts) / "work"
    folder.mkdir(parents=True)
    (folder / "main.py").write_text("precious")
    refused = controller.launch("work")
    assert refused.code != 0
    assert f"the directory {folder} has that name and contains main.py" in refused.message
    assert (folder / "main.py").read_text() == "precious"
    assert controller.engine("work") == {}
