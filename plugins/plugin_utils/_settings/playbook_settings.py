# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The variables that only playbooks of the collection read: the one declaration of their names, defaults and rules."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Dict, Tuple, TypeVar

from ...module_utils._shared import value_rules
from ...module_utils._shared.documents.declaration import declared, declared_choice, declared_names, declared_text
from ...module_utils._shared.errors import InputError
from ...module_utils._shared.planning.variable import CHECK, EVERY, LIST, POLICY, SCHEDULE, USAGE

# build_environments.yml passes it on to the role `image`, which checks it.
ENVIRONMENTS_TO_BUILD = "environments"
_MOST = 2**31 - 1
# For people the newest ended sessions; for programs all.
_SHOWN = 200


# The columns of the table of sessions.
COLUMNS = (
    *("session", "owner", "state", "turn", "priority", "group", "kind", "size", "each", "in use", "image"),
    *("started", "end", "result", "agents", "folders", "apps", "reason"),
)
ALL_COLUMNS = "all"
_OF_LIST: Dict[str, Any] = {"prefix": "", "read_by": (LIST,)}


def _check_columns(variable: str, value: Any) -> Any:
    columns = value_rules.check_names(variable, value)
    for column in columns:
        if column not in (*COLUMNS, ALL_COLUMNS):
            raise InputError(variable, column, f"must be all, or a list of {', '.join(COLUMNS)}")
    return columns


def _check_state(variable: str, value: Any) -> str:
    if value not in ("running", "finished", "other"):
        rule = "must be running, finished or other; leave it empty for all that have not ended"
        raise InputError(variable, value, rule)
    return str(value)


def _check_month(variable: str, value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[0-9]{4}-(0[1-9]|1[0-2])", value):
        raise InputError(variable, value, "must be a month of UTC, as in 2026-11")
    return value


@dataclass(frozen=True)
class PlaybookSettings:
    """The format of lists and checks, and the files that they write."""

    ignored_variables: Tuple[str, ...] = declared_names(
        "Names of variables of other software that look like a misspelled variable of this collection.",
        value_rules.check_names,
        read_by=EVERY,
    )
    sessions_format: str = declared_choice(
        ("table", "json", "html", "file"),
        "V(table), V(json) for programs, V(html) for a page, or V(file) for the request of the session O(session_name) as a session "
        "file.",
        **_OF_LIST,
    )
    sessions_columns: Tuple[str, ...] = declared_names(
        "Columns of the table of sessions, or V([all]). If empty, the usual ones.",
        _check_columns,
        **_OF_LIST,
    )
    sessions_page: str = declared_text(
        "File on the controller for the page that O(sessions_format=html) writes.",
        value_rules.check_path,
        path=True,
        default="sessions.html",
        **_OF_LIST,
    )
    sessions_file: str = declared_text(
        "File on the controller that also gets sessions, owners and agents as JSON, with mode 0600. Empty for none.",
        value_rules.check_path,
        path=True,
        **_OF_LIST,
    )
    sessions_metrics: str = declared_text(
        "File on the controller that gets metrics of the agents and of the sessions of all owners, in OpenMetrics format, with mode "
        "0644. Empty for none.",
        value_rules.check_path,
        path=True,
        prefix="",
        read_by=(LIST, SCHEDULE),
    )
    sessions_state: str = declared_text(
        "V(running) for sessions that have not ended, V(finished) for those that were terminated or ended by themselves, V(other) "
        "for those that failed to launch or were canceled. If empty, all that have not ended.",
        _check_state,
        **_OF_LIST,
    )
    sessions_limit: int | None = declared(
        "int",
        None,
        "Number of ended sessions to list, the newest ones; V(0) for all. By default 200 for people, all as JSON or in a file.",
        lambda variable, value: None if value is None else value_rules.check_whole(variable, value, 0, _MOST),
        **_OF_LIST,
    )
    policy_format: str = declared_choice(
        ("table", "json"), "V(table), or V(json) for programs.", prefix="", read_by=(POLICY,)
    )
    usage_format: str = declared_choice(
        ("table", "csv", "json"), "V(table), V(csv) or V(json).", prefix="", read_by=(USAGE,)
    )
    usage_month: str = declared_text(
        "Show this month of UTC only, as in V(2026-11). If empty, all months.",
        _check_month,
        prefix="",
        read_by=(USAGE,),
    )
    usage_file: str = declared_text(
        "File on the controller to write to, with mode 0600, instead of the output.",
        value_rules.check_path,
        path=True,
        prefix="",
        read_by=(USAGE,),
    )
    check_format: str = declared_choice(
        ("table", "json"), "V(table), or V(json) for programs.", prefix="", read_by=(CHECK,)
    )
    check_file: str = declared_text(
        "File on the controller that also gets the findings as JSON. Empty for none.",
        value_rules.check_path,
        path=True,
        prefix="",
        read_by=(CHECK,),
    )


Settings = TypeVar("Settings", bound=PlaybookSettings)


def resolved_settings(settings: Settings) -> Settings:
    """The settings of a list with the default of C(sessions_limit), which depends on the others.

    >>> resolved_settings(PlaybookSettings(sessions_format="json")).sessions_limit
    0
    """
    if settings.sessions_limit is not None:
        return settings
    is_for_programs = settings.sessions_format == "json" or settings.sessions_file
    return replace(settings, sessions_limit=0 if is_for_programs else _SHOWN)
