# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page of sessions.yml: one file without outside resources, that needs no server and trusts no text of a session."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import base64
import hashlib
from typing import Sequence

from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._page.bars import Colours
from ansible_collections.cluster.compute.plugins.module_utils._page.glance import (
    agent_cards,
    capacity_of,
    group_rows,
    owner_rows,
    tiles,
)
from ansible_collections.cluster.compute.plugins.module_utils._page.markup import Html, element, joined
from ansible_collections.cluster.compute.plugins.module_utils._page.plot import plot
from ansible_collections.cluster.compute.plugins.module_utils._page.rows import moment, session_rows, waiting_rows

_DAY = 86400.0
_STATES = (
    ("", "All"),
    ("running", "Running"),
    ("waiting", "Waiting"),
    ("finished", "Finished"),
    ("other", "Failed or cancelled"),
)


def sessions_page(listed: Json, style: str, script: str) -> str:
    """The page of a list of C(session_info), with its style sheet and its script.

    The policy in its head allows exactly these two: whatever a name or a reason contains, a browser loads and runs
    nothing else.
    """
    policy = "default-src 'none'; style-src '%s'; script-src '%s'; base-uri 'none'; form-action 'none'"
    head = (
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy % (_digest(style), _digest(script))),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", "Cluster sessions"),
        element("style", Html(style)),
    )
    body = joined(_header(listed), element("main", *_sections(listed)), element("script", Html(script)))
    return "<!DOCTYPE html>\n%s\n" % element("html", element("head", *head), element("body", body), lang="en")


def _digest(text: str) -> str:
    return "sha256-%s" % base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _header(listed: Json) -> Html:
    search = element("input", id="search", type="search", placeholder="Search sessions", aria_label="Search sessions")
    names = sorted({session["owner"] for session in listed["sessions"]})
    owners = [element("option", "All owners", value=""), *(element("option", name, value=name) for name in names)]
    buttons = [
        element("button", text, type="button", data_filter=state, aria_pressed="true" if not state else "false")
        for state, text in _STATES
    ]
    theme = element("button", "Dark or light", type="button", id="theme")
    states = element("span", joined(*buttons), class_="filters", role="group", aria_label="State")
    made = element("p", "as of ", moment(listed["time"]), class_="made")
    controls = element(
        "div",
        search,
        states,
        element("select", joined(*owners), id="owner", aria_label="Owner"),
        theme,
        class_="controls",
    )
    return element("header", element("h1", "Cluster sessions"), made, controls)


def _sections(listed: Json) -> Sequence[Html]:
    agents, sessions, owners = listed["agents"], listed["sessions"], listed["owners"]
    capacity = capacity_of(agents)
    colours = Colours(owners, capacity)
    now = float(listed["time"])
    waiting = sum(session["state"] == "PENDING" for session in sessions)
    return (
        _section("What is free, and who has it", tiles(agents, sessions, owners, colours), "free"),
        _section("Owners", owner_rows(owners, colours, bool(capacity["gpus"])), "owners"),
        *_groups(listed["groups"], bool(capacity["gpus"])),
        _section("Waiting sessions", waiting_rows(sessions), "waiting", waiting),
        _section("Sessions", session_rows(sessions), "sessions", len(sessions) - waiting),
        _section("Use over time", _plots(listed["samples"], now), "use"),
        _section("Agents", agent_cards(agents, colours), "agents", len(agents)),
    )


def _groups(groups: Sequence[Json], with_gpus: bool) -> Sequence[Html]:
    """A section with the resource groups, unless it would repeat what is free in all of them."""
    if len(groups) < 2 and not any(group["own"] for group in groups):
        return ()
    return (_section("Resource groups", group_rows(groups, with_gpus), "groups", len(groups)),)


def _plots(samples: Sequence[Json], now: float) -> Html:
    """The last day beside the last month."""
    spans = (("The last 24 hours", _DAY), ("The last 30 days", 30 * _DAY))
    figures = (element("figure", element("figcaption", name), plot(samples, now - span, now)) for name, span in spans)
    return element("div", *figures, class_="plots")


def _section(title: str, content: Html, identity: str, count: int | None = None) -> Html:
    number = element("span", count, class_="count") if count is not None else None
    return element("section", element("h2", title, " ", number or Html("")), content, id=identity)
