# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Another batch command for a session that runs, once its command has ended: the session and its containers stay."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from dataclasses import replace
from typing import Dict, List

from .._core.documents import Json
from .._core.errors import StateError
from .._core.exits import describe_command_exit
from .._core.model import Plan
from .._planning.policy_rules import check_policy
from .._planning.request import Request
from .context import Context
from .row import Row
from .store import Store

# The fields of a request that describe its command.
_FIELDS = ("command", "command_timeout")
_REPLACED = "another session_command replaces the former"


def is_next_command(row: Row, request: Request, names: List[str]) -> bool:
    """Whether the fields in which a request differs from the session's are those of a batch command that replaces another."""
    return bool(names) and set(names) <= set(_FIELDS) and bool(row.request and row.request.command and request.command)


def with_next_command(store: Store, row: Row, plan: Plan, request: Request, context: Context) -> Plan:
    """The plan with the command of the request. A StateError while the former command runs.

    The result of the former command goes into the history, and the session has none until the next command has ended.
    """
    wanted = {name: getattr(request, name) for name in _FIELDS}
    if row.request is None or not is_next_command(row, request, row.request.differences(request)):
        return plan
    former = _former(plan, context)
    if former is not None and former["begun"] and former["exit_code"] is None:
        raise StateError(
            f"session_command: the former command of session {row.name} still runs on {plan.main.agent}; wait for its end, "
            "or end the session with terminate.yml.", row.name)  # fmt: skip
    check_policy(context.site, request)
    _note_former(store, row, former, context.now)
    row.request = replace(row.request, **wanted)
    row.plan = replace(plan, session=replace(plan.session, **wanted))
    row.result = ""
    store.note(row, context.now, _REPLACED)
    return row.plan


def _former(plan: Plan, context: Context) -> Json | None:
    """The state of the former command; None if ``main1`` does not run, and the command with it."""
    for agent in context.agents:
        for container in agent.containers:
            if container.id == plan.main.id and container.state == "running":
                batch: Dict[str, object] | None = container.data.get("batch")
                return batch
    return None


def _note_former(store: Store, row: Row, former: Json | None, now: float) -> None:
    """Record the end of a command that no playbook has waited for."""
    if former is None or former["exit_code"] is None:
        return
    reason = describe_command_exit(former)
    if reason != row.reason:
        store.note(row, now, reason)
