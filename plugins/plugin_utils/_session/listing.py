# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lists and documents for people and programs: sessions, the policy and the use of resources, as the head has them."""

from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path
from typing import Sequence, Tuple

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from ...module_utils._shared.codec import Json, ModuleResult
from ...module_utils._shared.documents import validation
from ...module_utils._shared.documents.view import SessionList, SessionView
from ...module_utils._shared.errors import InputError, escape_control
from ...module_utils._shared.planning.variable import LIST, LOGS, POLICY, USAGE
from ...module_utils._shared.units import show_time
from .._hosts.conductor import Play
from .._hosts.files import location, nice, write
from .._hosts.steps import STORE_POLICY, STORE_USAGE
from .._output.lists import WIDTH, list_lines
from .._output.page import MONTH, page_of
from .._settings.settings import Settings
from .._variables.request_variables import checked_settings
from .metrics_file import write_metrics
from .reports import collect_reports, list_document, read_list
from .session_file import session_file

_LISTED = ("sessions", "agents", "owners", "groups", "time")
_PLAYBOOKS = Path(__file__).resolve().parents[3] / "playbooks"
_FILES = ("templates/sessions.html.j2", "files/sessions.css", "files/sessions.js")
_POLICY = "default-src 'none'; style-src '%s'; script-src '%s'; base-uri 'none'; form-action 'none'"


def sessions(play: Play, given: Json) -> ModuleResult:
    """The list of sessions, as lines in the format of C(sessions_format), and as the files that the variables name."""
    with play.phase("check"):
        settings = checked_settings(play.action, LIST)
    if settings.sessions_format == "file":
        text = session_file(
            play, str(given.get("name") or play.value("session_name")), str(given.get("owner") or play.owner)
        )
        return {"changed": False, "file": text, "lines": text.splitlines()}
    is_page = settings.sessions_format == "html"
    wanted = {
        "name": play.value("session_name") or None,
        "ended": settings.ended_too,
        "state": settings.sessions_state or None,
        "limit": settings.sessions_limit,
        "samples": MONTH if is_page else 0,
    }
    agents = given.get("agents") or collect_reports(play, measure=True).documents
    wanted = {**wanted, **given}
    result = list_document(play, agents, wanted, str(given.get("owner") or play.owner))
    listed = validation.arrived(SessionList, result, "answer", play.head)
    document = nice({name: result[name] for name in _LISTED if name in result})
    has_changed = bool(settings.sessions_file) and write(
        settings.sessions_file, document + "\n", 0o600, check=play.check
    )
    if settings.sessions_metrics:
        has_changed = write_metrics(play, settings.sessions_metrics, agents) or has_changed
    if is_page:
        page = location(settings.sessions_page)
        has_changed = write(page, sessions_page(page_of(listed)), 0o644, check=play.check) or has_changed
        lines = [] if play.check else [f"The page is in {page}."]
    elif settings.sessions_format == "json":
        lines = document.splitlines()
    else:
        lines = list_lines(listed, str(wanted["name"] or ""), settings.sessions_columns, _width())
    return {**result, "changed": has_changed, "lines": lines}


def newest_row(play: Play) -> Tuple[SessionView, Settings]:
    """The newest session of the name that the variables of C(logs) have, and the settings among those variables."""
    with play.phase("check"):
        settings = checked_settings(play.action, LOGS)
    name = str(play.value("session_name"))
    agents = collect_reports(play).documents
    found = read_list(play, agents, {"name": name, "ended": True, "logs": True}, play.owner).sessions
    session = newest_session(found, name, play.owner)
    check_containers(session, settings.logs_containers)
    return session, settings


def list_policy(play: Play, given: Json) -> ModuleResult:
    """The policy of the site, as lines in the format of C(policy_format)."""
    with play.phase("check"):
        settings = checked_settings(play.action, POLICY)
    result = play.on_head(STORE_POLICY(agents=given.get("agents") or collect_reports(play).documents))
    if settings.policy_format == "json":
        result["lines"] = nice({name: result[name] for name in ("policy", "owners")}).splitlines()
    return result


def list_usage(play: Play, given: Json) -> ModuleResult:
    """Return what owners have used in C(usage_month), as lines in the format of C(usage_format), or in the file of C(usage_file)."""
    with play.phase("check"):
        settings = checked_settings(play.action, USAGE)
    asked = STORE_USAGE(owner=given.get("owner") or play.owner or None, month=settings.usage_month or None)
    result = play.on_head(asked)
    csv = str(result["csv"])
    texts = {"table": "\n".join(result["lines"]), "csv": csv, "json": nice(result["usage"])}
    text = texts[settings.usage_format]
    if settings.usage_file:
        return {**result, "changed": write(settings.usage_file, text, 0o600, check=play.check), "lines": []}
    return {**result, "lines": text.splitlines()}


def newest_session(found: Sequence[SessionView], name: str, owner: object) -> SessionView:
    """The newest session; an InputError if there is none."""
    if not name or not found:
        whose = "" if owner else " of yours"
        raise InputError("session_name", name, f"no session{whose} has this name; sessions.yml lists them")
    return found[-1]


def check_containers(session: SessionView, hostnames: Sequence[str]) -> None:
    """Raise an InputError if the session lacks any of these containers."""
    names = [*(one.hostname for one in session.containers), *(log.hostname for log in session.logs)]
    known = list(dict.fromkeys(names))
    unknown = [hostname for hostname in hostnames if hostname not in known]
    if unknown:
        rule = f"session {session.name} has no such container, only {', '.join(known) or 'none yet'}"
        raise InputError("session_logs_containers", ", ".join(unknown), rule)


def _width() -> int:
    """The columns of the terminal if the environment names them."""
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdigit() and int(columns) else WIDTH


def sessions_page(page: Json) -> str:
    """The page, with the texts and numbers of C(page_of).

    The policy in its head allows its style sheet and its script alone: whatever a name or a reason contains, a browser loads and
    runs nothing else. Every text is escaped, and its control characters are visible.
    """
    environment = Environment(autoescape=True, undefined=StrictUndefined, finalize=_shown)
    environment.filters["show_time"] = show_time
    template, style, script = ((_PLAYBOOKS / name).read_text(encoding="utf-8") for name in _FILES)
    # Without its line breaks and its indentation.
    page_of = environment.from_string("".join(line.strip() for line in template.splitlines()))
    policy = _POLICY % (_digest(style), _digest(script))
    return page_of.render(page=page, style=Markup(style), script=Markup(script), policy=policy) + "\n"


def _shown(value: object) -> object:
    """A value as the page shows it. What changes the direction of text, or controls a terminal, becomes visible."""
    return value if isinstance(value, Markup) else escape_control(str(value))


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
