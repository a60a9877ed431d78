# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A drill: throw-away sessions of an owner of their own are launched, broken, repaired and ended by the playbooks themselves.

Every fault checks at its end that nothing of its session is left on any agent and on the controller.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from shlex import quote
from typing import Any

from drill_faults import FAILED, NOT_RUN, OK, DrillError, Fault, Outcome, lacking, report
from drill_steps import LABEL_SESSION, Steps

# The file with the secret of a session, which cannot be written again.
IDENTITY = "identity"
CUT_SECONDS = 25
# How long a host is lost, and how long it must not have answered before a pass moves what it holds.
LOST_SECONDS, LOST_AFTER = 180, 10
REJECT = "-p tcp --dport {{ ansible_port | default(22) }} -j REJECT --reject-with tcp-reset"
# Waits until a session has containers, but not into a later drill.
CREATED_SECONDS = 300
_UNTIL_CREATED = f"until docker ps --quiet --all --filter label={LABEL_SESSION}.name=%s | grep -q .; do :; done"
CREATED = f"timeout {CREATED_SECONDS} sh -c '{_UNTIL_CREATED}' || exit; "
KILL_ENGINE = "kill -9 $(cat /var/run/docker.pid); while docker version >/dev/null 2>&1; do :; done"


class Drill(Steps):
    """Runs the faults, one after the other."""

    def run(self, progress: Callable[[str], None] = print) -> dict[str, Any]:
        """All faults, and a comparison of the containers of others before and after them."""
        before = self._others()
        outcomes = []
        for fault in self.settings.faults:
            outcomes.append(self._outcome(fault))
            progress(f"{fault.name}: {outcomes[-1].verdict}")
        after = self._others()
        changed = sorted(
            name for identity, (name, state) in before.items() if after.get(identity, (name, ""))[1] != state
        )
        others = {"count": len(before), "changed": changed}
        failed = [one for one in outcomes if one.verdict == FAILED]
        return {
            "outcomes": [one.to_json() for one in outcomes],
            "times": self.times.to_json(),
            "others": others,
            "passed": not failed and not changed,
            "lines": report(outcomes, self.times.to_json(), others),
        }

    def _outcome(self, fault: Fault) -> Outcome:
        reason = lacking(fault, self.settings.available)
        if reason:
            return Outcome(fault.name, NOT_RUN, reason)
        name = "drill-" + "".join(letter if letter.isalnum() else "-" for letter in fault.name)
        begun = time.monotonic()
        try:
            message = str(getattr(self, fault.action)(name, fault.detail))
            self._must_be_gone(name)
            verdict = OK
        except (DrillError, OSError, ValueError) as error:
            verdict, message = FAILED, str(error)
            self._play("terminate", name)
        except KeyboardInterrupt:
            self._end(name)
            raise
        return Outcome(fault.name, verdict, message, time.monotonic() - begun)

    def _answering(self, name: str, message: str) -> str:
        """Check that every container answers after a fault, and end the session. Returns the message for the user."""
        self._must_answer(name)
        self._end(name)
        return message

    def _begin(self, host: str, script: str) -> None:
        """Begin a script as root that goes on in the background."""
        self.runs.root(host, f"nohup sh -c {quote(script)} >/dev/null 2>&1 </dev/null &")

    # Faults: each returns what the user reads.

    def break_container(self, name: str, command: str) -> str:
        """A container of a running session is lost: the next launch repairs the session."""
        self._launch(name)
        agent = self._containers(name)["sub1" if "{sub}" in command else "main1"]
        prefix = f"{self.settings.owner}.{name}."
        self.runs.docker(agent, command.format(sub=prefix + "sub1", main=prefix + "main1"))
        return self._answering(name, self._launch(name, "repair"))

    def all_killed(self, name: str, _detail: str) -> str:
        """Every container ends at once, as after a restart of their hosts: the next launch repairs the session."""
        self._launch(name)
        for host, agent in self._containers(name).items():
            self.runs.docker(agent, f"kill {self.settings.owner}.{name}.{host}")
        return self._answering(name, self._launch(name, "repair"))

    def all_restarted(self, name: str, _detail: str) -> str:
        """A container dies in a session whose containers restart together: the next pass restarts them."""
        self._launch(name, "launch", {"session_on_failure": "restart_all"})
        self.runs.docker(self._containers(name)["sub1"], f"kill {self.settings.owner}.{name}.sub1")
        ended, wanted = self._pass(), f"Session {name}: RUNNING, all containers restarted"
        message = next((line for line in ended.text.splitlines() if line.startswith(wanted)), "")
        if not message:
            raise DrillError(f"A pass did not restart {name}: {self.runs.message(ended)}")
        return self._answering(name, message)

    def kill_growth(self, name: str, detail: str) -> str:
        """The controller is killed while a session gets another container: the same command continues."""
        return self._killed_change(name, detail, 1)

    def kill_shrink(self, name: str, detail: str) -> str:
        """The controller is killed while a session loses a container: the same command continues."""
        return self._killed_change(name, detail, -1)

    def _killed_change(self, name: str, detail: str, by: int) -> str:
        self._launch(name)
        wanted = {"session_cluster_size": len(self._containers(name)) + by}
        self._interrupt("cluster_session", name, detail, wanted)
        message = self._launch(name, "repair", wanted)
        if len(self._containers(name)) != wanted["session_cluster_size"]:
            raise DrillError(f"Session {name} has not another size: {message}")
        return self._answering(name, message)

    def kill_launch(self, name: str, detail: str) -> str:
        """The controller of a launch is killed: the same command launches the session."""
        self._interrupt("cluster_session", name, detail)
        return self._answering(name, self._launch(name, "repair"))

    def stop_launch(self, name: str, detail: str) -> str:
        """The user stops a launch, reads what it leaves, and ends the session."""
        message = self._interrupt("cluster_session", name, detail)
        if f"terminate.yml -e session_name={name}" not in message:
            raise DrillError(f"The interrupted launch does not say how to end the session: {message}")
        self._end(name)
        return message

    def kill_end(self, name: str, detail: str) -> str:
        """The controller of an end is killed: the next end removes everything."""
        self._launch(name)
        message = self._interrupt("terminate", name, detail)
        self._end(name)
        return message or "Nothing; the next terminate.yml or pass ends the session."

    def refused(self, name: str, detail: str) -> str:
        """A launch that cannot succeed fails with one message."""
        wrong: dict[str, dict[str, Any]] = {
            "image": {"session_image": "cluster-compute-drill/no-such-image:1", "session_pull": "never"},
            "bootstrap": {"session_bootstrap": "echo the drill lets this fail; exit 3"},
        }
        return self._refusal(name, wrong[detail])

    def port_taken(self, name: str, _detail: str) -> str:
        """Two sessions may publish the same single port."""
        self._launch(name)
        port = self._document(name)["apps"][0]["port"]
        only = {
            "session_port_range": "%d-%d" % (port, port),
            "session_agents": [next(iter(self._containers(name).values()))],
        }
        message = self._refusal(name + "-too", {**only, "session_agents_policy": "strict"})
        self._must_answer(name)
        self._must_be_gone(name + "-too")
        self._end(name)
        return message

    def pending(self, name: str, _detail: str) -> str:
        """A session waits while no agent takes sessions, and can be ended."""
        ended = self._play("cluster_session", name, {"agent_schedulable": False})
        line = next((line for line in ended.text.splitlines() if "PENDING" in line), "")
        if ended.code or not line:
            raise DrillError(f"A session that no agent takes is not PENDING: {self.runs.message(ended)}")
        self._end(name)
        return line

    def directory_lost(self, name: str, _detail: str) -> str:
        """The controller loses the keys of a running session: its user can still end it."""
        self._launch(name)
        shutil.rmtree(os.path.join(self.settings.directory, name))
        ended = self._play("session_exec", name, {"session_exec_command": "hostname"})
        if ended.code == 0:
            raise DrillError(f"A command ran in {name}, although its keys are lost.")
        self._end(name)
        return self.runs.message(ended)

    def files_lost(self, name: str, _detail: str) -> str:
        """The controller loses all files of a running session but the secret: the next launch writes them again."""
        self._launch(name)
        directory = os.path.join(self.settings.directory, name)
        for file in os.listdir(directory):
            if file != IDENTITY:
                os.unlink(os.path.join(directory, file))
        return self._answering(name, self._launch(name, "repair"))

    def store_lost(self, name: str, _detail: str) -> str:
        """The head loses its store: sessions are found by their labels. The drill uses a store of its own for this."""
        store = {"session_state_dir": f"/tmp/cluster-compute-drill-{self.settings.owner}"}
        self._launch(name, "launch", store)
        self.runs.root(self.settings.head, f"rm -rf {store['session_state_dir']}")
        try:
            message = self._launch(name, "repair", store)
            self._must_answer(name)
            self._end(name, store)
        finally:
            self.runs.root(self.settings.head, f"rm -rf {store['session_state_dir']}")
        return message

    def agent_cut_off(self, name: str, _detail: str) -> str:
        """An agent cannot be reached while a session ends; the next end removes what it holds."""
        self._launch(name)
        agent = list(self._containers(name).values())[-1]
        ended = self._play("terminate", name, cut_off=agent)
        line = next((line for line in ended.text.splitlines() if agent in line), self.runs.message(ended))
        self._end(name)
        return line

    def disk_full(self, name: str, _detail: str) -> str:
        """The store's file system is full: the session can still be ended."""
        directory = self.settings.full_directory
        store = {"session_state_dir": directory + "/cluster-compute-drill"}
        filler = directory + "/cluster-compute-drill-filler"
        self._launch(name, "launch", store)
        self.runs.root(self.settings.head, f"cat /dev/zero > {filler} 2>/dev/null; true")
        try:
            ended = self._play("terminate", name, store)
            self._must_be_gone(name, on_controller=False)
        finally:
            self.runs.root(self.settings.head, f"rm -f {filler}")
        self._end(name, store)
        self.runs.root(self.settings.head, f"rm -rf {store['session_state_dir']}")
        return self.runs.message(ended)

    def engine_killed_in_launch(self, name: str, _detail: str) -> str:
        """An engine dies while it starts containers: the launch fails, and nothing stays when the engine is back."""
        agent = self.settings.agents[-1]
        only = {"session_agents": [agent], "session_agents_policy": "strict"}
        self._begin(agent, CREATED % name + KILL_ENGINE)
        try:
            message = self._refusal(name, only)
        finally:
            self._start_engine(agent)
        self._end(name)
        return message

    def engine_killed(self, name: str, _detail: str) -> str:
        """An engine dies under a running session: when it is back, the next launch repairs the session."""
        self._launch(name)
        agent = list(self._containers(name).values())[-1]
        self.runs.root(agent, KILL_ENGINE)
        try:
            message = self._refusal(name, {})
        finally:
            self._start_engine(agent)
        self._launch(name, "repair")
        return self._answering(name, message)

    def host_cut_off(self, name: str, _detail: str) -> str:
        """A host rejects SSH for a while during a launch; the rule removes itself."""
        agent = self.settings.agents[-1]
        only = {"session_agents": [agent], "session_agents_policy": "strict"}
        cut = "iptables -I INPUT %s; sleep %d; iptables -D INPUT %s" % (REJECT, CUT_SECONDS, REJECT)
        self._begin(agent, CREATED % name + cut)
        message = self._refusal(name, only)
        time.sleep(CUT_SECONDS)  # the rule is in force for exactly this long
        self._end(name)
        return message

    def host_lost(self, name: str, _detail: str) -> str:
        """A host and its engine answer nothing for a while: passes make its containers elsewhere, and clean it when it is back."""
        agent = [one for one in self.settings.agents if one != self.settings.head][-1]
        moves = {"session_on_lost": "relocate", "session_lost_after": LOST_AFTER}
        self._launch(name, "launch", {"session_agents": [agent], **moves})
        freeze = f"kill -STOP $(cat /var/run/docker.pid); sleep {LOST_SECONDS}; kill -CONT $(cat /var/run/docker.pid)"
        # The command that begins this still has its answer.
        lost = f"sleep 5; iptables -I INPUT {REJECT}; {freeze}; iptables -D INPUT {REJECT}"
        begun, message = time.monotonic(), ""
        self._begin(agent, lost)
        # The first pass notices it, a later one moves the session, once a manager of the Swarm has lost the host, too.
        while not message and time.monotonic() < begun + LOST_SECONDS:
            time.sleep(LOST_AFTER)
            message = next((line for line in self._pass().text.splitlines() if f"in place of {agent}" in line), "")
        time.sleep(max(0.0, begun + LOST_SECONDS + LOST_AFTER - time.monotonic()))
        self._pass()
        if not message or agent in self._containers(name).values():
            raise DrillError(f"No pass has moved {name} off {agent} within {LOST_SECONDS} s.")
        return self._answering(name, message)
