# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A terminated session leaves only its logs and history. A session that does not fit waits and is launched later."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from controller import Controller

STATES = ["PENDING", "SCHEDULED", "PREPARING", "RUNNING", "TERMINATING", "TERMINATED"]


def test_only_logs_and_history_are_left(controller: Controller) -> None:
    described = {
        "source": f"{controller.owner}-data",
        "target": "/data",
        "type": "volume",
        "options": {"type": "tmpfs", "device": "tmpfs"},
    }
    session = controller.launched(
        "ends",
        session_cluster_size=2,
        session_mounts=[described],
        session_bootstrap="echo hello from $BACKENDAI_CLUSTER_HOST",
    )
    identity = session.id
    assert any(name.startswith("volume ") for name in controller.engine())
    done = controller.terminate("ends").check()
    assert "Session ends: TERMINATED" in done.text
    assert controller.everything() == ({}, {}, [])
    assert not session.folder.exists()
    logs = {path.name: path.read_text() for path in (controller.state / identity).iterdir()}
    assert {name: "hello from " + name[: -len(".log")] in text for name, text in logs.items()} == {
        "main1.log": True,
        "sub1.log": True,
    }
    [listed] = controller.sessions(session_name="ends")
    _check_history(listed["history"])
    table = controller.play("sessions", session_ended_too=True).check()
    assert re.search(rf"ends +{controller.owner} +TERMINATED .*every container is removed", table.text)


def _check_history(history: list[dict[str, Any]]) -> None:
    """The history has every state with its time and reason."""
    assert [change["after"] for change in history] == STATES
    assert [change["before"] for change in history] == ["", *STATES[:-1]]
    times = [change["time"] for change in history]
    assert times == sorted(times)
    assert times[-1] - times[0] > 0
    assert all(change["reason"] for change in history)


def test_the_name_is_free_again(controller: Controller) -> None:
    """A termination in check mode changes nothing, and a second termination has nothing to do."""
    controller.launched("ends")
    before = controller.everything()
    checked = controller.terminate("ends", "--check", "--diff").check()
    assert "Session ends would be terminated." in checked.text
    assert controller.everything() == before
    controller.terminate("ends").check()
    assert [row[1] for row in controller.rows() if row[0] == "ends"] == ["TERMINATED", "TERMINATED"]
    assert controller.engine() == {}
    again = controller.terminate("ends").check()
    assert again.changed == 0
    assert "There is no live session ends: nothing to end." in again.text


def test_a_session_that_no_host_can_hold_waits_for_one_that_can(controller: Controller) -> None:
    """Whatever other sessions hold. With session_refuse_impossible, nothing of it is recorded."""
    giant = {"session_cluster_size": 3, "session_cpus": 30}
    refused = controller.launch("giant", session_refuse_impossible=True, **giant)
    assert (refused.code, refused.message) == (
        2,
        "Session giant cannot be launched: the agents could not hold it even without other sessions (localhost: needs 90 CPUs, "
        "64 free); ask for less, or add agents.",
    )
    assert controller.everything() == ({}, {}, [])
    waits = " ".join(controller.launch("giant", **giant).check().text.split())
    assert (
        "Session giant is PENDING: no host can hold this as they are: largest free when empty localhost: needs 90 CPUs, 64 free; "
        "add a host or ask for less." in waits
    )
    assert "Session giant: CANCELLED" in controller.terminate("giant").check().text
    shrunk = " ".join(controller.launch("smaller", agent_cpus=0.1).check().text.split())
    assert "largest free when empty localhost: needs 0.2 CPUs" in shrunk
    assert "RUNNING" in controller.launch("smaller").check().text
    controller.terminate("smaller").check()


def test_a_session_that_waits_is_no_failure_unless_that_is_asked_for(controller: Controller) -> None:
    why = "no agent can hold it: localhost is not schedulable"
    first = controller.launch("patient", agent_schedulable=False).check()
    assert f"Session patient is PENDING: {why}." in first.text
    waited = controller.launch("patient", agent_schedulable=False, session_wait=1)
    assert (waited.code, waited.message) == (2, f"Session patient is still PENDING after 1 s: {why}.")
    failed = controller.launch("patient", agent_schedulable=False, session_fail_when_pending=True)
    assert (failed.code, failed.message) == (2, f"Session patient is PENDING: {why}.")
    assert controller.engine() == {}
    assert "Session patient: CANCELLED" in controller.terminate("patient").check().text
    assert controller.everything() == ({}, {}, [])


# An interpreter that dies at the step containers.created, as a module that the out-of-memory killer ends: once for each file in the
# directory. The process that stays takes all other steps. A client that asks for this step gets exit code 75, as if no process had
# stayed, and sends a module.
DYING = r"""#!/bin/sh
cat >{folder}.$$
if grep -q 'call[^a-z]*containers\.created' {folder}.$$; then
    for file in {folder}/*; do
        [ -e "$file" ] || break
        [ $# -eq 0 ] || exit 75
        rm "$file" && kill -9 $$
    done
fi
exec {python} "$@" <{folder}.$$
"""


def created(controller: Controller, name: str) -> float:
    """When a session has got its place in the queue."""
    with closing(sqlite3.connect(controller.state / "sessions.db")) as store:
        [[found]] = store.execute("SELECT created FROM session WHERE name = ?", [name])
        return float(found)


