# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An image committed from a session's container: a session from it starts fresh, and foreign containers are left alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from controller import Controller, Session

REPOSITORY = "cluster-compute-test/playbooks-committed"
WAIT: dict[str, Any] = {"session_wait_result": True}


@pytest.fixture(scope="module")
def stranger(controller: Controller) -> Iterator[str]:
    """A container from the image that belongs to no session; the session that the image comes from has ended."""
    client = controller.client
    scripts = {"session_bootstrap": "echo one >>~/prepared", "session_command": "echo origin >>~/prepared"}
    origin = controller.launched("origin", **scripts, **WAIT)
    client.commit(origin.containers()["main1"]["Id"], repository=REPOSITORY, tag="1")
    controller.terminate("origin").check()
    made = client.create_container(f"{REPOSITORY}:1", ["600"], entrypoint=["sleep"])
    client.start(made["Id"])
    try:
        yield made["Id"]
    finally:
        controller.clean()  # by the labels: this one, too
        client.remove_image(f"{REPOSITORY}:1", force=True)


def test_scripts_and_results_are_the_new_session_s(controller: Controller, stranger: str) -> None:
    variables = {
        "session_image": f"{REPOSITORY}:1",
        "session_cluster_size": 2,
        "session_bootstrap": "echo two >>~/prepared",
        "session_command": "cat ~/prepared; ssh sub1 cat prepared; exit 6",
    }
    done = controller.launch("follower", **variables, **WAIT)
    assert "the command ended with exit code 6" in done.message
    session = Session(controller, "follower")
    said = controller.client.logs(session.containers()["main1"]["Id"], stderr=False).decode().split()
    assert said == ["one", "origin", "two"] * 2


def test_a_session_without_scripts_runs_none(controller: Controller, stranger: str) -> None:
    session = controller.launched("plain", session_image=f"{REPOSITORY}:1", session_cluster_size=2)
    assert session.say("main1", "cat prepared; ssh sub1 cat prepared").split() == ["one", "origin"] * 2


def test_a_stranger_s_container_is_no_left_over(controller: Controller, stranger: str) -> None:
    for name in ("follower", "plain"):
        controller.terminate(name).check()
    assert controller.client.inspect_container(stranger)["State"]["Running"]
    assert len(controller.engine()) == 1
