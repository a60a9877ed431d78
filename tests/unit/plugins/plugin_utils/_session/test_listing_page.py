# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page: what it contains, and that no text of a session becomes a part of it."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import lists
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.view import SessionList, SessionView
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import escape_control
from ansible_collections.cluster.compute.plugins.plugin_utils._output.page import page_of
from ansible_collections.cluster.compute.plugins.plugin_utils._session.listing import sessions_page

FILES = Path(__file__).parents[5] / "playbooks/files"
TEXTS = 10  # on each page: to compile its template takes far longer than to fill it
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&\u202e"


class _Reader(HTMLParser):
    """The elements with their attributes, and the text outside of styles and scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside not in ("style", "script"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> SessionList:
    waiting = ("giant", "dave", 20, 4, "8g", 0)
    folder = tmp_path_factory.mktemp("few")
    return lists.listed(folder, lists.few_agents(), [*lists.FEW, waiting], lifetime=36000)


def test_the_page_shows_what_is_free_and_who_has_it(few: SessionList) -> None:
    text = _Reader(sessions_page(page_of(few))).text
    assert "CPUs11 free" in text
    assert "21 of 40 allocated, 7 in use, at most 7 free on one agent" in text
    assert "3 sessions1 waiting, 9 containers" in text
    left = "11 CPUs, 86g, 2 GPUs"
    for row in ("alice10612" + "24g6", "bob1011" + "2g0", "carol1028" + "16g0", "dave0100" + "00"):
        assert row + left in text
    assert "node3 defaultup, takes no new sessions" in text


def test_a_waiting_session_has_its_turn_and_its_reason(few: SessionList) -> None:
    text = _Reader(sessions_page(page_of(few))).text
    assert "1giantdave20 × 4 CPUs, 8gpriority 10" in text
    assert "no host can hold this as they are: largest free when empty node1: needs 80 CPUs, 16 free" in text
    [waiting] = [session for session in few.sessions if session.waits]
    expected = replace(few, sessions=(replace(waiting, reason="no room; it starts by 18:30"),))
    assert re.search(r"Starts byReason1giant.*\d18:30no room", _Reader(sessions_page(page_of(expected))).text)


def test_the_page_of_nothing() -> None:
    nothing = SessionList(time=lists.NOW)
    text = _Reader(sessions_page(page_of(nothing))).text
    assert "0 sessions" in text
    for sentence in (
        "No session uses the agents.",
        "No session waits.",
        "No sessions.",
        "The inventory has no agents.",
    ):
        assert sentence in text
    assert "Each pass of schedule.yml takes one." in text


def test_no_text_of_a_session_becomes_an_element(few: SessionList) -> None:
    """Names are checked at input; a store and labels that others wrote are not."""
    before = sorted(tag for tag, _attributes in _Reader(sessions_page(page_of(few))).elements)
    spoiled = _spoiled(few)
    page = sessions_page(page_of(spoiled))
    reader = _Reader(page)
    assert sorted(tag for tag, _attributes in reader.elements) == before
    assert "alert(1)" in reader.text
    assert "\u202e" not in page
    assert not [name for _tag, attributes in reader.elements for name in attributes if name.startswith("on")]


def _spoiled(value: SessionList) -> SessionList:
    """The list with a hostile end of every text that a user or a container can choose."""
    return replace(
        value,
        sessions=tuple(map(_spoiled_session, value.sessions)),
        owners=tuple(replace(one, owner=one.owner + HOSTILE) for one in value.owners),
        agents=tuple(
            replace(
                agent,
                **{key: getattr(agent, key) + HOSTILE for key in ("name", "group", "reason")},
                owners={owner + HOSTILE: used for owner, used in agent.owners.items()},
            )
            for agent in value.agents
        ),
    )


def _spoiled_session(session: SessionView) -> SessionView:
    texts = {key: getattr(session, key) + HOSTILE for key in ("name", "owner", "image", "reason", "mode", "group")}
    containers = tuple(
        replace(one, hostname=one.hostname + HOSTILE, agent=one.agent + HOSTILE) for one in session.containers
    )
    return replace(session, **texts, containers=containers)


def test_the_policy_allows_this_style_and_this_script_alone(few: SessionList) -> None:
    page = sessions_page(page_of(few))
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    texts = [(FILES / name).read_bytes() for name in ("sessions.css", "sessions.js")]
    digests = ["sha256-" + base64.b64encode(hashlib.sha256(text).digest()).decode() for text in texts]
    assert "default-src 'none'" in html.unescape(policy)
    assert all(digest in html.unescape(policy) for digest in digests)
    assert "unsafe" not in policy
    assert all(text.decode() in page for text in texts)
    elements = _Reader(page).elements
    assert not [attributes for _tag, attributes in elements if {"style", "src", "href"} & set(attributes)]
    assert page.index("Content-Security-Policy") < page.index("<style>")


@settings(max_examples=settings().max_examples // TEXTS)
@given(st.lists(st.text(min_size=1), min_size=TEXTS, max_size=TEXTS))
def test_a_text_comes_back_as_text(few: SessionList, texts: list[str]) -> None:
    [waiting] = [session for session in few.sessions if session.waits]
    changed = tuple(replace(waiting, name=text, owner=text) for text in texts)
    reader = _Reader(sessions_page(page_of(replace(few, sessions=changed))))
    shown = [attributes["data-owner"] for tag, attributes in reader.elements if "data-row" in attributes]
    assert shown == [escape_control(text) for text in texts]
    assert [text for text in texts if escape_control(text) not in reader.text] == []


def test_the_files_of_the_page_close_no_element() -> None:
    assert "</style" not in (FILES / "sessions.css").read_text().lower()
    assert "</script" not in (FILES / "sessions.js").read_text().lower()
