# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A member dies, and all containers of the session restart together: once, with nothing left of the programs that ran in them."""

from __future__ import annotations

from typing import Any

from controller import Controller, Session

GANG: dict[str, Any] = {
    "session_cluster_size": 3,
    "session_on_failure": "restart_all",
    "session_restarts": 1,
    "session_command": "echo begun >>~/begun; exec sleep 600",
}
LISTEN = "setsid /opt/cluster-compute/bin/busybox nc -l -p 12345 </dev/null >/dev/null 2>&1 &"
LISTENS = "/opt/cluster-compute/bin/busybox netstat -ltn | grep -c :12345"


def starts(session: Session) -> dict[str, str]:
    return {host: one["State"]["StartedAt"] for host, one in session.containers().items()}


def restarts(controller: Controller) -> tuple[str, list[str]]:
    [row] = [one for one in controller.sessions() if one["name"] == "gang" and one["state"] == "RUNNING"]
    counted = [one["reason"] for one in row["history"] if one["reason"].startswith("all containers restart")]
    return row["restart_waits"], counted


def test_a_member_that_dies_restarts_all_once(controller: Controller) -> None:
    session = controller.launched("gang", **GANG)
    before, first = starts(session), session.containers()
    session.say("main1", LISTEN)
    assert session.ssh("main1", LISTENS).text.strip() == "1"
    controller.client.kill(first["sub1"]["Id"])

    passed = controller.play("schedule").check()
    assert "Session gang: RUNNING, all containers restarted" in passed.text
    after = starts(session)
    assert {host: one["Id"] for host, one in session.containers().items()} == {
        host: one["Id"] for host, one in first.items()
    }
    assert [host for host in before if after[host] == before[host]] == []
    assert session.ssh("main1", LISTENS).text.strip() == "0", "an orphan holds the port"
    assert session.say("main1", "cat begun; ssh sub1 hostname; ssh sub2 hostname").split() == [
        "begun",
        "begun",
        "sub1",
        "sub2",
    ]
    assert restarts(controller) == ("", ["all containers restart (1 of 1): " + died("sub1")])
    controller.play("schedule").check()
    assert starts(session) == after, "a session that runs is left alone"

    controller.client.kill(session.containers()["sub2"]["Id"])
    controller.play("schedule").check()
    reason = "session_restarts is reached (1); launch it again to restart it"
    assert restarts(controller)[0] == reason
    assert f"not restarted now: {reason}" in controller.play("sessions").check().text
    assert {host: start for host, start in starts(session).items() if host != "sub2"} == {
        host: start for host, start in after.items() if host != "sub2"
    }
    again = controller.launch("gang", **GANG).check()
    assert "Session gang: RUNNING, all containers restarted" in again.text
    assert len(restarts(controller)[1]) == 2
    assert session.say("main1", "ssh sub2 hostname") == "sub2"
    controller.terminate("gang").check()
    assert controller.engine() == {}


def died(host: str) -> str:
    return f"{host} on localhost ended with exit code 137; the command runs"
