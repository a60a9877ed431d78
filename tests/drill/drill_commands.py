# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The commands of a drill: ansible-playbook, ansible and ansible-inventory with the inventory and options of its command line."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from drill_faults import DrillError
from playbook_runs import Ended, Interruption, run_watched

PLAYBOOKS = Path(__file__).resolve().parents[2] / "playbooks"
_ENGINE = "docker {{ '--host ' ~ agent_docker_host if agent_docker_host | default('') else '' }} "
_ANSWER = re.compile(r"^(\S+) \| ([A-Z]+)!? (?:\| rc=(\d+) >>|=>)", re.MULTILINE)
_UNREACHABLE_PORT = 9


class CommandLines:
    """Runs the commands. Extra variables in ``defaults`` have the least precedence, and variables of a fault have the most."""

    def __init__(
        self,
        directory: str,
        timeout: int,
        of_inventory: Sequence[str],
        of_connections: Sequence[str],
        of_playbooks: Sequence[str],
    ) -> None:
        self.defaults: Mapping[str, Any] = {}
        self._directory = directory
        self._timeout = timeout
        self._environment = {
            **os.environ,
            "ANSIBLE_STDOUT_CALLBACK": "cluster.compute.progress",
            "ANSIBLE_NOCOLOR": "1",
        }
        self._of_inventory = [*of_inventory]
        if not any(word.startswith("--inventory=") for word in of_inventory):
            self._of_inventory += self._configured()
        self._common = [*self._of_inventory, *of_connections]
        self._of_playbooks = of_playbooks

    def hosts(self) -> tuple[list[str], str, bool]:
        """The agents, the head, and whether the agents are reached by SSH."""
        inventory = self._answer("ansible-inventory", *self._of_inventory, "--list")
        agents, heads = members(inventory, "agents"), members(inventory, "head")
        if not agents:
            raise DrillError("The inventory has no host in the group agents: name an inventory of agents with -i.")
        variables = inventory["_meta"]["hostvars"]
        connections = {variables.get(agent, {}).get("ansible_connection", "ssh") for agent in agents}
        return agents, (heads or agents)[0], "local" not in connections

    def play(
        self, playbook: str, variables: Mapping[str, Any], interruption: Interruption | None = None, cut_off: str = ""
    ) -> Ended:
        """Run a playbook of the collection, and interrupt it if asked. SSH does not reach the agent ``cut_off``."""
        command = [_program("ansible-playbook"), str(PLAYBOOKS / f"{playbook}.yml"), *self._of_playbooks]
        # The last value of a variable applies.
        command += [f"--extra-vars=@{self._written('defaults', self.defaults)}", *self._common]
        if cut_off:
            lost = {"agents": {"hosts": {cut_off: {"ansible_port": _UNREACHABLE_PORT}}}}
            command += [f"--inventory={self._written('cut_off', lost)}"]
        command += [f"--extra-vars=@{self._written('variables', variables)}"]
        return run_watched(command, self._timeout, interruption, env=self._environment)

    def docker(self, hosts: str, *commands: str) -> dict[str, str]:
        """The output of commands of ``docker`` by host; a DrillError if any fails."""
        script = " && ".join(_ENGINE + "{% raw %}" + command + "{% endraw %}" for command in commands)
        ended = self._shell(hosts, script)
        found = list(_ANSWER.finditer(ended.text))
        bad = [match.group(1) for match in found if match.group(3) != "0"]
        if bad or not found:
            raise DrillError(f"{', '.join(bad) or hosts}: the command '{commands[0]}' failed: {_shown(ended.text)}.")
        ends = [match.start() for match in found[1:]] + [len(ended.text)]
        return {match.group(1): ended.text[match.end() : end].strip() for match, end in zip(found, ends, strict=False)}

    def root(self, host: str, script: str) -> None:
        """Run a script as root, without waiting for what it starts in the background."""
        as_root = f'if [ "$(id -u)" = 0 ]; then sh -c {quote(script)}; else sudo -n sh -c {quote(script)}; fi'
        ended = self._shell(host, as_root)
        if ended.code:
            raise DrillError(f"{host}: the drill cannot cause the fault: {_shown(ended.text)}.")

    def message(self, ended: Ended) -> str:
        """The last line of the output."""
        lines = [line.strip() for line in ended.text.splitlines() if line.strip()]
        return visible(lines[-1]) if lines else ""

    def _shell(self, hosts: str, script: str) -> Ended:
        command = [_program("ansible"), hosts, *self._common, "-m", "ansible.builtin.shell", "-a", script]
        return run_watched(command, self._timeout, env={**self._environment, "ANSIBLE_STDOUT_CALLBACK": "minimal"})

    def _configured(self) -> list[str]:
        """The inventory of Ansible's configuration: one on the command line would replace it."""
        settings = self._answer("ansible-config", "dump", "--format", "json")
        return [
            f"--inventory={path}"
            for setting in settings
            if setting.get("name") == "DEFAULT_HOST_LIST"
            for path in setting["value"]
        ]

    def _answer(self, program: str, *words: str) -> Any:
        """The document that a program of Ansible writes."""
        command = [_program(program), *words]
        try:
            ended = subprocess.run(
                command, capture_output=True, text=True, timeout=self._timeout, check=False, env=self._environment
            )
        except subprocess.TimeoutExpired:
            raise DrillError(f"{program} did not end within {self._timeout} s.") from None
        if ended.returncode:
            raise DrillError(f"{program} failed: {_shown(ended.stderr)}.")
        return json.loads(ended.stdout)

    def _written(self, name: str, document: Mapping[str, Any]) -> str:
        """A file with this content in the directory of the drill, which only its user reads."""
        path = os.path.join(self._directory, name + ".json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file)
        return path


def members(inventory: Mapping[str, Any], group: str) -> list[str]:
    """The hosts of a group and of the groups in it, each once.

    >>> members({"agents": {"children": ["a", "b"]}, "a": {"hosts": ["n1", "n2"]}, "b": {"hosts": ["n2"]}}, "agents")
    ['n1', 'n2']
    """
    entry = inventory.get(group, {})
    found = [*entry.get("hosts", ())]
    for child in entry.get("children", ()):
        found += members(inventory, child)
    return list(dict.fromkeys(found))


def visible(text: str) -> str:
    """Text for a terminal, without control characters.

    >>> visible("a\\x1b[2Jb")
    'a?[2Jb'
    """
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _shown(output: str) -> str:
    """The beginning of what a command wrote, in one line."""
    return visible(" ".join(output.split())[:300]).rstrip(".")


def _program(name: str) -> str:
    """A program of Ansible: of the Python that runs the drill, or of the search path."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if not found:
        raise DrillError(f"{name} is not in the search path: run the drill where ansible-playbook runs.")
    return found
