# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The results of one module on several agents as one result."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from itertools import chain
from typing import Any, List, Mapping

from ..module_utils._core.documents import Json
from ..module_utils._core.errors import TakenError
from ._action import failure_reason

# Codes of failures that come before those that follow from them.
CAUSES = frozenset({"unreachable"})
# Not in the joint result: 2 kB for each container, and Ansible visits every value of a result several times.
_LEFT_OUT = ("containers",)


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
    differences = [item for value in values.get("diff", []) for item in _listed(value)]
    return {
        "changed": any(values.get("changed", [])),
        **lists,
        **durations,
        **({"diff": differences} if differences else {}),
        **_failure({agent: result for agent, result in results.items() if result.get("failed")}),
    }


def _listed(value: Any) -> List[Any]:
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
