# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps of a drill: launch, repair, interrupt and end throw-away sessions, and check that nothing of them is left."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from drill_faults import DISRUPTIVE, FULL_DIRECTORY, SEVERAL, DrillError, Fault, Times
from playbook_runs import Ended, Interruption

# The label of everything that belongs to a session. With the names of its owner and of the session, it has more parts.
LABEL_SESSION = "cluster.compute.session"
# Names of containers, as the playbooks give them.
HOSTNAME = re.compile(r"main1|sub[1-9][0-9]{0,2}")
# In this order: a container that appears meanwhile has its network.
LISTED = f"container ls --all --no-trunc --format '{{{{.ID}}}} {{{{.Label \"{LABEL_SESSION}.owner\"}}}} {{{{.Names}}}} {{{{.State}}}}'"
HOLDS = f"%s ls %s --quiet --filter label={LABEL_SESSION}.owner=%s --filter label={LABEL_SESSION}.name=%s"


class Runs(Protocol):
    """How a drill runs playbooks on the controller, and commands on hosts."""

    def play(
        self, playbook: str, variables: Mapping[str, Any], interruption: Interruption | None = None, cut_off: str = ""
    ) -> Ended:
        """Run a playbook of the collection, and interrupt it if asked. SSH does not reach the agent ``cut_off``."""

    def docker(self, hosts: str, *commands: str) -> dict[str, str]:
        """The output of commands of ``docker`` by host; a DrillError if any fails."""

    def root(self, host: str, script: str) -> None:
        """Run a script as root, without waiting for what it starts in the background."""

    def message(self, ended: Ended) -> str:
        """What the user reads at the end of a playbook."""


@dataclass(frozen=True)
class Settings:
    """What a drill uses: the faults, hosts by name, the directory for artifacts, and the permissions of its user."""

    faults: Sequence[Fault]
    agents: Sequence[str]
    head: str
    owner: str
    directory: str
    disruptive: bool = False
    full_directory: str = ""
    remote: bool = False

    @property
    def available(self) -> list[str]:
        offered = {
            SEVERAL: len(self.agents) > 1 and self.remote,
            DISRUPTIVE: self.disruptive,
            FULL_DIRECTORY: bool(self.full_directory),
        }
        return [need for need, is_there in offered.items() if is_there]


@dataclass
class Steps:
    """What the faults of a drill are made of."""

    runs: Runs
    settings: Settings
    times: Times = field(default_factory=Times)

    def _play(
        self,
        playbook: str,
        name: str,
        variables: Mapping[str, Any] | None = None,
        interruption: Interruption | None = None,
        cut_off: str = "",
    ) -> Ended:
        own = {"session_name": name, "session_owner": self.settings.owner, "session_artifacts": self.settings.directory}
        return self.runs.play(playbook, {**(variables or {}), **own}, interruption, cut_off)

    def _launch(self, name: str, kind: str = "launch", variables: Mapping[str, Any] | None = None) -> str:
        """Launch or repair a session; returns what the user reads of its state."""
        ended = self._play("cluster_session", name, variables)
        state = next((line for line in ended.text.splitlines() if line.startswith(f"Session {name}: ")), "")
        if ended.code or "RUNNING" not in state:
            raise DrillError(f"The {kind} of {name} failed: {self.runs.message(ended) or state}")
        self.times.add(kind, ended.seconds)
        return state

    def _end(self, name: str, variables: Mapping[str, Any] | None = None) -> None:
        ended = self._play("terminate", name, variables)
        if ended.code:
            raise DrillError(f"The end of {name} failed: {self.runs.message(ended)}")
        self.times.add("end", ended.seconds)

    def _refusal(self, name: str, variables: Mapping[str, Any]) -> str:
        ended = self._play("cluster_session", name, variables)
        if ended.code == 0:
            raise DrillError(f"The launch of {name} succeeded, although it should fail.")
        return self.runs.message(ended)

    def _pass(self) -> Ended:
        """A pass over the sessions of the drill."""
        own = {"session_owner": self.settings.owner, "session_artifacts": self.settings.directory}
        return self.runs.play("schedule", own)

    def _interrupt(self, playbook: str, name: str, detail: str, variables: Mapping[str, Any] | None = None) -> str:
        """Send a signal after a phase; returns what the user reads."""
        number, phase = detail.split(" ", 1)
        interruption = Interruption(lambda line: line.startswith(phase), getattr(signal, "SIG" + number))
        ended = self._play(playbook, name, variables, interruption)
        if not ended.interrupted:
            raise DrillError(f"{playbook}.yml ended before its phase '{phase}': {self.runs.message(ended)}")
        return self.runs.message(ended) if number != "KILL" else ""

    def _document(self, name: str) -> dict[str, Any]:
        """What the controller knows of a session."""
        with open(os.path.join(self.settings.directory, name, "session.json"), "rb") as file:
            document: dict[str, Any] = json.load(file)
        return document

    def _containers(self, name: str) -> dict[str, str]:
        """The agents of the containers of a session, by hostname. Both become words of commands."""
        found = {str(one["hostname"]): str(one["agent"]) for one in self._document(name)["containers"]}
        if not all(HOSTNAME.fullmatch(host) and agent in self.settings.agents for host, agent in found.items()):
            raise DrillError(
                f"The file session.json of {name} names containers or agents that the drill does not know."
            )
        return found

    def _must_answer(self, name: str) -> None:
        """Every container runs a command by SSH."""
        ended = self._play("session_exec", name, {"session_exec_command": "hostname"})
        if ended.code:
            raise DrillError(f"Session {name} does not answer after the repair: {self.runs.message(ended)}")

    def _must_be_gone(self, name: str, on_controller: bool = True) -> None:
        kinds = (("container", "--all"), ("network", ""), ("volume", ""))
        held = self.runs.docker(
            "agents", *(HOLDS % (kind, option, self.settings.owner, name) for kind, option in kinds)
        )
        left = [f"{' '.join(output.split())} on {host}" for host, output in held.items() if output.strip()]
        if on_controller and os.path.exists(os.path.join(self.settings.directory, name)):
            left.append(os.path.join(self.settings.directory, name))
        if left:
            raise DrillError(f"Something of {name} is left: {'; '.join(left)}.")

    def _others(self) -> dict[str, tuple[str, str]]:
        """The containers of sessions of other owners, by ID: name and state."""
        found = {}
        for host, output in self.runs.docker("agents", LISTED + " --filter label=" + LABEL_SESSION).items():
            for line in output.splitlines():
                identity, owner, name, state = line.split(" ", 3)
                if owner != self.settings.owner:
                    found[identity] = (f"{name} on {host}", state)
        return found

    def _start_engine(self, agent: str) -> None:
        ended = self.runs.play("provision_agents", {})
        if ended.code:
            raise DrillError(f"The engine of {agent} does not start again: {self.runs.message(ended)}")
