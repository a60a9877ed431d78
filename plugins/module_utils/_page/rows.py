# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The sessions of the page: those that wait, with reason and place in the queue, and all others."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import List, Sequence

from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._core.states import ENDED, VERIFIED
from ansible_collections.cluster.compute.plugins.module_utils._page.drawing import drawing
from ansible_collections.cluster.compute.plugins.module_utils._page.markup import Html, element, joined
from ansible_collections.cluster.compute.plugins.module_utils._tables import (
    address_of,
    failed_apps_of,
    folders_of,
    in_use,
    limits_of,
    remarks,
    resources_of,
)
from ansible_collections.cluster.compute.plugins.module_utils._views import show_time, what_happened

# More parts of a reason are shown on demand.
_PARTS = 3
# How a reason ends if the lifetimes and timeouts of what runs give a time.
_STARTS = "; it starts by "
_KINDS = {"RUNNING": "ok", "TERMINATED": "off", "CANCELLED": "off", "ERROR": "bad"}


def moment(seconds: float | None, left: bool = False) -> Html:
    """A time; the script shows it as what has passed since, or with ``left`` as what is left until then."""
    if not seconds:
        return Html("–")
    return element("time", show_time(seconds), data_at="%d" % seconds, data_left=left, title=show_time(seconds))


def session_rows(sessions: Sequence[Json]) -> Html:
    """A table of the sessions that do not wait, the newest first."""
    names = ("Session", "State", "Containers", "Resources", "Started", "Apps", "Details")
    rows = [_session(session) for session in reversed(sessions) if session["state"] != "PENDING"]
    return _table(names, rows, "No sessions.", "sessions")


def waiting_rows(sessions: Sequence[Json]) -> Html:
    """A table of the sessions that wait, in the order of their turns in the queue of all owners."""
    waiting = [session for session in sessions if session["state"] == "PENDING"]
    waiting.sort(key=lambda session: session["turn"])
    rows = [_waiting(session) for session in waiting]
    return _table(
        ("Turn", "Session", "Asks for", "Waits since", "Starts by", "Reason"), rows, "No session waits.", "waiting"
    )


def _table(names: Sequence[str], rows: Sequence[Html], empty: str, style: str) -> Html:
    if not rows:
        return element("p", empty, class_="empty")
    head = element("tr", joined(*(element("th", name, scope="col") for name in names)))
    return element("table", element("thead", head), element("tbody", joined(*rows)), class_=style)


def _cell(label: str, *content: object, style: str | None = None) -> Html:
    """A cell; on a narrow screen, its label is beside it."""
    return element("td", *content, data_label=label, class_=style)


def _name(session: Json) -> Html:
    return element("th", element("b", session["name"]), element("small", session["owner"]), scope="row")


def _session(session: Json) -> Html:
    return element(
        "tr",
        _name(session),
        _cell("State", _state(session)),
        _cell("Containers", drawing(session["containers"]) or "–"),
        _cell("Resources", *_resources(session)),
        _cell("Started", *_times(session)),
        _cell("Apps", *_apps(session)),
        _cell("Details", _details(session)),
        data_row=True,
        data_state=_filter_of(session["state"]),
        data_owner=session["owner"],
    )


def _waiting(session: Json) -> Html:
    reason, _marker, start = session["reason"].partition(_STARTS)
    size = "%d × " % session["size"] if session["size"] != 1 else ""
    return element(
        "tr",
        _cell("Turn", session["turn"], style="number"),
        _name(session),
        _cell("Asks for", size, resources_of(session), element("small", "priority %d" % session["priority"])),
        _cell("Waits since", moment(session["created"])),
        _cell("Starts by", start or "–"),
        _cell("Reason", _reason(reason), style="reason"),
        data_row=True,
        data_state="waiting",
        data_owner=session["owner"],
    )


def _reason(text: str) -> Html:
    """The first part of a reason, with all of it on demand: it has a part for each agent."""
    parts = text.split("; ")
    if len(parts) <= _PARTS:
        return element("span", text)
    summary = element("summary", parts[0], element("small", "and %d more" % (len(parts) - 1)))
    return element("details", summary, element("ul", *(element("li", part) for part in parts)))


def _filter_of(state: str) -> str:
    return {"TERMINATED": "finished", "ERROR": "other", "CANCELLED": "other"}.get(state, "running")


def _state(session: Json) -> Html:
    kind = "warn" if session["degraded"] or failed_apps_of(session) else _KINDS.get(session["state"], "warn")
    result = " (%s)" % session["result"] if session["result"] else ""
    # The time that is left has a cell of its own.
    texts = [*remarks(session), *(text for text in limits_of(session) if not text.endswith(" left"))]
    notes = [element("small", text, class_="remark") for text in texts]
    return joined(element("span", session["state"], result, class_="state %s" % kind), *notes)


def _resources(session: Json) -> List[Html]:
    size = "%d × " % session["size"] if session["size"] != 1 else ""
    use = in_use(session["measured"])
    lines = [element("span", size, resources_of(session))]
    return lines + ([element("small", "uses ", use)] if use else [])


def _times(session: Json) -> List[Html]:
    lines = [element("span", moment(session["started"]))]
    if session["state"] == "RUNNING" and session["ends"]:
        lines.append(element("small", "ends ", moment(session["ends"], left=True)))
    if session["state"] in ENDED:
        lines.append(element("small", "ended ", moment(session["changed"])))
    return lines


def _apps(session: Json) -> List[Html]:
    """The apps with their ports; the details have their addresses."""
    ports = [(app, ":%d" % app["port"] if app["port"] else "") for app in session["apps"]]
    shown = [element("span", app["name"], port, title=address_of(app)) for app, port in ports]
    return shown or [Html("–")]


def _details(session: Json) -> Html:
    kind = "compute session" if session["kind"] == "compute" else "cluster session, %s" % session["mode"]
    apps = ", ".join("%s %s" % (app["name"], address_of(app)) for app in session["apps"])
    facts = (
        ("Kind", kind),
        ("Image", session["image"] or "–"),
        ("Group", session["group"]),
        ("Priority", session["priority"]),
        ("Apps", apps or "–"),
        ("Data folders", folders_of(session)),
        ("ID", session["id"]),
    )
    entries = [element("dt", name) + element("dd", text) for name, text in facts]
    changes = [
        element("li", show_time(entry["time"]), " ", element("b", entry["after"]), " ", entry["reason"])
        for entry in session["history"]
    ]
    lists = joined(element("dl", Html("".join(entries))), element("ol", joined(*changes)))
    return element("details", element("summary", _headline(session, kind)), lists)


def _headline(session: Json, kind: str) -> str:
    """Why a session is as it is; for one that only runs, its image."""
    reason = what_happened(session)
    return session["image"] or kind if reason in ("", VERIFIED) else reason
