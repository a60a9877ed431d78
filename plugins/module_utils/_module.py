# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: may change in any release.

"""The rim: the only place where a result or a failure leaves a module."""

from __future__ import annotations

import time
import traceback
from typing import Any, Callable, Dict

from ansible.module_utils.basic import AnsibleModule, env_fallback, missing_required_lib

from ansible_collections.cluster.compute.plugins.module_utils._core.errors import ComputeError, InputError, LibraryError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json, Plan

DOCKER_HOST = "unix:///var/run/docker.sock"


def engine_options() -> Dict[str, Any]:
    """The options of the documentation fragment C(cluster.compute.engine)."""
    return {
        "docker_host": {"type": "str", "default": DOCKER_HOST, "fallback": (env_fallback, ["DOCKER_HOST"])},
        "timeout": {"type": "int", "default": 60},
    }


def store_options() -> Dict[str, Any]:
    """The option of the documentation fragment C(cluster.compute.store)."""
    return {"state_dir": {"type": "path"}}


def at_least(module: AnsibleModule, **floors: int) -> None:
    """Refuse integer options below their floor."""
    for name, floor in floors.items():
        value = module.params.get(name)
        if value is not None and value < floor:
            raise InputError(name, value, "must be at least %d" % floor)


def read_plan(data: Json) -> Plan:
    """The plan option as a plan."""
    try:
        return Plan.from_json(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError("plan", str(error), "must be a plan as the schedule module returns it") from error


def run(module: AnsibleModule, work: Callable[[], Json]) -> None:
    """Do the work and leave: its result with C(duration), or one sentence and a C(failure) for playbooks."""
    begun = time.monotonic()
    try:
        result = work()
    except LibraryError as error:
        module.fail_json(msg=missing_required_lib(error.library), exception=error.trace, failure=_failure(error))
    except ComputeError as error:
        module.fail_json(msg=error.message, failure=_failure(error), duration=_since(begun))
    except Exception as error:
        message = "This is a fault of the collection, please report it: %s: %s." % (type(error).__name__, error)
        module.fail_json(msg=message, exception=traceback.format_exc())
    else:
        if not module._diff:
            result.pop("diff", None)
        result.setdefault("changed", False)
        result.setdefault("duration", _since(begun))
        module.exit_json(**result)


def _failure(error: ComputeError) -> Dict[str, str]:
    return {"code": error.code, "message": error.message, "where": error.where}


def _since(begun: float) -> float:
    return round(time.monotonic() - begun, 3)
