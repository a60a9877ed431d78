# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sessions that wait for others or for a time, are launched again from their request, and are restarted in place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from controller import ROOT, SMALL, Controller, Session
from servers import until

COMMAND = ROOT / "extensions" / "command" / "cluster_compute"
BATCH: dict[str, Any] = {**SMALL, "session_terminate_when_done": True}


def state(controller: Controller, name: str) -> tuple[str, str]:
    """The state and the reason of the newest session of a name."""
    return next((row[1], row[3]) for row in reversed(controller.rows()) if row[0] == name)


def test_a_chain_with_a_failure_in_the_middle(controller: Controller) -> None:
    first = controller.launched("first", session_command="until [ -e go ]; do sleep 0.2; done", **BATCH)
    second = controller.launch("second", session_command="exit 3", session_after=["first"], **BATCH).check()
    controller.launch("third", session_command="true", session_after=["second"], **BATCH).check()
    first.say("main1", "touch go")
    assert "Session second is PENDING: waits for the success of first, which is RUNNING" in second.text
    passes = [""]

    def is_over() -> bool:
        passes[0] = controller.play("schedule").text
        return state(controller, "third")[0] != "PENDING"

    until(is_over, "the end of the chain", 300)
    reason = "session_after: second has failed: the command ended with exit code 3"
    assert state(controller, "third") == ("ERROR", reason)
    assert f"Session third of {controller.owner}: ERROR, {reason}" in passes[0]
    controller.play("schedule").check()
    assert [state(controller, name)[0] for name in ("first", "second")] == ["TERMINATED"] * 2
    refused = controller.launch("fourth", session_after=["second"])
    assert refused.code == 2
    assert "session_after: 'second': must be a session that succeeds: second has failed" in refused.message


def test_a_time_and_the_end_of_patience(controller: Controller) -> None:
    later = controller.launch("later", session_command="true", session_not_before=3600).check()
    assert "Session later is PENDING: waits until 20" in later.text
    assert "as session_not_before says" in controller.play("sessions").check().text
    soon = controller.launch("soon", session_not_before=2).check()
    assert "Session soon is PENDING" in soon.text
    patient = {"session_after": ["later"], "session_pending_timeout": 1}
    controller.launch("patient", session_command="true", **patient).check()
    until(lambda: "Session soon: RUNNING" in controller.play("schedule").check().text, "the start of soon", 150)
    until(lambda: controller.play("schedule").check() and state(controller, "patient")[0] == "ERROR", "its end", 150)
    assert state(controller, "patient")[1].startswith(
        "it waited longer than the 1 s of session_pending_timeout: waits for"
    )
    assert state(controller, "later")[0] == "PENDING"
    for name in ("later", "soon"):
        controller.terminate(name).check()


# Text with the marks of templates, which no launch may evaluate.
ASKED = r"""
session_command: !unsafe "echo '{{ 1 + 1 }}' >template; echo $GREETING >greeting"
session_environment:
  GREETING: !unsafe "hello {% raw %}"
"""


def test_an_ended_session_is_launched_again(controller: Controller, tmp_path: Path) -> None:
    asked = tmp_path / "asked.yml"
    asked.write_text(ASKED)
    controller.launch("again", "-e", f"@{asked}").check()
    controller.terminate("again").check()
    command_line = [sys.executable, str(COMMAND), "-e", f"@{controller.common}", "show", "again", "--file"]
    shown = subprocess.run(
        command_line, cwd=ROOT, env=controller.environment, capture_output=True, text=True, check=True
    )
    path = tmp_path / "again.yml"
    path.write_text(shown.stdout)
    assert "Session again: RUNNING" in controller.play("cluster_session", "-e", f"@{path}").check().text
    controller.terminate("again").check()
    like = controller.play("cluster_session", session_like="again", session_wait_result=True).check()
    assert "Session again: RUNNING" in like.text
    session = Session(controller, "again")
    assert session.say("main1", "cat template greeting").splitlines() == ["{{ 1 + 1 }}", "hello {% raw %}"]
    copy = controller.play("cluster_session", session_like="again", session_name="copy-of-it").check()
    assert "Session copy-of-it: RUNNING" in copy.text
    for name in ("again", "copy-of-it"):
        controller.terminate(name).check()


def identity(session: Session) -> dict[str, tuple[Any, ...]]:
    """What stays of each container: its ID, its address, and the certificate of its host key."""
    return {
        hostname: (
            found["Id"],
            [network["IPAddress"] for network in found["NetworkSettings"]["Networks"].values()],
            session.say("main1", f"ssh {hostname} cat /etc/cluster-compute/ssh_host_ed25519_key-cert.pub"),
        )
        for hostname, found in session.containers().items()
    }


def started(session: Session) -> dict[str, str]:
    return {hostname: found["State"]["StartedAt"] for hostname, found in session.containers().items()}


def test_containers_and_apps_restart_in_place(controller: Controller) -> None:
    board = {"name": "board", "port": 8080, "command": "echo x >>~/starts; exec sleep 1000", "ready": 22}
    session = controller.launched("restarts", session_cluster_size=2, session_apps=[board])
    session.say("sub1", "echo kept >kept")
    before, times = identity(session), started(session)

    def restart(**variables: Any) -> str:
        return controller.play("session_restart", session_name="restarts", **variables).check().text

    assert "sub1 brought back" in restart(session_restart_containers=["sub1"])
    assert (identity(session), started(session)["main1"]) == (before, times["main1"])
    assert started(session)["sub1"] != times["sub1"]
    assert session.say("main1", "ssh sub1 cat kept") == "kept"
    times = started(session)
    assert "Session restarts: app board restarted" in restart(session_restart_app="board")
    assert started(session) == times
    assert session.say("main1", "cat starts").split() == ["x", "x"]
    assert "main1, sub1 brought back" in restart()
    assert identity(session) == before
    assert all(started(session)[hostname] != times[hostname] for hostname in times)
    wrong = controller.play("session_restart", session_name="restarts", session_restart_containers=["sub7"])
    assert "session_restart_containers: 'sub7': must be a container of the session: main1, sub1" in wrong.message
    controller.terminate("restarts").check()
    assert (
        "must be a running session, and is TERMINATED"
        in controller.play("session_restart", session_name="restarts").message
    )
