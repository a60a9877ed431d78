# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The phases that the callback shows, and the failures that it keeps for the end."""

from __future__ import annotations

import pytest

from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.progress import Conducted, Progress, TaskFacts

REPORT = TaskFacts("Collect reports", "cluster.compute.agent_info")
LAUNCH = TaskFacts("Launch the sessions", "cluster.compute.session")
COPY = TaskFacts("Copy", "cluster.compute.session_copy")


def test_a_phase_ends_with_its_seconds_when_the_next_begins() -> None:
    progress = Progress()
    assert progress.start(REPORT, 10.0) == []
    [line] = progress.start(COPY, 12.5)
    assert line.split() == ["Collecting", "agent", "reports", "2.5", "s"]


def test_tasks_without_a_phase_of_their_own_belong_to_the_one_before() -> None:
    progress = Progress()
    progress.start(REPORT, 0.0)
    assert progress.start(TaskFacts("Set a fact", "ansible.builtin.set_fact"), 1.0) == []
    assert progress.phase == "Collecting agent reports"


def test_the_choice_of_an_environment_is_part_of_its_build() -> None:
    progress = Progress()
    progress.start(REPORT, 0.0)
    choose = TaskFacts("Choose the environments", "cluster.compute.environments_info", role="cluster.compute.image")
    progress.start(choose, 1.0)
    assert progress.phase == "Preparing the image"


def test_a_task_with_phases_of_its_own_ends_the_one_before() -> None:
    progress = Progress()
    progress.start(REPORT, 0.0)
    assert len(progress.start(LAUNCH, 1.0)) == 1
    assert progress.live(2.0) == ""
    progress.conducted = Conducted("Creating 3 containers on 2 agents", 1.5, "train")
    assert progress.live(4.0) == "Creating 3 containers on 2 agents, 2 s"


def test_agents_are_counted_while_they_work() -> None:
    progress = Progress()
    progress.start(REPORT, 0.0)
    for host in ("a", "b", "c"):
        progress.begin_on(host)
    progress.finish_on("b")
    assert progress.live(4.0) == "Collecting agent reports (1 of 3 agents), 4 s"


def test_provisioning_names_its_task() -> None:
    progress = Progress()
    progress.start(TaskFacts("Install packages", "ansible.builtin.apt", role="cluster.compute.image"), 0.0)
    assert progress.live(30.0) == "Preparing the image: Install packages, 30 s"


@pytest.mark.parametrize("action", ["ansible.builtin.debug", "cluster.compute.agent_step"])
def test_a_task_that_prepares_nothing_begins_no_preparation(action: str) -> None:
    progress = Progress()
    progress.start(TaskFacts("Get the image of each agent", action, role="cluster.compute.image"), 0.0)
    assert progress.phase == ""


@pytest.mark.parametrize(
    ("transfers", "shown"),
    [
        ([], "Pulling the image, 20 s"),
        ([(0, 0)], "Pulling the image, 20 s"),
        ([(3 << 20, 0)], "Pulling the image, 3m, 20 s"),
        ([(3 << 20, 8 << 20), (1 << 20, 8 << 20)], "Pulling the image, 4m of 16m, 20 s"),
    ],
)
def test_bytes_of_all_agents_are_shown_together(transfers: list[tuple[int, int]], shown: str) -> None:
    progress = Progress()
    progress.conducted = Conducted("Pulling the image")
    progress.transfers = transfers
    assert progress.live(20.0) == shown


def test_a_log_gets_a_line_after_ten_silent_seconds() -> None:
    progress = Progress()
    progress.conducted = Conducted("Creating 3 containers", 0.0)
    assert progress.heartbeat(9.0) == []
    assert len(progress.heartbeat(11.0)) == 1
    assert progress.heartbeat(12.0) == []
    assert len(progress.heartbeat(21.5)) == 1


def test_the_last_failure_of_a_host_counts_and_equal_ones_are_one_line() -> None:
    progress = Progress()
    progress.fail_on("a", "the first reason")
    for host in ("a", "b"):
        progress.fail_on(host, "no room.")
    progress.fail_on("c", "c cannot be reached.")
    assert progress.failure_lines() == ["a, b: no room.", "c cannot be reached."]


def test_a_failure_of_the_session_names_no_host() -> None:
    progress = Progress()
    for host in ("a", "b"):
        progress.fail_on(host, "Session train was not launched: no room.", is_of_session=True)
    assert progress.failure_lines() == ["Session train was not launched: no room."]


def test_an_interrupted_run_says_what_it_leaves_and_how_to_go_on() -> None:
    progress = Progress()
    progress.start(REPORT, 0.0)
    assert progress.interrupted() == "Interrupted while it was collecting agent reports."
    progress.conducted = Conducted("Creating 3 containers on 2 agents", 1.0, "train")
    text = progress.interrupted()
    assert "while it was creating 3 containers on 2 agents" in text
    assert "terminate.yml -e session_name=train" in text