def test_a_module_that_dies_in_a_pass_costs_no_place_in_the_queue(controller: Controller) -> None:
    """Three times; at the fourth the session becomes ERROR, with the cause."""
    folder, python = controller.folder / "deaths", controller.folder / "python"
    folder.mkdir()
    python.write_text(DYING.format(folder=folder, python=sys.executable))
    python.chmod(0o755)
    for name, deaths in (("unlucky", 2), ("hopeless", 20)):
        assert "is PENDING" in controller.launch(name, agent_schedulable=False).check().text
        placed = created(controller, name)
        for number in range(deaths):
            (folder / str(number)).touch()
        done = controller.play("schedule", ansible_python_interpreter=str(python), ansible_pipelining=True)
        [row] = [row for row in controller.rows() if row[0] == name]
        if name == "unlucky":
            assert (done.check().code, row[1]) == (0, "RUNNING")
            assert created(controller, name) == placed
        else:
            assert (done.code, row[1]) == (2, "ERROR")
            assert "SIGKILL" in done.message
    controller.terminate("unlucky").check()


def test_pending_then_launched_when_there_is_room(controller: Controller) -> None:
    room = {"agent_memory": controller.used_memory() + (30 << 30)}
    controller.launched("large", session_memory="20g", session_lifetime=9000, **room)
    planned = controller.launch("waits", "--check", session_cluster_size=2, session_memory="10g", **room).check()
    start = (
        r"Session waits would wait: localhost: needs 20g memory, \S+ free; it starts by \d{4}-\d\d-\d\d \d\d:\d\d UTC\."
    )
    assert re.search(start, " ".join(planned.text.split()))
    waiting = controller.launch("waits", session_cluster_size=2, session_memory="10g", **room).check()
    assert re.search(r"Session waits is PENDING: localhost: needs 20g memory, \S+ free", waiting.text)
    assert [row[1] for row in controller.rows() if row[0] == "waits"] == ["PENDING"]
    assert controller.play("schedule", **room).check().changed == 0
    # The end of a session makes a pass over the queue of its owner.
    ended = controller.play("terminate", session_name="large", **room).check()
    said = ["Session large: TERMINATED", "The end is complete. Sessions that wait: 1.", "Session waits: RUNNING"]
    assert [line for line in said if line not in ended.text] == []
    assert sorted(said, key=ended.text.index) == said
    assert [row[1:3] for row in controller.rows() if row[0] == "waits"] == [("RUNNING", 0)]


def test_a_batch_session_that_fails_leaves_its_room_to_the_next(controller: Controller) -> None:
    """The pass keeps the failure of the command, and gives no variable of this command line to another session."""
    assert "is PENDING" in controller.launch("behind", agent_schedulable=False).check().text
    batch = {"session_command": "exit 3", "session_wait_result": True, "session_on_failure": "terminate"}
    done = controller.launch("batch", session_lifetime=9000, **batch)
    assert done.code == 2
    assert "Session batch failed: the command ended with exit code 3" in done.text
    assert "Session behind: RUNNING" in done.text
    [listed] = controller.sessions(session_name="behind")
    assert (listed["state"], listed["lifetime"]) == ("RUNNING", 0)
    controller.play("terminate", session_name="*", session_many=True).check()


def test_one_bad_session_does_not_stop_the_queue(controller: Controller) -> None:
    """A session without its folder becomes ERROR, a failed launch is undone, and the session behind them is launched.

    The site puts large sessions first. There is room for one session: the third one, which asked before the others, gets it in the
    same pass.
    """
    folder = controller.folder / "data"
    folder.mkdir()
    room = {"agent_memory": controller.used_memory() + (30 << 30)}
    controller.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    policy = controller.state / "policy.json"
    policy.write_text(json.dumps({"queue": {"size_weight": 2000}}))
    policy.chmod(0o644)
    variables: dict[str, dict[str, Any]] = {
        "third": {},
        "second": {"session_bootstrap": "sleep 60", "session_bootstrap_timeout": 1, "session_cpus": 0.3},
        "first": {"session_mounts": [{"source": str(folder), "target": "/data"}], "session_cpus": 0.4},
    }
    for name, asked in variables.items():
        waits = controller.launch(name, agent_schedulable=False, session_memory="20g", **asked).check()
        assert "is PENDING" in waits.text
    folder.rmdir()
    done = controller.play("schedule", **room)
    assert done.code == 2
    states = {name: (state, reason) for name, state, _lease, reason in controller.rows()}
    gone = f"session_mounts: '{folder}': must exist on every agent of the session; it does not exist or does not answer on localhost."
    assert states["first"] == ("ERROR", gone)
    assert states["second"][0] == "ERROR"
    assert states["third"][0] == "RUNNING"
    assert re.match(r"first: session_mounts: .* second: Session second was not launched: .*bootstrap", done.message)
    assert controller.play("schedule", **room).check().changed == 0
    _end_before_a_session_that_cannot_start(controller, "third", folder)
    policy.unlink()


def _end_before_a_session_that_cannot_start(controller: Controller, name: str, folder: Path) -> None:
    """The end succeeds, and says what the pass over the queue after it did not do."""
    folder.mkdir()
    mounts = [{"source": str(folder), "target": "/data"}]
    controller.launch("fourth", agent_schedulable=False, session_mounts=mounts).check()
    folder.rmdir()
    ended = " ".join(controller.terminate(name).check().text.split())
    assert "The pass over the queue was not complete: fourth: session_mounts: " in ended, ended
    assert [row[1] for row in controller.rows() if row[0] in (name, "fourth")] == ["TERMINATED", "ERROR"]


def test_an_agent_that_left_the_inventory_is_named(controller: Controller, tmp_path: Path) -> None:
    """The removal of containers is known only for agents that were reached."""
    controller.launched("moved")
    other = tmp_path / "hosts.yml"
    python = "{{ ansible_playbook_python }}"
    host = {"ansible_connection": "local", "ansible_python_interpreter": python}
    other.write_text(json.dumps({"agents": {"hosts": {"another": host}}}))
    done = controller.terminate("moved", "-i", str(other)).check()
    assert "Session moved: TERMINATED (not reached: localhost; what it holds" in done.text
