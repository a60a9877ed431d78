# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory plugin: a command reaches the container that it names, also where sessions have hosts of the same name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from controller import PLAYBOOK, ROOT, Controller, Done, Session, run

NAMES = ("twin-1", "twin-2")


@pytest.fixture(scope="module")
def twins(controller: Controller) -> dict[str, Session]:
    """Two sessions, whose containers have the same hostnames and the same user."""
    controller.launch("twin", session_count=2, session_cluster_size=2).check()
    return {name: Session(controller, name) for name in NAMES}


def ansible(controller: Controller, pattern: str, command: str, *options: str, **content: str) -> Done:
    """An ad-hoc command as a user types it."""
    inventory = controller.folder / "two.sessions.yml"
    lines = {"plugin": "cluster.compute.sessions", "artifacts": str(controller.artifacts), **content}
    inventory.write_text("".join(f"{name}: {value}\n" for name, value in lines.items()))
    program = str(Path(PLAYBOOK).with_name("ansible"))
    arguments = ["-i", str(inventory), pattern, "-m", "ansible.builtin.raw", "-a", command, *options]
    return run([program, *arguments], cwd=ROOT, env=controller.environment)


def answers(text: str) -> dict[str, str]:
    """The last line of each host's answer."""
    return dict(re.findall(r"^(\S+) \| CHANGED \| rc=0 >>\n(.*)$", text, re.MULTILINE))


def test_a_command_reaches_the_session_that_it_names(controller: Controller, twins: dict[str, Session]) -> None:
    # The first round opens the shared connections, the second one uses them.
    for _round in range(2):
        done = ansible(controller, "all", "echo $BACKENDAI_SESSION_NAME.$(hostname)").check()
        expected = [f"{name}.{host}" for name in NAMES for host in ("main1", "sub1")]
        assert answers(done.text.replace("\r", "")) == {name: name for name in expected}
    ansible(controller, "twin-2.main1", "touch only-here").check()
    assert twins["twin-1"].say("main1", "ls") == ""
    assert twins["twin-2"].say("main1", "ls") == "only-here"


@pytest.mark.usefixtures("twins")
def test_groups_by_session_and_role(controller: Controller) -> None:
    done = ansible(controller, "session_twin_1:&role_sub", "echo here").check()
    assert set(answers(done.text.replace("\r", ""))) == {"twin-1.sub1"}


@pytest.mark.usefixtures("twins")
def test_a_session_that_does_not_exist_is_an_error(controller: Controller) -> None:
    done = ansible(controller, "all", "true", sessions="[twin-1, twin-3]")
    assert done.code != 0
    assert "sessions: 'twin-3': there is no such session in" in done.text
