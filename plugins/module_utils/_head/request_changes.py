# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes that the request of a running session may make: to its limits, and to its batch command.

The next command begins when the former command has ended. Everything else stays as it was requested, except for the size.
"""

from __future__ import annotations

from dataclasses import replace

from .._shared import states
from .._shared.codec import subset
from .._shared.documents.report import BatchState
from .._shared.errors import InputError, StateError
from .._shared.planning.policy import SitePolicy
from .._shared.planning.policy_rules import check_policy
from .._shared.planning.request import Request
from .dependencies import REPLACED
from .session_record import SessionRecord, Update
from .snapshot import Context

# What may change while a session runs.
LIMITS = ("lifetime", "idle_timeout")
# The fields of a request that describe its command.
_FIELDS = ("command", "command_timeout")


def check_same(row: SessionRecord, request: Request) -> None:
    """Raise InputError for another request than the one that a session was recorded with: no other launches it.

    The message names the settings that differ.
    """
    names = row.request.differences(request) if row.request else []
    if row.state == states.RUNNING and request.roles:
        names = [name + ", of which only the size can change" if name == "roles" else name for name in names]
    if names:
        rule = "is used by a %s session with other settings (%s): end that session with terminate.yml, or choose another name"
        raise InputError("session_name", row.name, rule % (row.state, ", ".join(names)))


def with_limits(update: Update, request: Request, site: SitePolicy) -> Update:
    """The session with the limits of the request, which may differ from those that it was launched with."""
    plan, known, limits = update.plan, update.session.request, subset(request, *LIMITS)
    limited = replace(plan, session=replace(plan.session, **limits))
    if limited == plan or known is None:
        return update
    check_policy(site, request)
    return update.having(plan=limited, request=replace(known, **limits))


def is_next_command(former: Request, request: Request) -> bool:
    """Return whether a request differs from the session's only in its batch command, which then replaces the former one."""
    names = former.differences(request)
    return bool(names and former.command and request.command) and set(names) <= set(_FIELDS)


def with_next_command(update: Update, request: Request, context: Context) -> Update:
    """The session with the command of the request. A StateError while the former command runs.

    The result of the former command goes into the history, and the session has none until the next command has ended.
    """
    row, plan, wanted = update.session, update.plan, subset(request, *_FIELDS)
    if row.request is None or not is_next_command(row.request, request):
        return update
    former = row.running_command(context.agents)
    if former is not None and former.begun and not former.has_ended:
        raise StateError(
            f"session_command: the former command of session {row.name} still runs on {plan.main.agent}; wait for its end, "
            "or end the session with terminate.yml.", row.name)  # fmt: skip
    check_policy(context.site, request)
    plan = replace(plan, session=replace(plan.session, **wanted))
    update = _with_end(update, former, context.now)
    update = update.having(plan=plan, request=replace(row.request, **wanted), result="")
    return update.note(context.now, REPLACED)


def _with_end(update: Update, former: BatchState | None, now: float) -> Update:
    """Note the end of a command that no playbook has waited for."""
    is_news = former is not None and former.has_ended and former.end != update.session.reason
    return update.note(now, former.end) if former and is_news else update
