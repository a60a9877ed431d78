# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Batch commands and their results: the output and the exit code of the playbook, the list of sessions, the logs.

Each test ends its session: every report on this engine, of all tests, reads the exit code of a command that has ended.
"""

from __future__ import annotations

import re
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from answered_run import run_answered
from controller import ROOT, SMALL, Controller, Done, Session
from docker.errors import NotFound

# A command runs in main1. Tests that need another container launch a pair.
TINY: dict[str, Any] = {**SMALL, "session_wait_result": True}
PAIR = {"session_cluster_size": 2}
HUNGRY = "echo begun; python3 -c 'x = bytearray(200 << 20); print(len(x))'"


def row_of(controller: Controller, name: str) -> dict[str, Any]:
    """The record of a session in the store."""
    return next(row for row in controller.sessions() if row["name"] == name)


@dataclass(frozen=True)
class End:
    """How a command ends, and what the collection reports about it."""

    name: str
    variables: dict[str, Any]
    result: str
    reason: str
    log: str
    state: str = "RUNNING"

    def launch(self, controller: Controller) -> Done:
        return controller.play("cluster_session", session_name=self.name, **{**TINY, **self.variables})


GO = {"session_terminate_when_done": True}
ENDS = [
    End(
        "well",
        {"session_command": "echo on $(hostname)", **PAIR},
        "SUCCESS",
        "the command ended with exit code 0",
        "on main1",
    ),
    End(
        "exit-3", {"session_command": "echo before; exit 3"}, "FAILURE", "the command ended with exit code 3", "before"
    ),
    End(
        "hungry",
        {"session_command": HUNGRY, **GO},
        "FAILURE",
        "the command ended with exit code 137, out of memory",
        "memory ran out",
        "TERMINATED",
    ),
    End(
        "endless",
        {"session_command": "echo begun; sleep 1000", "session_command_timeout": 2, **GO},
        "FAILURE",
        "the command exceeded session_command_timeout and was terminated",
        "took longer than 2 s",
        "TERMINATED",
    ),
]


@pytest.mark.parametrize("end", ENDS, ids=[end.name for end in ENDS])
def test_the_playbook_and_the_logs_show_how_a_command_ended(controller: Controller, end: End) -> None:
    """The playbook by its exit code and output, the logs also after the session has ended."""
    done = end.launch(controller)
    assert done.code == (0 if end.result == "SUCCESS" else 2), done.text
    # Ansible folds long lines of its YAML output.
    assert f"Session {end.name}: {end.result}, {end.reason}" in " ".join(done.text.split())
    assert end.log in controller.play("session_logs", session_name=end.name).check().text
    assert bool(controller.engine(end.name)) == (end.state == "RUNNING")


def test_a_finished_job_ends_by_itself_and_its_result_and_logs_stay(controller: Controller) -> None:
    """No controller waits for it. PID 1 of each container ends, and the next command of anyone records the rest."""
    job = {**TINY, **PAIR, **GO, "session_command": "echo the last line; exit 3", "session_wait_result": False}
    controller.play("cluster_session", session_name="finished", **job).check()
    deadline = time.monotonic() + 120
    while {one["State"]["ExitCode"] for one in Session(controller, "finished").containers().values()} != {83, 84}:
        assert time.monotonic() < deadline
        time.sleep(0.5)
    controller.terminate("other").check()
    row = row_of(controller, "finished")
    assert (row["state"], row["result"]) == ("TERMINATED", "FAILURE")
    assert row["reason"] == "the command ended with exit code 3"
    assert controller.engine("finished") == {}
    assert "main1: the last line" in controller.play("session_logs", session_name="finished").check().text


def test_the_list_shows_how_each_command_ended(controller: Controller) -> None:
    listed = {row["name"]: (row["state"], row["result"], row["reason"]) for row in controller.sessions()}
    assert {end.name: listed[end.name] for end in ENDS} == {
        end.name: (end.state, end.result, end.reason) for end in ENDS
    }
    controller.terminate("well").check()


def test_another_command_runs_in_the_same_session_once_the_former_has_ended(controller: Controller) -> None:
    """The same launch with another command runs it; while a command runs, a third is refused and changes nothing."""
    session = Session(controller, "exit-3")
    before = session.containers()["main1"]["Id"]
    second = {
        **TINY,
        "session_name": "exit-3",
        "session_command": "echo second; until [ -e go-on ]; do sleep 0.2; done",
    }
    assert "would run" in controller.play("cluster_session", "--check", **second).check().text
    begun = controller.play("cluster_session", **{**second, "session_wait_result": False}).check()
    assert "RUNNING, another command runs now" in begun.text
    row = row_of(controller, "exit-3")
    assert (row["state"], row["result"]) == ("RUNNING", "")
    assert session.document["command"] == {"result": "", "reason": ""}
    third = controller.play("cluster_session", **{**second, "session_command": "echo third"})
    assert third.code == 2
    assert "the former command of session exit-3 still runs on localhost" in third.message
    session.say("main1", "touch go-on")
    ended = controller.play("cluster_session", **second).check()
    assert "Session exit-3: SUCCESS, the command ended with exit code 0" in " ".join(ended.text.split())
    last = controller.play("cluster_session", **{**second, "session_command": "echo last; exit 3"})
    assert (last.code, "main1: last" in last.text, "main1: second" in last.text) == (2, True, False)
    assert session.containers()["main1"]["Id"] == before
    notes = [entry["reason"] for entry in row_of(controller, "exit-3")["history"]]
    replaced = "another session_command replaces the former"
    codes = ["the command ended with exit code %d" % code for code in (3, 0, 3)]
    assert notes[-5:] == [codes[0], replaced, codes[1], replaced, codes[2]]


def test_the_result_outlives_the_session(controller: Controller) -> None:
    controller.terminate("exit-3").check()
    row = row_of(controller, "exit-3")
    assert (row["state"], row["result"]) == ("TERMINATED", "FAILURE")
    assert row["reason"] == "the command ended with exit code 3"


def test_a_launch_that_does_not_wait_can_be_repeated_to_wait(controller: Controller) -> None:
    """The playbook returns at once; the second playbook waits for the same run of the command."""
    batch = {**TINY, "session_wait_result": False, "session_command": "echo once; sleep 1; exit 5"}
    controller.play("cluster_session", session_name="alone", **batch).check()
    again = controller.play("cluster_session", session_name="alone", **{**batch, "session_wait_result": True})
    assert again.code == 2
    assert "the command ended with exit code 5" in again.message
    assert again.changed == 0
    main = Session(controller, "alone").containers()["main1"]["Id"]
    assert controller.client.logs(main, stderr=False).decode() == "once\n"
    controller.terminate("alone").check()


def test_the_output_is_shown_while_the_command_runs(controller: Controller) -> None:
    """The command goes on only after its first line has been seen."""
    command = r"echo begun; until [ -e go-on ]; do sleep 0.2; done; printf 'a\033[2Jb\n'; exit 3"
    variables = {**TINY, "session_name": "watched", "session_command": command}
    session = Session(controller, "watched")
    arguments = controller.command("cluster_session", **variables)
    done = run_answered(arguments, "main1: begun", lambda: session.say("main1", "touch go-on"), controller)
    assert done.code == 2
    assert r"main1: a\x1b[2Jb" in done.text
    assert done.text.count("main1: begun") == 1
    assert session.document["command"] == {"result": "FAILURE", "reason": "the command ended with exit code 3"}
    assert re.search(r"RUNNING \(command failed\) ", controller.play("sessions").check().text)
    controller.terminate("watched").check()


def test_a_bootstrap_script_that_fails_undoes_the_launch(controller: Controller) -> None:
    """The error shows the last lines of the script, the kept log shows all, and nothing is left."""
    script = "echo at first; seq 20; echo preparing; ls /nowhere; exit 4"
    done = controller.play("cluster_session", session_name="unprepared", session_bootstrap=script, **TINY)
    assert done.code == 2
    for wanted in ("was not launched", "preparing", "cannot access '/nowhere'", "failed with exit code 4"):
        assert wanted in done.message
    assert "at first" not in done.message
    assert "at first" in controller.play("session_logs", session_name="unprepared").check().text
    assert row_of(controller, "unprepared")["state"] == "ERROR"
    assert controller.engine("unprepared") == {}


def test_a_bootstrap_script_runs_before_the_command(controller: Controller) -> None:
    """In every container and as the user."""
    scripts = {
        "session_bootstrap": "echo $BACKENDAI_CLUSTER_HOST by $(id -un) >prepared",
        "session_command": "cat prepared; ssh sub1 cat prepared",
    }
    controller.play("cluster_session", session_name="prepared", **scripts, **TINY, **PAIR).check()
    main = Session(controller, "prepared").containers()["main1"]["Id"]
    assert controller.client.logs(main, stderr=False).decode().splitlines() == ["main1 by work", "sub1 by work"]
    controller.terminate("prepared").check()


def test_a_command_runs_again_if_main1_died_and_not_if_it_has_ended(controller: Controller) -> None:
    """A repeated launch starts main1 and its command again; a command that has ended is not repeated."""
    command = "echo begun; [ ! -e seen ] || exit 4; touch seen; sleep 1000"
    batch = {**TINY, "session_wait_result": False, "session_command": command}
    controller.play("cluster_session", session_name="again", **batch).check()
    client, main = controller.client, Session(controller, "again").containers()["main1"]["Id"]
    deadline = time.monotonic() + 60
    while "begun" not in client.logs(main).decode():
        assert time.monotonic() < deadline
        time.sleep(0.2)
    client.restart(main, timeout=5)
    assert "RUNNING (command does not run)" in controller.play("sessions").check().text
    client.kill(main)
    for _time in range(2):
        ended = controller.play("cluster_session", session_name="again", **{**batch, "session_wait_result": True})
        assert "the command ended with exit code 4" in ended.message
        assert client.logs(main, stderr=False).decode().split() == ["begun"] * 2
        client.restart(main, timeout=5)
    controller.terminate("again").check()


class Training:
    """The PyTorch example on two containers in the background, with more epochs than it can finish."""

    def __init__(self, controller: Controller, name: str, image: str, policy: str) -> None:
        self.session = Session(controller, name)
        variables = {"session_name": name, "session_image": image, "session_on_failure": policy}
        asked = {**variables, "session_command": "everywhere train.py 100000", "session_cluster_size": 2}
        command = controller.command("cluster_session", "-e", "@examples/pytorch/session.yml", **asked)
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=controller.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        self.text = ""
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self) -> None:
        if self.process.stdout:
            self.text = self.process.stdout.read()

    def wait_for(self, words: str) -> None:
        """Wait until the log of main1 contains these words."""
        deadline = time.monotonic() + 180
        while words not in self._log("main1"):
            assert time.monotonic() < deadline
            assert self.process.poll() is None, self.text
            time.sleep(0.5)

    def _log(self, hostname: str) -> str:
        """What a container has written; nothing if it does not exist."""
        container = self.session.containers().get(hostname)
        with suppress(NotFound):
            return str(self.session.controller.client.logs(container["Id"]).decode()) if container else ""
        return ""

    def end(self) -> Done:
        code = self.process.wait(timeout=180)
        self.reader.join()
        return Done(code, self.text)


@pytest.mark.parametrize("policy", ["keep", pytest.param("terminate", marks=pytest.mark.large)])
def test_a_container_that_is_killed_fails_the_training(
    controller: Controller, image: Callable[[str], str], policy: str
) -> None:
    """The other ranks fail; the session stays degraded or is terminated, as session_on_failure says."""
    training = Training(controller, f"lost-{policy}", image("pytorch"), policy)
    training.wait_for("epoch 1 of 100000")
    controller.client.kill(training.session.containers()["sub1"]["Id"])
    assert training.end().code == 2, training.text
    row = row_of(controller, training.session.name)
    if policy == "keep":
        assert (row["state"], row["result"], row["degraded"]) == ("RUNNING", "FAILURE", ["sub1"])
        listed = " ".join(controller.play("sessions").check().text.split())
        assert re.search(r"sub1 on localhost ended with exit code 137; the command ended with exit code \d+", listed)
        controller.terminate(training.session.name).check()
    else:
        assert (row["state"], row["result"]) == ("TERMINATED", "FAILURE")
        assert "exit code" in row["reason"]
    assert controller.engine(training.session.name) == {}
