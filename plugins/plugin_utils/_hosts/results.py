# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Results of steps: failures of lost hosts and of modules that die, the joint result of several agents, and files of results."""

from __future__ import annotations

import json
import os
import signal
from itertools import chain
from typing import Any, List, Mapping, Sequence

from ...module_utils._shared.codec import ModuleResult
from ...module_utils._shared.errors import Failure, TakenError, escape_control
from .transfer_watch import write_whole

# The code of the failure of a lost host or engine, from which others follow.
UNREACHABLE = "unreachable"
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


def unreachable(where: str, reason: str) -> Failure:
    """A lost host as a failure: Ansible rescues only failures."""
    shown = one_line(reason).rstrip(".: ")
    message = f"{where} cannot be reached: {shown}; check its connection, and run the same command again."
    return Failure(message, UNREACHABLE, where, cause=shown)


def one_line(text: str) -> str:
    """The text on one line of at most 300 characters."""
    return escape_control(" ".join(text.split())[:_LONGEST])


def failure_of(result: ModuleResult) -> Failure:
    """The failure of a failed result."""
    return Failure.of_result(result, one_line(str(result.get("module_stderr") or "the module failed")))


def root_cause(failure: Failure) -> str:
    """Why a call failed, without a remedy, on one line."""
    return one_line(failure.cause or failure.message)


def with_failure_message(result: ModuleResult, step: str, host: str) -> ModuleResult:
    """The result; of a module without one, a failure that names host, cause and remedy. Ansible reports only that JSON is missing."""
    # Ansible adds what the module wrote instead of a result. No step has a key of this name.
    if "module_stdout" not in result or not result.get("failed"):
        return result
    message = f"{host}: {_cause(step, result.get('rc'), _last_line(result))}."
    # Ansible shows the text of an exception instead of the message.
    kept = {name: value for name, value in result.items() if name != "exception"}
    return {**kept, **Failure(message, UNREACHABLE, host).to_result()}


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


def _last_line(result: ModuleResult) -> str:
    """Return what the host wrote instead of the result."""
    for stream in ("module_stderr", "module_stdout"):
        lines = [line.strip() for line in str(result.get(stream) or "").splitlines() if line.strip()]
        if lines:
            return escape_control(lines[-1][:_LONGEST].rstrip(". "))
    return _NOTHING


def joint_result(results: Mapping[str, ModuleResult]) -> ModuleResult:
    """The lists of all agents, one after the other, and the longest durations."""
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
    }


def as_list(value: Any) -> List[Any]:
    """The differences of a result, which may be one or none."""
    return value if isinstance(value, list) else [value] if value else []


def joint_failure(failures: Sequence[Failure]) -> Failure:
    """Each different failure once. One that another placement can avoid decides: the launch is then repeated."""
    # An engine or a host that is lost makes others fail: its failure is the cause.
    first = sorted(failures, key=lambda failure: failure.code != UNREACHABLE)
    decisive = next((failure for failure in first if failure.code == TakenError.code), first[0])
    message = " ".join(dict.fromkeys(failure.message for failure in first))
    trace = next((failure.trace for failure in first if failure.trace), "")
    return Failure(message, decisive.code, decisive.where, trace)


def write_result(task: Any, result: ModuleResult) -> None:
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
