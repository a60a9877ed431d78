# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The specification of a launch, and the decision of the head about it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import List, Mapping, Sequence, Tuple

from ...module_utils._shared.documents.decision import Decision
from ...module_utils._shared.documents.plan import Plan
from ...module_utils._shared.documents.report import AgentReport
from ...module_utils._shared.documents.topology import without_apps
from ...module_utils._shared.planning.allocation import checked_folders
from ...module_utils._shared.planning.request import Request
from .._hosts import notification
from .._settings.settings import Settings


@dataclass(frozen=True)
class LaunchSpec:
    """The request of this run for a session, and how it was made.

    ``queued`` is the ID of a session that waited or that is repaired by a pass; empty for a request of this command. ``unfit`` has
    the reason for each agent that is avoided, ``settings`` are the checked variables of the command. ``takes_variables``: the command
    line is about this session, not about another one that has ended. ``is_checked``: the request was compared with the kept one, and
    differs in its size. ``relocates``: its lost agents are fenced, and it may move. ``is_silent``: it is shown only if it lacks
    something. ``before`` are the requests that the command would launch first, in check mode.
    """

    request: Request
    settings: Settings = field(default_factory=Settings)
    queued: str = ""
    unfit: Mapping[str, str] = field(default_factory=dict)
    takes_variables: bool = True
    is_checked: bool = False
    relocates: bool = False
    is_silent: bool = False
    before: Tuple[Request, ...] = ()

    @property
    def folders(self) -> List[str]:
        return checked_folders(self.request)


@dataclass(frozen=True)
class Launch:
    """The decision of the head about a session.

    ``plan`` is None while it waits; ``decision`` is the head's answer, by the reports of ``agents``.
    """

    asked: LaunchSpec
    decision: Decision
    plan: Plan | None = None
    agents: Sequence[AgentReport] = ()

    @property
    def deploys(self) -> bool:
        return self.decision.outcome in ("placed", "repair")

    @property
    def makes_containers(self) -> bool:
        """Return whether containers are created or started: a session that only gets smaller lacks none.

        A repair that was interrupted may have left containers that run without their fabric, or whose commands have not begun.
        """
        plan = self.plan if self.decision.outcome == "repair" and not self.decision.former_size else None
        may_wait = plan and (plan.session.roles or plan.network.fabric)
        return self.decision.outcome == "placed" or bool(self.decision.missing or self.decision.added or may_wait)

    def made(self, plan: Plan) -> Plan:
        """The part of the plan whose containers are created or started; all of it if none is missing."""
        names = {*self.decision.missing, *self.decision.added}
        part = tuple(one for one in plan.containers if one.hostname in names)
        return replace(plan, containers=part) if part and self.decision.outcome != "placed" else plan

    def listed(self, plan: Plan) -> Plan:
        """The plan without the apps of roles that were removed."""
        return without_apps(plan, self.decision.ended_apps)

    @property
    def repair(self) -> str:
        """The event of a repair that is more than a repair; empty for none."""
        if self.decision.moves:
            return notification.RELOCATED
        return notification.RESTARTED if self.decision.restarts_all else ""

    @property
    def must_apply_limits(self) -> bool:
        """Also without a change: a controller may have been lost before it wrote a change into the containers."""
        request = self.asked.request
        is_limited = request.lifetime or request.idle_timeout or self.decision.new_limits
        return bool(is_limited) and self.decision.outcome in ("running", "repair")
