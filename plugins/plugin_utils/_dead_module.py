# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A module that ended without a result: it was killed on its host, or its connection was."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import signal
from typing import Any

from ..module_utils._core.documents import Json
from ..module_utils._core.errors import visible

_LONGEST = 300
# A shell reports a program that signal N has ended as exit code 128 + N.
_SIGNALED = 128
_AGAIN = "run the same command again"


def explained(result: Json, step: str, host: str) -> Json:
    """The result; of a module without one, a failure that names host, cause and remedy. Ansible reports only that JSON is missing."""
    # Ansible adds what the module wrote instead of a result. No step has a key of this name.
    if "module_stdout" not in result or not result.get("failed"):
        return result
    message = f"{host}: {_cause(step, result.get('rc'), _last_line(result))}."
    # Ansible shows the text of an exception instead of the message.
    kept = {name: value for name, value in result.items() if name != "exception"}
    return {**kept, "msg": message, "failure": {"code": "unreachable", "message": message, "where": host}}


def _cause(step: str, code: Any, line: str) -> str:
    if not isinstance(code, int):
        return f"step {step} ended without a result ({line}); {_AGAIN}"
    if code < 0:
        return f"the connection of step {step} was ended by {_name(-code)} on the controller; {_AGAIN}"
    if _SIGNALED < code <= _SIGNALED + signal.NSIG:
        text = "step %s was ended by %s; if memory ran out there, free some, and %s"
        return text % (step, _name(code - _SIGNALED), _AGAIN)
    text = "step %s ended with exit code %d and without a result (%s); correct that, and %s"
    return text % (step, code, line, _AGAIN)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "signal %d" % number


def _last_line(result: Json) -> str:
    """What the host wrote instead of the result."""
    for stream in ("module_stderr", "module_stdout"):
        lines = [line.strip() for line in str(result.get(stream) or "").splitlines() if line.strip()]
        if lines:
            return visible(lines[-1][:_LONGEST].rstrip(". "))
    return "it wrote nothing"
