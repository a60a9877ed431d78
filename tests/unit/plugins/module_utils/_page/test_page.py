# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page: what it contains, and that no text of a session becomes a part of it."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import lists
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._page.bars import Colours, amount_bar
from ansible_collections.cluster.compute.plugins.module_utils._page.drawing import drawing
from ansible_collections.cluster.compute.plugins.module_utils._page.markup import Html, element
from ansible_collections.cluster.compute.plugins.module_utils._page.page import sessions_page
from ansible_collections.cluster.compute.plugins.module_utils._page.plot import plot

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
def few(tmp_path_factory: pytest.TempPathFactory) -> Json:
    waiting = ("giant", "dave", 20, 4, "8g", 0)
    folder = tmp_path_factory.mktemp("few")
    return lists.listed(folder, lists.few_agents(), [*lists.FEW, waiting], lifetime=36000)


def test_the_page_shows_what_is_free_and_who_has_it(few: Json) -> None:
    text = _Reader(sessions_page(few, "", "")).text
    assert "CPUs11 free" in text
    assert "21 of 40 allocated, 7 in use, at most 7 free on one agent" in text
    assert "3 sessions1 waiting, 9 containers" in text
    left = "11 CPUs, 86g, 2 GPUs"
    for row in ("alice10612" + "24g6", "bob1011" + "2g0", "carol1028" + "16g0", "dave0100" + "00"):
        assert row + left in text
    assert "node3 defaultup, takes no new sessions" in text


def test_a_waiting_session_has_its_turn_and_its_reason(few: Json) -> None:
    text = _Reader(sessions_page(few, "", "")).text
    assert "1giantdave20 × 4 CPUs, 8gpriority 10" in text
    assert "node1: needs 80 CPUs, 4 free" in text
    [waiting] = [session for session in few["sessions"] if session["state"] == "PENDING"]
    expected = {**few, "sessions": [{**waiting, "reason": "no room; it starts by 18:30"}]}
    assert re.search(r"Starts byReason1giant.*\d18:30no room", _Reader(sessions_page(expected, "", "")).text)


def test_the_page_of_nothing() -> None:
    nothing: Json = {"time": lists.NOW, "sessions": [], "agents": [], "owners": [], "groups": [], "samples": []}
    text = _Reader(sessions_page(nothing, "", "")).text
    assert "0 sessions" in text
    for sentence in (
        "No session uses the agents.",
        "No session waits.",
        "No sessions.",
        "The inventory has no agents.",
    ):
        assert sentence in text
    assert "Each pass of schedule.yml takes one." in text


def test_no_text_of_a_session_becomes_an_element(few: Json) -> None:
    """Names are checked at input; a store and labels that others wrote are not."""
    before = sorted(tag for tag, _attributes in _Reader(sessions_page(few, "s{}", "1")).elements)
    spoiled = _spoiled(few)
    page = sessions_page(spoiled, "s{}", "1")
    reader = _Reader(page)
    assert sorted(tag for tag, _attributes in reader.elements) == before
    assert "alert(1)" in reader.text
    assert "\u202e" not in page
    assert not [name for _tag, attributes in reader.elements for name in attributes if name.startswith("on")]


def _spoiled(value: Json) -> Json:
    """The document with a hostile end of every text that a user or a container can choose."""
    document: Json = {**value}
    document["sessions"] = [_spoiled_session(session) for session in value["sessions"]]
    document["owners"] = [{**owner, "owner": owner["owner"] + HOSTILE} for owner in value["owners"]]
    document["agents"] = [
        {
            **agent,
            **{key: agent[key] + HOSTILE for key in ("name", "group", "reason")},
            "owners": {owner + HOSTILE: used for owner, used in agent["owners"].items()},
        }
        for agent in value["agents"]
    ]
    return document


def _spoiled_session(session: Json) -> Json:
    texts = {key: session[key] + HOSTILE for key in ("name", "owner", "image", "reason", "mode", "group")}
    containers = [
        {**one, "hostname": one["hostname"] + HOSTILE, "agent": one["agent"] + HOSTILE} for one in session["containers"]
    ]
    return {**session, **texts, "containers": containers}


