# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a module works: options that modules share, and the only place where a result or a failure leaves a module.

A module is its documentation, ``ARGUMENT_SPEC``, ``RULES`` and ``work(params, check_mode) -> result``. Its ``main`` calls
``run``; an action plugin may call ``work`` through ``result_of`` in the process that runs Ansible.
"""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import time
import traceback
from typing import Any, Callable, Dict, TypeVar

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

from ._core.calls import taken
from ._core.documents import Json, part_of
from ._core.errors import ComputeError, InputError, LibraryError
from ._core.model import Plan

Value = TypeVar("Value")
Work = Callable[[Json, bool], Json]
# The name, in a result, of the requests that a module sent to the engine.
CALLS = "engine_calls"


def engine_options() -> Dict[str, Any]:
    """The options of the documentation fragment C(cluster.compute.engine)."""
    return {
        "docker_host": {"type": "str"},
        "timeout": {"type": "int", "default": 60},
    }


def store_options() -> Dict[str, Any]:
    """The option of the documentation fragment C(cluster.compute.store)."""
    return {"state_dir": {"type": "path"}}


def at_least(params: Json, **minima: int) -> None:
    """Refuse integer options below their minimum."""
    for name, minimum in minima.items():
        value = params.get(name)
        if value is not None and value < minimum:
            raise InputError(name, value, "must be at least %d" % minimum)


def read_plan(data: Json) -> Plan:
    """The plan option as a plan."""
    return _read(Plan.from_json, data)


def read_part(data: Json, agent: str) -> Json:
    """The part of the plan option that one agent needs."""
    return _read(lambda document: part_of(document, agent), data)


def _read(call: Callable[[Json], Value], data: Json) -> Value:
    try:
        return call(data)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InputError("plan", str(error), "must be a plan as the schedule module returns it") from error


def run(module: AnsibleModule, work: Work) -> None:
    """Do the work and leave the module with its result or its failure."""
    result = result_of(work, module.params, check_mode=module.check_mode, diff=module._diff)
    for warning in result.pop("warnings", []):
        module.warn(warning)
    if result.pop("failed", False):
        module.fail_json(**result)
    module.exit_json(**result)


def result_of(work: Work, params: Json, *, check_mode: bool, diff: bool) -> Json:
    """The result of the work, with C(changed) and C(duration); an error becomes one sentence and a C(failure) for playbooks."""
    begun = time.monotonic()
    try:
        result = work(params, check_mode)
    except LibraryError as error:
        result = {"msg": missing_required_lib(error.library), "exception": error.trace, "failure": error.to_json()}
    except ComputeError as error:
        result = {"msg": error.message, "failure": error.to_json()}
    except Exception as error:
        message = f"This is a bug in the collection, please report it: {type(error).__name__}: {error}."
        result = {"msg": message, "exception": traceback.format_exc()}
    else:
        result.setdefault("changed", False)
        if not diff:
            result.pop("diff", None)
        return {**_measured(begun), **result}
    return {"failed": True, **_measured(begun), **result}


def joined(first: Json, second: Json) -> Json:
    """Two results of one call as one, with the keys of the one that has containers, and both differences in order."""
    before, after = (
        result["diff"] if isinstance(result["diff"], list) else [result["diff"]] for result in (first, second)
    )
    own = second if "containers" in second else first
    return {**own, "changed": first["changed"] or second["changed"], "diff": [*before, *after]}


def _measured(begun: float) -> Json:
    """How long the work took, and its requests to the engine, which the action plugin removes from the result."""
    calls = taken(begun)
    return {"duration": round(time.monotonic() - begun, 3), **({CALLS: calls} if calls else {})}
