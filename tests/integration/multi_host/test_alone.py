# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sessions end in time, and in order, while no controller runs and the engine of the head is down."""

from __future__ import annotations

import time
from typing import Any

from agents_lab import NAMES, Agents, Lab
from controller import Session

GRACE = 3
SAVES = "trap 'touch ~/saved; exit' TERM; touch ~/ready; sleep 100000 & wait"
IGNORES = "trap '' TERM; touch ~/ready; while :; do sleep 1; done"
# Uses more than a twentieth of a CPU until its time is up, so the idle timeout of its session, which is shorter, does not end it.
WORKS = "trap 'touch ~/saved; exit' TERM; while :; do :; done"


def on(*names: str, **variables: Any) -> dict[str, Any]:
    """Variables of a session on these agents and no others."""
    return {"session_agents": list(names), "session_agents_policy": "strict", "session_grace": GRACE, **variables}


def begin(session: Session, host: str, program: str) -> None:
    """Start a program that outlasts the login."""
    session.ssh(host, "cat >program", said=program + "\n").check()
    session.ssh(host, "setsid sh program >/dev/null 2>&1 </dev/null & until [ -e ready ]; do sleep 0.1; done").check()


def test_sessions_end_by_themselves_without_controller_and_head(agents: Agents, whole: Lab) -> None:
    small = {"session_cpus": 0.2}
    batch = {"session_command": WORKS, "session_command_timeout": 60, "session_idle_timeout": 10}
    agents.launched("works", **on("agent2", **small, **batch))
    idle = on("agent3", **small)
    begin(agents.launched("idle", **idle, session_idle_timeout=9000), "main1", SAVES)
    two = on("agent2", "agent3", session_cluster_size=2, session_cluster_mode="multi-node", session_cpus=1)
    aged = agents.launched("aged", **two, session_lifetime=9000)
    begin(aged, "main1", SAVES)
    begin(aged, "sub1", IGNORES)
    [row] = agents.sessions(session_name="aged")
    agents.launch("idle", **idle, session_idle_timeout=10).check()
    agents.launch("aged", **two, session_lifetime=int(time.time() - row["ends"]) + 9000 + 30).check()

    whole.stop_engine("agent1")
    places = {
        "works.main1": "agent2",
        "idle.main1": "agent3",
        **{f"aged.{one['hostname']}": one["agent"] for one in row["containers"]},
    }
    assert set(places.values()) == {"agent2", "agent3"}
    waits = {
        name: whole.shell(agent, f"docker wait {agents.owner}.{name}", timeout=300) for name, agent in places.items()
    }
    codes = {name: done.check().text.strip() for name, done in waits.items()}
    assert codes == {"works.main1": "81", "idle.main1": "81", "aged.main1": "80", "aged.sub1": "80"}
    for name in ("works.main1", "idle.main1", "aged.main1"):
        whole.shell(places[name], f"docker cp {agents.owner}.{name}:/home/work/saved -").check()
    logs = {name: whole.shell(agent, f"docker logs {agents.owner}.{name}").text for name, agent in places.items()}
    assert "the command took longer than 60 s and is ended" in logs["works.main1"]
    assert f"not every program ended within {GRACE} s of TERM" in logs["aged.sub1"]
    whole.start_engine("agent1")
    check_lists(agents)


def check_lists(agents: Agents) -> None:
    """The lists show the reasons, and the next pass removes the rest."""
    reasons = {row["name"]: row["containers"][0]["exit_code"] for row in agents.sessions() if row["state"] == "RUNNING"}
    assert reasons == {"works": 81, "idle": 81, "aged": 80}
    shown = agents.play("sessions").check().text
    assert "ended because the lifetime of the session is over" in shown
    assert "ended because the session was idle for session_idle_timeout" in shown
    agents.play("schedule").check()
    ended = {row["name"]: (row["state"], row["reason"]) for row in agents.sessions()}
    assert ended["aged"][0] == ended["idle"][0] == "TERMINATED"
    assert agents.held() == {name: [] for name in NAMES}
