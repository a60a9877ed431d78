# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``session_copy``: it runs on the controller, whatever host the task is for."""

from __future__ import annotations

import os
import time

from ..module_utils._core.documents import Json
from ..module_utils._core.errors import InputError
from ..module_utils._planning import answers
from ..plugin_utils._action import ComputeAction
from ..plugin_utils._session_copy import NOTHING, Copy
from ..plugin_utils._session_shell import Shell

SPEC = {
    "name": {"type": "str", "required": True},
    "direction": {"type": "str", "choices": ["to", "from"], "default": "to"},
    "source": {"type": "str", "required": True},
    "target": {"type": "str", "default": "."},
    "containers": {"type": "list", "elements": "str", "default": []},
    "timeout": {"type": "int", "default": 3600},
    "artifacts": {"type": "path"},
}


class ActionModule(ComputeAction):
    """A copy that fails in one container goes on in the others."""

    _requires_connection = False

    def act(self, args: Json, task_vars: Json) -> Json:  # noqa: ARG002 (the check reads the task itself)
        _valid, checked = self.validate_argument_spec(argument_spec=SPEC)
        if not checked["source"].strip("/"):
            raise InputError(
                "session_copy_source", checked["source"], "must be given, as in -e session_copy_source=data"
            )
        if checked["timeout"] < 1:
            raise InputError("timeout", checked["timeout"], "must be at least 1")
        is_to = checked["direction"] == "to"
        shell = Shell(checked["artifacts"] or "", checked["name"])
        hosts = answers.chosen(shell.document, checked["containers"], "session_copy_containers")
        source, target = checked["source"].rstrip("/"), checked["target"]
        source, target = (_here(source), target) if is_to else (source, _here(target))
        if self._task.check_mode:
            line = f"{source} would be copied {checked['direction']} {answers.counted(hosts)}."
            return {"changed": True, "containers": [], "lines": [line], "message": ""}
        begun = time.monotonic()
        copy = Copy(shell, source, target, begun + checked["timeout"])
        done = copy.to_all(hosts) if is_to else copy.from_all(hosts)
        return {
            "changed": any(not answer.code and answer.content != NOTHING for answer in done),
            "containers": [answer.to_json() for answer in done],
            "lines": [line for answer in done for line in _line(answer)],
            "message": answers.failure(done, "The copy"),
            "duration": round(time.monotonic() - begun, 3),
        }


def _line(answer: answers.Answer) -> list[str]:
    return [] if answer.problem else answers.report([answer], "prefixed")


def _here(path: str) -> str:
    """A path of the controller, relative to the working directory of the command and not to the playbook."""
    return os.path.abspath(os.path.join(os.environ.get("PWD", os.getcwd()), os.path.expanduser(path)))
