# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``session_exec``: it runs on the controller, whatever host the task is for."""

from __future__ import annotations

from typing import Sequence

from ..module_utils._shared.codec import Json
from ..module_utils._shared.errors import InputError
from ..module_utils._shared.planning.variable import EXEC
from ..plugin_utils._client import answers
from ..plugin_utils._client.shell import Shell
from ..plugin_utils._settings.access import Scope
from ..plugin_utils._settings.options import OPTIONS
from ..plugin_utils._settings.settings import Settings
from ..plugin_utils._variables.container_access import AccessAction


class ActionModule(AccessAction):
    """The command runs in all containers at once, as programs that wait for each other need it."""

    OPTIONS = OPTIONS["session_exec"]
    PLAYBOOK = EXEC

    def scope(self, settings: Settings) -> Scope:
        return settings.of_exec

    def work(self, shell: Shell, hosts: Sequence[str], settings: Settings) -> Json:
        if not settings.exec_command.strip():
            rule = """must be given, as in -e '{"session_exec_command": "nvidia-smi -L"}'"""
            raise InputError("session_exec_command", "", rule)
        if self._task.check_mode:
            line = f"The command would run in {answers.counted(hosts)}."
            return {"changed": True, "exit_code": 0, "containers": [], "lines": [line], "message": ""}
        given = shell.run(hosts, settings.exec_command, settings.exec_timeout)
        return {
            "changed": True,
            "exit_code": answers.worst(given),
            "containers": [answer.to_json() for answer in given],
            "lines": answers.report_answers(given, settings.exec_output),
            "message": answers.failure(given, "The command"),
        }
