# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's half of ``agent_check``: holds the agent's clock against its own, and judges what all have found."""

from __future__ import annotations

import secrets
import time

from ansible.errors import AnsibleConnectionFailure

from ansible_collections.cluster.compute.plugins.module_utils._agents.checks import Wanted
from ansible_collections.cluster.compute.plugins.module_utils._agents.diagnosis import judge, verdict_of
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.plugin_utils._action import ComputeAction


class ActionModule(ComputeAction):
    """A host that cannot be asked is a finding, not a failure of the check."""

    def act(self, args: Json, task_vars: Json) -> Json:
        state = args.get("state", "examined")
        if state == "judged":
            return _judged(args)
        before = time.time()
        result = self._ask(args, task_vars)
        if result.get("failed"):
            return _lost(args, state, _reason(result))
        if state == "examined":
            report = result["report"]
            result["mark"] = secrets.token_hex(6)
            if report["reachable"]:
                report["clock"] = off_by(report["time"], before, time.time())
        return result

    def _ask(self, args: Json, task_vars: Json) -> Json:
        try:
            return self.module("agent_check", args, task_vars)
        except AnsibleConnectionFailure as error:
            return {"failed": True, "msg": str(error)}


def off_by(told: float, before: float, after: float) -> float:
    """How far a clock is off for certain, whenever between the two moments it was read.

    >>> off_by(105.0, 100.0, 106.0), off_by(3700.0, 100.0, 101.0), off_by(90.0, 100.0, 101.0)
    (0.0, 3599.0, -10.0)
    """
    return round(max(0.0, told - after) - max(0.0, before - told), 3)


def _judged(args: Json) -> Json:
    wanted = Wanted(
        pools=args.get("pools") or Wanted.pools,
        encrypted=bool(args.get("encrypted")),
        head=str(args.get("head") or ""),
    )
    probes = args.get("probes") or {}
    return {"changed": False, **verdict_of(judge(args.get("agents") or [], probes, wanted))}


def _reason(result: Json) -> str:
    said = result.get("msg") or result.get("module_stderr") or "the module failed"
    return " ".join(str(said).split())[:300]


def _lost(args: Json, state: str, reason: str) -> Json:
    if state == "examined":
        report = {"name": args["name"], "reachable": False, "reason": reason}
        return {"changed": False, "report": report, "mark": secrets.token_hex(6)}
    return {"changed": False, "probe": {"reason": reason}}
