# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sessions end in time, and in order, while no controller runs and the engine of the head is down."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from agents_lab import NAMES, Agents, Lab
from controller import Session

GRACE, IDLE = 3, 20
SAVES = "trap 'touch ~/saved; exit' TERM; touch ~/ready; sleep 100000 & wait"
IGNORES = "trap '' TERM; touch ~/ready; while :; do sleep 1; done"
# The login of a command keeps the session in use until the time of the command is over.
WORKS = "trap 'touch ~/stopped; exit' TERM; ssh main1 sleep 100000 & wait"
COMMON = {"session_agents_policy": "strict", "session_cluster_mode": "multi-node", "session_grace": GRACE}
# A container that no agent can hold twice.
AGED = {**COMMON, "session_agents": ["agent2", "agent3"], "session_cluster_size": 2, "session_cpus": 1.5}
BUSY = {**COMMON, "session_agents": ["agent2"], "session_command": WORKS, "session_idle_timeout": IDLE}


def begin(session: Session, host: str, program: str) -> None:
    """Start a program that outlasts the login."""
    session.ssh(host, "cat >program", said=program + "\n").check()
    session.ssh(host, "setsid sh program >/dev/null 2>&1 </dev/null & until [ -e ready ]; do sleep 0.1; done").check()


def launch_both(agents: Agents) -> dict[str, str]:
    """A session with a lifetime, and one that is busy until its command takes too long. Returns the agent of each container."""
    began = time.monotonic()
    aged = agents.launched("aged", **AGED, session_lifetime=9000)
    # Both times are over when the launches are done and the head is gone, also on a busy machine.
    soon = IDLE + 2 * int(time.monotonic() - began)
    begin(aged, "main1", SAVES)
    begin(aged, "sub1", IGNORES)
    [row] = agents.sessions(session_name="aged")
    lifetime = 9000 - int(row["ends"] - time.time()) + soon
    with ThreadPoolExecutor(1) as thread:
        busy = thread.submit(agents.launched, "busy", **BUSY, session_command_timeout=soon)
        agents.launch("aged", **AGED, session_lifetime=lifetime).check()
        begin(busy.result(), "main1", SAVES)
    return {"busy.main1": "agent2", **{f"aged.{one['hostname']}": one["agent"] for one in row["containers"]}}


def test_sessions_end_by_themselves_without_controller_and_head(agents: Agents, whole: Lab) -> None:
    places = launch_both(agents)

    def docker(verb: str, container: str, more: str = "") -> str:
        command = f"docker {verb} {agents.owner}.{container}{more}"
        return whole.shell(places[container], command, timeout=300).check().text.strip()

    assert set(places.values()) == {"agent2", "agent3"}
    whole.stop_engine("agent1")
    states = {docker("inspect --format '{{.State.Status}}'", name) for name in places}
    assert states == {"running"}, "no session has ended before the head is gone"
    codes = {name: docker("wait", name) for name in places}
    assert codes == {"busy.main1": "81", "aged.main1": "80", "aged.sub1": "80"}
    for name, file in (("busy.main1", "stopped"), ("busy.main1", "saved"), ("aged.main1", "saved")):
        docker("cp", name, f":/home/work/{file} - >/dev/null")
    assert "s and is ended" in docker("logs", "busy.main1", " 2>&1")
    assert f"not every program ended within {GRACE} s of TERM" in docker("logs", "aged.sub1", " 2>&1")

    whole.start_engine("agent1")
    check_lists(agents)


def check_lists(agents: Agents) -> None:
    """The lists show the reasons, and the next pass removes the rest."""
    shown = agents.play("sessions").check().text
    assert "ended: its lifetime is over" in shown
    assert "ended: it was idle for session_idle_timeout" in shown
    agents.play("schedule").check()
    ended = {row["name"]: (row["state"], row["result"]) for row in agents.sessions()}
    assert ended == {"aged": ("TERMINATED", ""), "busy": ("TERMINATED", "FAILURE")}
    assert agents.held() == {name: [] for name in NAMES}
