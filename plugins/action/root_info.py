# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``root_info``: a command as the task runs it, whose failure is an answer."""

from __future__ import annotations

import re

from ansible.errors import AnsibleConnectionFailure, AnsibleError

from ..module_utils._core.documents import Json
from ..plugin_utils._action import ComputeAction

_LENGTH = 200
# What SSH adds when a shared connection ends.
_OF_SSH = re.compile(r"^(Shared c|C)onnection to .* closed\.?$")


def refusal(text: str) -> str:
    """Why a user did not become root: the last line of the become program, with printable characters only.

    >>> refusal("Premature end of stream waiting for become success.\\n>>> Standard Error\\nsudo: a password is required")
    'sudo: a password is required'
    """
    lines = [" ".join(line.split()) for line in text.splitlines()]
    said = [line for line in lines if line and not _OF_SSH.match(line)]
    last = "".join(char for char in said[-1] if char.isprintable()) if said else "no reason was given"
    return last[:_LENGTH].rstrip(". ")


class ActionModule(ComputeAction):
    """Before ansible-core 2.19 sudo's refusal is the result of a command, since then it is an exception."""

    def act(self, args: Json, task_vars: Json) -> Json:  # noqa: ARG002 (the check reads the task itself)
        self.validate_argument_spec(argument_spec={})
        try:
            answer = self._low_level_execute_command("id -u")
        except AnsibleConnectionFailure:
            raise
        except AnsibleError as error:
            return {"changed": False, "is_root": False, "reason": refusal(str(error))}
        is_root = answer["rc"] == 0 and answer["stdout"].split()[-1:] == ["0"]
        reason = "" if is_root else refusal(answer["stderr"] or answer["stdout"])
        return {"changed": False, "is_root": is_root, "reason": reason}
