# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a module: options that modules share, and the only place where a result or a failure leaves a module.

A module that works on a host has an ``ARGUMENT_SPEC`` and ``work(params, check_mode) -> result``. Its ``main`` calls ``run``.
``called`` gives the same result without a process of its own: in the process that runs Ansible, or in one that stays on a host.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from dataclasses import dataclass
from typing import Any, Callable, Collection, Mapping, Tuple

from ansible.module_utils.basic import AnsibleModule, missing_required_lib
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from .._shared.calls import taken
from .._shared.codec import Document, Json, ModuleResult
from .._shared.errors import ComputeError, Failure, InputError, LibraryError
from .payload_cache import install, invalidate
from .worker import daemonize, own_directory

Work = Callable[[Json, bool], ModuleResult]
Prepare = Callable[[], None]
# The name, in a result, of the requests that a module sent to the engine.
CALLS = "engine_calls"
HIDDEN = "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER"


@dataclass(frozen=True)
class AskedStep(Document):
    """The request to a process that is no module: the options of a module that carries out steps, and how its task runs."""

    options: Json
    check: bool
    diff: bool


def at_least(params: Json, **minima: int) -> None:
    """Refuse integer options below their minimum."""
    for name, minimum in minima.items():
        value = params.get(name)
        if value is not None and value < minimum:
            raise InputError(name, value, "must be at least %d" % minimum)


def run(module: AnsibleModule, spec: Mapping[str, Json], work: Work, prepare: Prepare | None) -> None:
    """Do the work and leave the module with its result or its failure.

    With the option C(stays), its library stays on the host, and with C(prepare), which imports what further steps need, also a copy
    of this process: what Ansible has packed is gone as soon as the module ends. The memory of one that has read secrets does not
    stay.
    """
    result = result_of(work, module.params, check_mode=module.check_mode, diff=module._diff)
    if module.params["stays"] and _python_usable(result):
        directory = own_directory(module.params["stays"])
        install(getattr(__spec__.loader, "archive", ""), directory)
        if prepare and not module.params.get("secrets") and _may_daemonize(result):
            prepare()
            daemonize(lambda asked: _answer(spec, work, AskedStep.from_json(asked)), directory)
    for warning in result.pop("warnings", []):
        module.warn(warning)
    if result.pop("failed", False):
        module.fail_json(**result)
    module.exit_json(**result)


def serve_once(asked: AskedStep, spec: Mapping[str, Json], work: Work, directory: str, prepare: Prepare | None) -> None:
    """Answer a request, and stay as a module does, in a process that a client has started from the library of this host."""
    result, may_stay = _answer(spec, work, asked)
    print(json.dumps(result), flush=True)
    if not _python_usable(result):
        invalidate(sys.path[0])
    if prepare and may_stay and not asked.options.get("secrets"):
        daemonize(lambda other: _answer(spec, work, AskedStep.from_json(other)), directory, prepare)


def _answer(spec: Mapping[str, Json], work: Work, asked: AskedStep) -> Tuple[ModuleResult, bool]:
    result = called(spec, work, asked.options, check_mode=asked.check, diff=asked.diff)
    return result, _may_daemonize(result)


def _python_usable(result: ModuleResult) -> bool:
    """Return whether this Python can do the work of this host. If not, Ansible may find another one that has the Docker SDK."""
    return _engine_reachable(result) and Failure.of_result(result, "").code != LibraryError.code


def _may_daemonize(result: ModuleResult) -> bool:
    """Return whether no new process could do better: one of a new login may reach an engine that this one does not reach."""
    return not result.get("failed") and _engine_reachable(result)


def _engine_reachable(result: ModuleResult) -> bool:
    """Return whether the step has found no lack of an engine: a report says so, and other steps that need the engine fail."""
    parts = (result, result.get("agent") or {}, result.get("report") or {})
    return all(part.get("reachable", True) for part in parts)


def called(spec: Mapping[str, Json], work: Work, options: Json, *, check_mode: bool, diff: bool) -> ModuleResult:
    """The result of the work for these options, which are checked and cleaned as Ansible does for a module in a process of its own."""
    checked = ArgumentSpecValidator(spec).validate(options)
    if checked.error_messages:
        return {"changed": False, "failed": True, "msg": checked.error_messages[0]}
    params = checked.validated_parameters
    result = result_of(work, params, check_mode=check_mode, diff=diff)
    secrets = {value for value in (params.get("secrets") or {}).values() if isinstance(value, str) and value}
    # A module in a process of its own returns JSON, not its objects.
    cleaned: ModuleResult = without_keys(secrets, json.loads(json.dumps({"changed": False, **result})))
    return cleaned


def without_keys(secrets: Collection[str], value: Any) -> Any:
    """The value with every secret in its texts hidden, as Ansible hides the options that have C(no_log)."""
    if isinstance(value, dict):
        return {key: without_keys(secrets, item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_keys(secrets, item) for item in value]
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, HIDDEN)
    return value


def result_of(work: Work, params: Json, *, check_mode: bool, diff: bool) -> ModuleResult:
    """The result of the work, with C(changed) and C(duration); an error becomes one sentence and a C(failure) for playbooks."""
    begun = time.monotonic()
    try:
        result = work(params, check_mode)
    except LibraryError as error:
        result = {**error.failure.to_result(), "msg": missing_required_lib(error.library)}
    except ComputeError as error:
        result = error.failure.to_result()
    except Exception as error:
        message = f"This is a bug in the collection, please report it: {type(error).__name__}: {error}."
        result = {"msg": message, "exception": traceback.format_exc()}
    else:
        result.setdefault("changed", False)
        if not diff:
            result.pop("diff", None)
        return {**_measured(begun), **result}
    return {"failed": True, **_measured(begun), **result}


def _measured(begun: float) -> ModuleResult:
    """Return how long the work took, and its requests to the engine, which the action plugin removes from the result."""
    calls = taken(begun)
    return {"duration": round(time.monotonic() - begun, 3), **({CALLS: calls} if calls else {})}
