# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``session_exec``: it runs on the controller, whatever host the task is for."""

from __future__ import annotations

import time

from ..module_utils._core.documents import Json
from ..module_utils._core.errors import InputError
from ..module_utils._planning import answers
from ..plugin_utils._action import ComputeAction
from ..plugin_utils._session_shell import Shell

SPEC = {
    "name": {"type": "str", "required": True},
    "command": {"type": "str", "required": True},
    "containers": {"type": "list", "elements": "str", "default": []},
    "output": {"type": "str", "choices": ["prefixed", "grouped"], "default": "prefixed"},
    "timeout": {"type": "int", "default": 600},
    "artifacts": {"type": "path"},
}


class ActionModule(ComputeAction):
    """The command runs in all containers at once, as programs that wait for each other need it."""

    _requires_connection = False

    def act(self, args: Json, task_vars: Json) -> Json:  # noqa: ARG002 (the check reads the task itself)
        _valid, checked = self.validate_argument_spec(argument_spec=SPEC)
        if not checked["command"].strip():
            raise InputError(
                "session_exec_command", "", """must be given, as in -e '{"session_exec_command": "nvidia-smi -L"}'"""
            )
        if checked["timeout"] < 1:
            raise InputError("timeout", checked["timeout"], "must be at least 1")
        shell = Shell(checked["artifacts"] or "", checked["name"])
        hosts = answers.chosen(shell.document, checked["containers"], "session_exec_containers")
        if self._task.check_mode:
            line = f"The command would run in {answers.counted(hosts)}."
            return {"changed": True, "exit_code": 0, "containers": [], "lines": [line], "message": ""}
        begun = time.monotonic()
        given = shell.run(hosts, checked["command"], checked["timeout"])
        return {
            "changed": True,
            "exit_code": answers.worst(given),
            "containers": [answer.to_json() for answer in given],
            "lines": answers.report(given, checked["output"]),
            "message": answers.failure(given, "The command"),
            "duration": round(time.monotonic() - begun, 3),
        }
