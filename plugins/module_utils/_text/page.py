# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the page of sessions.yml shows, as texts and numbers; the template of the role ``session`` gives them their form."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Dict, List, Sequence

from .._core.documents import Json
from .._core.states import ENDED, VERIFIED
from .._core.units import show_time
from .lists import address_of, failures_of, folders_of, in_use, limits_of, remarks, resources_of
from .plot import plot
from .shares import RESOURCES, agent_card, capacity_of, colors_of, group_rows, owner_rows, session_count, tiles

# Seconds of the plots.
_DAY = 86400
MONTH = 30 * _DAY
_SPANS = (("The last 24 hours", _DAY), ("The last 30 days", MONTH))
# More parts of a reason are shown on demand.
_PARTS = 3
# How a reason ends if the lifetimes and timeouts of what runs give a time.
_STARTS = "; it starts by "
_KINDS = {"RUNNING": "ok", "TERMINATED": "off", "CANCELLED": "off", "ERROR": "bad"}
_FILTERS = {"TERMINATED": "finished", "ERROR": "other", "CANCELLED": "other"}
# Boxes of a drawing for each agent. Of more containers, those that do not run come first, and a number stands for the rest.
_BOXES = 32
_AGENTS = 12
_MAY_RUN = ("unknown", "created", "paused", "restarting", "waiting")


def page_of(listed: Json) -> Json:
    """All that the page shows of a list of C(session_info)."""
    agents, sessions, owners, now = listed["agents"], listed["sessions"], listed["owners"], float(listed["time"])
    capacity = capacity_of(agents)
    colors = colors_of(owners, capacity)
    resources = [one for one in RESOURCES if capacity["gpus"] or one.key != "gpus"]
    waiting = [session for session in sessions if session["state"] == "PENDING"]
    return {
        "time": now,
        "names": sorted({session["owner"] for session in sessions}),
        "tiles": tiles(agents, colors),
        "count": session_count(sessions, owners),
        "resources": [one.name for one in resources],
        "owners": owner_rows(owners, colors, resources),
        "groups": group_rows(listed["groups"], resources),
        "waiting": [waiting_row(session) for session in sorted(waiting, key=lambda session: session["turn"])],
        "sessions": [session_row(session) for session in reversed(sessions) if session["state"] != "PENDING"],
        "plots": [{"title": title, **plot(listed["samples"], now - span, now)} for title, span in _SPANS],
        "agents": [agent_card(agent, colors) for agent in agents],
    }


def waiting_row(session: Json) -> Json:
    """A session that waits, with its turn in the queue of all owners. Its reason has a part for each agent."""
    reason, _marker, start = session["reason"].partition(_STARTS)
    parts = reason.split("; ")
    return {
        "turn": session["turn"],
        "name": session["name"],
        "owner": session["owner"],
        "asks": _times(session) + resources_of(session),
        "priority": session["priority"],
        "since": session["created"],
        "start": start,
        "reason": reason if len(parts) <= _PARTS else parts[0],
        "parts": parts if len(parts) > _PARTS else [],
    }


def session_row(session: Json) -> Json:
    """A session that does not wait."""
    state = session["state"]
    is_ill = session["degraded"] or failures_of(session)
    return {
        "name": session["name"],
        "owner": session["owner"],
        "filter": _FILTERS.get(state, "running"),
        "kind": "warn" if is_ill else _KINDS.get(state, "warn"),
        "state": state + (f" ({session['result']})" if session["result"] else ""),
        # The time that is left has a cell of its own.
        "remarks": [*remarks(session), *(text for text in limits_of(session) if not text.endswith(" left"))],
        "drawing": drawing(session["containers"]),
        "resources": _times(session) + resources_of(session),
        "use": in_use(session["measured"]),
        "started": session["started"],
        "ends": session["ends"] if state == "RUNNING" else None,
        "ended": session["changed"] if state in ENDED else None,
        "apps": [_app(app) for app in session["apps"]],
        **_details(session),
    }


def _times(session: Json) -> str:
    return "%d × " % session["size"] if session["size"] != 1 and not session.get("roles") else ""


def _app(app: Json) -> Json:
    port = ":%d" % app["port"] if app["port"] else ""
    return {"text": app["name"] + port, "address": address_of(app)}


def _details(session: Json) -> Json:
    """What is shown on demand, below why a session is as it is; for one that only runs, below its image."""
    kind = "compute session" if session["kind"] == "compute" else f"cluster session, {session['mode']}"
    reason = session["explanation"]
    facts = (
        ("Kind", kind),
        ("Image", session["image"] or "–"),
        ("Group", session["group"]),
        ("Priority", session["priority"]),
        ("Apps", ", ".join(f"{app['name']} {address_of(app)}" for app in session["apps"]) or "–"),
        ("Data folders", folders_of(session)),
        ("ID", session["id"]),
    )
    history = [(show_time(entry["time"]), entry["after"], entry["reason"]) for entry in session["history"]]
    headline = session["image"] or kind if reason in ("", VERIFIED) else reason
    return {"headline": headline, "facts": facts, "history": history}


def drawing(containers: Sequence[Json]) -> Json:
    """A compact drawing of containers over their agents: a box for each container, a row for each agent."""
    by_agent: Dict[str, List[Json]] = {}
    for container in containers:
        by_agent.setdefault(container["agent"], []).append(container)
    rows = [_drawn(agent, held) for agent, held in list(by_agent.items())[:_AGENTS]]
    return {"rows": rows, "more": len(by_agent) - len(rows)}


def _drawn(agent: str, containers: Sequence[Json]) -> Json:
    chosen = containers
    if len(containers) > _BOXES:
        chosen = sorted(containers, key=lambda container: container["state"] == "running")[:_BOXES]
    return {"agent": agent, "boxes": [_box(one) for one in chosen], "more": len(containers) - len(chosen)}


def _box(container: Json) -> Json:
    state = container["state"]
    kind = "ok" if state == "running" else "warn" if state in _MAY_RUN else "bad"
    use = in_use(container.get("measured"))
    title = f"{container['hostname']}: {state}{f', {use}' if use else ''}"
    return {"title": title, "kind": kind + (" main" if container["hostname"] == "main1" else "")}