def test_the_policy_allows_this_style_and_this_script_alone(few: Json) -> None:
    style, script = "body { margin: 0 }\n", "'use strict';\n"
    page = sessions_page(few, style, script)
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    digests = [
        "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)
    ]
    assert "default-src &#x27;none&#x27;" in policy
    assert all(digest in policy for digest in digests)
    assert "unsafe" not in policy
    elements = _Reader(page).elements
    assert not [attributes for _tag, attributes in elements if {"style", "src", "href"} & set(attributes)]
    assert page.index("Content-Security-Policy") < page.index("<style>")


@given(st.text(), st.text())
def test_what_is_put_into_an_element_comes_back_as_text(content: str, attribute: str) -> None:
    made = element("p", content, title=attribute)
    assert re.fullmatch(r'<p title="[^"<>]*">[^<>]*</p>', made)
    assert isinstance(made, Html)


def test_parts_of_a_bar_stand_one_after_the_other() -> None:
    widths = re.findall(
        r'class="(\w+)" x="([\d.]+)%"(?: y="\d+")? width="([\d.]+)%"', amount_bar([("c0", 1), ("c1", 2)], 8, "x", 4)
    )
    assert widths == [("c0", "0", "12.5"), ("c1", "12.5", "25"), ("inuse", "0", "50")]
    assert 'width="0%"' in amount_bar([("c0", 1)], 0, "x")
    assert 'width="100%"' in amount_bar([("c0", 9)], 4, "x")


def test_the_owners_with_the_most_have_a_colour_of_their_own() -> None:
    used = [{"owner": f"user{number:02}", "used": {"millicpus": number}} for number in range(12)]
    colours = Colours(used, {"millicpus": 100})
    assert [colours.of(f"user{number:02}") for number in (11, 5, 4, 0)] == ["c0", "c6", "c7", "c7"]
    assert colours.of("unknown") == "c7"


def container(number: int, agent: str = "a", state: str = "running") -> Json:
    return {"hostname": f"sub{number}" if number else "main1", "agent": agent, "state": state}


def test_a_drawing_shows_what_does_not_run_first_if_there_are_many() -> None:
    drawn = drawing([*(container(number) for number in range(100)), container(100, state="exited")])
    assert drawn is not None
    assert drawn.count('class="box ') == 32
    assert drawn.index("sub100: exited") < drawn.index("main1: running")
    assert "+69" in drawn
    assert drawing([]) is None
    wide = drawing([container(number, agent=f"node{number}") for number in range(40)])
    assert wide is not None
    assert "… and 28 more agents" in wide


def sample(moment: float, used: float = 1000, capacity: float = 4000) -> Json:
    amounts = {"millicpus": used, "memory": 0, "gpus": 0}
    return {
        "time": moment,
        "capacity": {"millicpus": capacity, "memory": 8, "gpus": 0},
        "used": amounts,
        "measured": {"millicpus": 500, "memory": 0, "gpu_percent": None},
    }


def test_a_plot_has_a_line_for_each_resource_and_a_gap_where_no_sample_was_taken() -> None:
    minutes = [*range(0, 60, 5), *range(300, 400, 5)]
    drawn = str(plot([sample(60.0 * minute) for minute in minutes], 0.0, 86400.0))
    assert drawn.count('class="line cpus" points') == 2
    assert "GPUs" not in drawn
    assert re.search(r'class="line cpus" points="0\.0,75\.0 ', drawn)
    assert len(re.findall(r'<text class="time', drawn)) == 5


def test_a_plot_of_many_samples_is_no_longer_than_its_width_needs() -> None:
    drawn = str(plot([sample(60.0 * minute) for minute in range(43200)], 0.0, 2592000.0))
    assert len(drawn) < 100_000
    assert "No samples of this time." in plot([sample(5.0)], 10.0, 20.0)


def test_the_files_of_the_page_close_no_element() -> None:
    folder = Path(__file__).parents[5] / "roles/session/files"
    assert "</style" not in (folder / "sessions.css").read_text().lower()
    assert "</script" not in (folder / "sessions.js").read_text().lower()
