# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Results of steps: failures of lost hosts and of modules that die, the joint result of several agents, and files of results."""

from __future__ import annotations

import json
import os
import signal
from itertools import chain
from typing import Any, List, Mapping

from ...module_utils._shared.codec import Json
from ...module_utils._shared.errors import TakenError, escape_control
from .transfer_watch import write_whole

# Codes of failures that come before those that follow from them.
CAUSES = frozenset({"unreachable"})
# Not in the joint result: 2 kB for each container, and Ansible visits every value of a result several times.
_LEFT_OUT = ("containers",)
_LONGEST = 300
# A shell reports a program that signal N has ended as exit code 128 + N.
_SIGNALED = 128
_AGAIN = "run the same command again"
_NOTHING = "it wrote nothing"
# The variable of the environment that names a private directory of the command.
VARIABLE = "CLUSTER_COMPUTE_RESULTS"
# What is for people or for Ansible itself.
_FOR_PEOPLE = frozenset({"deprecations", "exception", "invocation", "lines", "unprepared", "warnings"})


def unreachable(where: str, reason: str) -> Json:
    """A lost host as a failure: Ansible rescues only failures. C(reason) is without the remedy."""
    shown = escape_control(" ".join(reason.split())[:_LONGEST].rstrip(".: "))
    message = f"{where} cannot be reached: {shown}; check its connection, and run the same command again."
    failure = {"code": "unreachable", "message": message, "where": where}
    return {"failed": True, "msg": message, "failure": failure, "reason": shown}


def failure_reason(result: Json) -> str:
    """Why a module failed, on one line of at most 300 characters."""
    reason = result.get("msg") or result.get("module_stderr") or "the module failed"
    return escape_control(" ".join(str(reason).split())[:_LONGEST])


def root_cause(result: Json) -> str:
    """Why a call failed, without a remedy, as ``failure_reason`` shows it."""
    return failure_reason({**result, "msg": result.get("reason") or result.get("msg")})


def with_failure_message(result: Json, step: str, host: str) -> Json:
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
    if code and line == _NOTHING:
        text = "step %s ended with exit code %d and wrote nothing; check that the login shell of its user there runs commands, and %s"
        return text % (step, code, _AGAIN)
    text = "step %s ended with exit code %d and without a result (%s); correct that, and %s"
    return text % (step, code, line, _AGAIN)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "signal %d" % number


def _last_line(result: Json) -> str:
    """Return what the host wrote instead of the result."""
    for stream in ("module_stderr", "module_stdout"):
        lines = [line.strip() for line in str(result.get(stream) or "").splitlines() if line.strip()]
        if lines:
            return escape_control(lines[-1][:_LONGEST].rstrip(". "))
    return _NOTHING


def joint_result(results: Mapping[str, Json]) -> Json:
    """The lists of all agents, one after the other, and the longest durations; it has failed if the call on one agent has."""
    found = list(results.values())
    names = list(dict.fromkeys(name for result in found for name in result if name not in _LEFT_OUT))
    values = {name: [result[name] for result in found if name in result] for name in names}
    lists = {
        name: list(chain.from_iterable(each))
        for name, each in values.items()
        if all(isinstance(value, list) for value in each)
    }
    durations = {name: max(each) for name, each in values.items() if name.endswith("duration")}
    differences = [item for value in values.get("diff", []) for item in as_list(value)]
    return {
        "changed": any(values.get("changed", [])),
        **lists,
        **durations,
        **({"diff": differences} if differences else {}),
        **_failure({agent: result for agent, result in results.items() if result.get("failed")}),
    }


def as_list(value: Any) -> List[Any]:
    """The differences of a result, which may be one or none."""
    return value if isinstance(value, list) else [value] if value else []


def _failure(failed: Mapping[str, Json]) -> Json:
    """Each different failure once. One that another placement can avoid decides: the launch is then repeated."""
    if not failed:
        return {}
    # An engine or a host that is lost makes others fail: its failure is the cause.
    first = sorted(failed.values(), key=lambda result: _code(result) not in CAUSES)
    failures = [dict(result.get("failure") or {}) for result in first]
    taken = [failure for failure in failures if failure.get("code") == TakenError.code]
    message = " ".join(dict.fromkeys(str(result.get("msg") or failure_reason(result)) for result in first))
    trace = next(({"exception": result["exception"]} for result in first if result.get("exception")), {})
    return {"failed": True, "msg": message, "failure": {**(taken or failures)[0], "message": message}, **trace}


def _code(result: Json) -> str:
    return str((result.get("failure") or {}).get("code") or "")


def write_result(task: Any, result: Json) -> None:
    """Write the result of a task to the directory that the environment names, by the name of its module. A failure is a warning."""
    directory = os.environ.get(VARIABLE)
    if not directory or task.no_log:
        return
    kept = {name: value for name, value in result.items() if name not in _FOR_PEOPLE and not name.startswith("_")}
    path = os.path.join(directory, str(task.action).rpartition(".")[2] + ".json")
    try:
        write_whole(path, json.dumps(kept))
    except OSError as error:
        warning = f"The result cannot be written to {path}: {error.strerror}."
        result["warnings"] = [*(result.get("warnings") or ()), warning]
