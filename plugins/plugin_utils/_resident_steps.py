# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Further steps on a host, in the process that the first one has left there (see ``module_utils/_core/resident.py``)."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING, Any, Dict

from ..module_utils._core.documents import Json
from ..module_utils._steps import agent, head

if TYPE_CHECKING:
    from ._action import ComputeAction

_OFTEN = {"agent_step": agent.OFTEN, "head_step": head.OFTEN}
# What a host says of itself becomes part of a command on that host.
_PATH = re.compile(r"/[A-Za-z0-9@%+=:,./_-]{1,200}")
_ABSENT = 75  # exit code, EX_TEMPFAIL of sysexits.h
# It runs in the Python of the host, and only there.
_CLIENT = (
    """
import socket, sys
steps = socket.socket(socket.AF_UNIX)
try:
    steps.connect(sys.argv[1])
except OSError:
    sys.exit(%d)
steps.sendall(sys.stdin.buffer.read())
steps.shutdown(socket.SHUT_WR)
while True:
    piece = steps.recv(65536)
    if not piece:
        break
    sys.stdout.buffer.write(piece)
"""
    % _ABSENT
)


class Residents:
    """The processes that stay on one host, by the module that has left them."""

    def __init__(self) -> None:
        self._found: Dict[str, Json] = {}

    def note(self, module: str, said: Any) -> None:
        """Remember what a module has said of the process that it has left. A host that says something else has none."""
        paths = [said.get("python"), said.get("socket")] if isinstance(said, dict) else []
        if paths and all(isinstance(path, str) and _PATH.fullmatch(path) for path in paths):
            self._found[module] = {"python": paths[0], "socket": paths[1]}

    def answer(self, action: ComputeAction, module: str, options: Json) -> Json | None:
        """The result of a step as Ansible returns that of a module; None if no process is there for it."""
        found = self._found.get(module)
        if found is None or options["call"].partition(".")[0] not in _OFTEN[module]:
            return None
        command = [found["python"], "-I", "-S", "-c", _CLIENT, found["socket"]]
        request = {"options": options, "check": action._task.check_mode, "diff": action._task.diff}
        done = action._low_level_execute_command(shlex.join(command), in_data=json.dumps(request).encode())
        if done["rc"] == _ABSENT:
            del self._found[module]
            return None
        return _parsed(done)


def _parsed(done: Json) -> Json:
    """The answer, which is one line; without one, the failure by which Ansible reports a module that wrote no JSON."""
    try:
        answer = json.loads(done["stdout"].rstrip().rpartition("\n")[2])
    except ValueError:
        answer = None
    if isinstance(answer, dict):
        return answer
    said = {"module_stdout": done["stdout"], "module_stderr": done["stderr"]}
    return {"failed": True, "_ansible_parsed": False, "rc": done["rc"] or None, **said}
