# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``drill``: it runs playbooks and commands as processes of the controller, on the inventory of this playbook."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import sys
import tempfile
from typing import Dict, List

from ansible import context
from ansible.utils.vars import load_extra_vars

from ..module_utils._core.documents import Json
from ..module_utils._core.errors import ComputeError
from ..module_utils._core.text import visible
from ..module_utils._planning.options import OPTIONS
from ..module_utils._planning.variable import DRILL
from ..plugin_utils import _drill_faults as faults
from ..plugin_utils._action import ComputeAction
from ..plugin_utils._conduct.variables import checked
from ..plugin_utils._drill import Drill, quoted
from ..plugin_utils._drill_steps import Settings
from ..plugin_utils._playbook_runs import Ended, Interruption, run_watched
from ..plugin_utils._progress import TERMINAL
from ..plugin_utils._report_file import nice, write

# The parts of the result that the file has.
_WRITTEN = ("outcomes", "times", "others", "passed")
# What a command line may say about how hosts are reached.
_PASSED_ON = {
    "remote_user": "--user",
    "private_key_file": "--private-key",
    "connection": "--connection",
    "ssh_common_args": "--ssh-common-args",
    "ssh_extra_args": "--ssh-extra-args",
    "connection_password_file": "--connection-password-file",
    "become_password_file": "--become-password-file",
}
_ENGINE = "docker {{ '--host ' ~ agent_docker_host if agent_docker_host | default('') else '' }} "
_ANSWER = re.compile(r"^(\S+) \| ([A-Z]+)!? (?:\| rc=(\d+) >>|=>)", re.MULTILINE)
_UNREACHABLE_PORT = 9


class ActionModule(ComputeAction):
    """Connects to no host itself."""

    _requires_connection = False
    OPTIONS = OPTIONS["drill"]

    def act(self, args: Json, task_vars: Json) -> Json:  # noqa: ARG002 (the options are read with the variables)
        wanted = checked(self, task_vars, DRILL)["variables"]
        seconds = int(OPTIONS["drill"].own_values(self.given)["timeout"])
        chosen = faults.chosen(wanted["drill_faults"])
        agents = [str(host) for host in task_vars.get("ansible_play_hosts_all") or []]
        if self._task.check_mode:
            lines = [f"{fault.name} would run." for fault in chosen]
            return {"changed": False, "outcomes": [], "passed": True, "message": "", "lines": lines}
        folder = tempfile.mkdtemp(prefix="cluster-compute-drill-")
        try:
            runs = CommandLines(folder, seconds)
            settings = self._settings(chosen, agents, folder, wanted, task_vars)
            result = Drill(runs, settings).run(self._show)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if wanted["drill_file"]:
            write(wanted["drill_file"], nice({name: result[name] for name in _WRITTEN}) + "\n", 0o644, check=False)
        return {"changed": False, **result}

    def _settings(
        self, chosen: List[faults.Fault], agents: List[str], folder: str, wanted: Json, task_vars: Json
    ) -> Settings:
        head = ((task_vars.get("groups") or {}).get("head") or agents)[0]
        hostvars = task_vars.get("hostvars") or {}
        connections = {str((hostvars.get(agent) or {}).get("ansible_connection", "ssh")) for agent in agents}
        return Settings(
            faults=chosen,
            agents=agents,
            head=str(head),
            owner="drill-" + secrets.token_hex(3),
            folder=os.path.join(folder, "artifacts"),
            given=[str(name) for name in load_extra_vars(self._loader)],
            disruptive=bool(wanted["drill_disruptive"]),
            full_folder=str(wanted["drill_full_folder"] or ""),
            remote="local" not in connections,
        )

    def _show(self, line: str) -> None:
        self._display.display(TERMINAL.clear + line)


class CommandLines:
    """Runs ansible-playbook and ansible with the inventory and the connection options of this command line."""

    def __init__(self, folder: str, timeout: int) -> None:
        self._folder = folder
        self._timeout = timeout
        self._common = [word for source in context.CLIARGS.get("inventory") or () for word in ("--inventory", source)]
        for name, option in _PASSED_ON.items():
            value = context.CLIARGS.get(name)
            if value:
                self._common += [option, str(value)]
        for vault in context.CLIARGS.get("vault_ids") or ():
            self._common += ["--vault-id", vault]
        for password in context.CLIARGS.get("vault_password_files") or ():
            self._common += ["--vault-password-file", password]
        # Those of the drill come last, and win.
        self._common += [word for text in context.CLIARGS.get("extra_vars") or () for word in ("--extra-vars", text)]
        self._environment = {
            **os.environ,
            "ANSIBLE_STDOUT_CALLBACK": "cluster.compute.progress",
            "ANSIBLE_NOCOLOR": "1",
        }

    def play(self, playbook: str, variables: Json, interruption: Interruption | None = None) -> Ended:
        """Run a playbook of the collection. ``drill_unreachable`` names an agent that SSH must not reach."""
        given = dict(variables)
        command = [sys.executable, "-m", "ansible", "playbook", "cluster.compute." + playbook, *self._common]
        lost = given.pop("drill_unreachable", "")
        if lost:
            command += ["--inventory", self._lost(str(lost))]
        path = os.path.join(self._folder, "variables.json")
        with open(path, "w", encoding="utf-8", opener=_private) as file:
            json.dump(given, file)
        command += ["--extra-vars", "@" + path]
        return run_watched(command, self._timeout, interruption, env=self._environment)

    def docker(self, hosts: str, *commands: str) -> Dict[str, str]:
        script = " && ".join(_ENGINE + "{% raw %}" + command + "{% endraw %}" for command in commands)
        ended = self._shell(hosts, script)
        found = list(_ANSWER.finditer(ended.text))
        bad = [match.group(1) for match in found if match.group(3) != "0"]
        if bad or not found:
            reason = visible(" ".join(ended.text.split())[:300])
            raise ComputeError(f"{', '.join(bad) or hosts}: the command '{commands[0]}' failed: {reason.rstrip('.')}.")
        ends = [match.start() for match in found[1:]] + [len(ended.text)]
        return {match.group(1): ended.text[match.end() : end].strip() for match, end in zip(found, ends)}

    def root(self, host: str, script: str) -> None:
        as_root = f'if [ "$(id -u)" = 0 ]; then sh -c {quoted(script)}; else sudo -n sh -c {quoted(script)}; fi'
        ended = self._shell(host, as_root)
        if ended.code:
            reason = visible(" ".join(ended.text.split())[:300])
            raise ComputeError(f"{host}: the drill cannot cause the fault: {reason.rstrip('.')}.")

    def message(self, ended: Ended) -> str:
        """The last line of the output."""
        lines = [line.strip() for line in ended.text.splitlines() if line.strip()]
        return visible(lines[-1]) if lines else ""

    def _shell(self, hosts: str, script: str) -> Ended:
        command = [
            sys.executable,
            "-m",
            "ansible",
            "adhoc",
            hosts,
            *self._common,
            "-m",
            "ansible.builtin.shell",
            "-a",
            script,
        ]
        environment = {**self._environment, "ANSIBLE_STDOUT_CALLBACK": "minimal"}
        return run_watched(command, self._timeout, env=environment)

    def _lost(self, agent: str) -> str:
        """An inventory in which the agent has a port at which nothing listens."""
        path = os.path.join(self._folder, "lost.json")
        with open(path, "w", encoding="utf-8", opener=_private) as file:
            json.dump({"agents": {"hosts": {agent: {"ansible_port": _UNREACHABLE_PORT}}}}, file)
        return path


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
