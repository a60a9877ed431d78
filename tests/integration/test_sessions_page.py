# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page of sessions in a real browser: wide and narrow, empty and full, searched, dark, and with hostile text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browser
import lists
import pytest

from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.view import SessionList
from ansible_collections.cluster.compute.plugins.plugin_utils._output.page import page_of
from ansible_collections.cluster.compute.plugins.plugin_utils._session.listing import sessions_page

HOSTILE = "<img src=x onerror='document.title=1'><script>document.title=2</script><style>*{display:none}</style>"
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
WAITING = ("giant", "dave", 20, 4, "8g", 0)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with browser.opened(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """Lists of 0, 3 and 300 sessions, as JSON."""
    chosen = {
        0: (lists.few_agents(), []),
        3: (lists.few_agents(), [*lists.FEW, WAITING]),
        300: (lists.many_agents(), lists.many(300)),
    }
    return {
        count: json.dumps(lists.listed(tmp_path_factory.mktemp("list"), *given).to_json())
        for count, given in chosen.items()
    }


def show(page: Any, folder: Path, document: Json, size: str = "desktop") -> None:
    """Open the page of a list in a window whose content has this size."""
    path = folder / "sessions.html"
    path.write_text(sessions_page(page_of(SessionList.from_json(document))), encoding="utf-8")
    width, height = SIZES[size]
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == "phone"}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    page.get("about:blank")
    page.get(path.as_uri())


def rows(page: Any, table: str) -> list[Any]:
    """The rows of a table that are shown."""
    return [row for row in page.find_elements("css selector", f"table.{table} tbody tr") if row.is_displayed()]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("count", [0, 3, 300])
def test_the_page_fits_the_window(page: Any, documents: dict[int, str], tmp_path: Path, count: int, size: str) -> None:
    show(page, tmp_path, json.loads(documents[count]), size)
    width = page.execute_script("return document.documentElement.scrollWidth")
    assert width <= SIZES[size][0]
    outside = """return [...document.querySelectorAll("main *")].filter((part) => !part.closest("svg") &&
        part.getBoundingClientRect().right > innerWidth + 1).map((part) => part.outerHTML.slice(0, 80))"""
    assert page.execute_script(outside) == []
    shown = len(page.find_elements("css selector", "table.sessions tbody tr, table.waiting tbody tr"))
    assert shown == (4 if count == 3 else count)
    assert page.find_element("css selector", ".made").text.startswith("as of ")
    assert [entry for entry in page.get_log("browser") if entry["level"] == "SEVERE"] == []


def heights(page: Any, selector: str) -> list[float]:
    """The heights of elements, in lines of text of their own size."""
    script = """return [...document.querySelectorAll(arguments[0])].map((part) =>
        part.getBoundingClientRect().height / parseFloat(getComputedStyle(part).lineHeight))"""
    measured: list[float] = page.execute_script(script, selector)
    return measured


def test_a_session_has_one_line_on_a_desktop_and_no_vertical_name_on_a_phone(
    page: Any, documents: dict[int, str], tmp_path: Path
) -> None:
    document = json.loads(documents[3])
    long = "evaluation-of-the-large-model-on-validation"
    app = {"name": "jupyterlab", "address": "192.0.2.11", "port": 30001, "agent": "node1"}
    for session in document["sessions"]:
        session.update(name=long, owner="alexandra", apps=[app], reason="the command ended with exit code 0")
    show(page, tmp_path, document)
    assert max(heights(page, ".sessions th b, .sessions td > span, .sessions summary")) < 1.6
    assert max(heights(page, ".sessions tbody tr")) < 2.5
    show(page, tmp_path, document, "phone")
    assert max(heights(page, ".sessions th small, .waiting th small")) < 1.6


def test_an_app_is_not_cut_on_a_desktop(page: Any, documents: dict[int, str], tmp_path: Path) -> None:
    document = json.loads(documents[3])
    app = {"name": "jupyterlab", "address": "192.0.2.11", "port": 30001, "agent": "node1"}
    for session in document["sessions"]:
        session.update(name="train", apps=[app])
    show(page, tmp_path, document)
    cut = """return [...document.querySelectorAll(".sessions td:nth-child(6)")]
        .filter(part => part.scrollWidth > part.clientWidth).map(part => part.textContent)"""
    assert page.execute_script(cut) == []


def test_the_name_of_an_agent_is_not_cut(page: Any, documents: dict[int, str], tmp_path: Path) -> None:
    """It is beside the drawing of its containers."""
    name = "gpu-node-with-a-long-name-17.cluster.example.org"
    show(page, tmp_path, json.loads(documents[3].replace('"node1"', json.dumps(name))))
    cut = """return [...document.querySelectorAll(".drawing .where")]
        .map(part => [part.textContent, part.scrollWidth > part.clientWidth])"""
    assert [name, False] in (shown := page.execute_script(cut)), shown
    assert not [one for one, is_cut in shown if is_cut]


def test_a_search_and_the_filters_choose_sessions_and_survive_a_reload(
    page: Any, documents: dict[int, str], tmp_path: Path
) -> None:
    show(page, tmp_path, json.loads(documents[3]))
    assert (len(rows(page, "sessions")), len(rows(page, "waiting"))) == (3, 1)
    page.find_element("id", "search").send_keys("ALICE node1")
    assert [row.find_element("css selector", "b").text for row in rows(page, "sessions")] == ["train"]
    assert page.find_element("css selector", "#sessions .count").text == "1 of 3"
    page.refresh()
    browser.wait_for(page, lambda: len(rows(page, "sessions")) == 1, "the same search")
    assert page.find_element("id", "search").get_property("value") == "ALICE node1"
    page.find_element("id", "search").clear()
    page.find_element("css selector", "[data-filter=waiting]").click()
    browser.wait_for(page, lambda: (len(rows(page, "sessions")), len(rows(page, "waiting"))) == (0, 1), "waiting alone")
    page.find_element("css selector", "[data-filter='']").click()
    page.find_element("css selector", "#owner option[value=bob]").click()
    assert [row.find_element("css selector", "b").text for row in rows(page, "sessions")] == ["notebook"]


def test_dark_and_light(page: Any, documents: dict[int, str], tmp_path: Path) -> None:
    ground = "return getComputedStyle(document.body).backgroundColor"
    shown = {}
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        show(page, tmp_path, json.loads(documents[0]))
        shown[scheme] = page.execute_script(ground)
    assert shown["light"] != shown["dark"]
    page.find_element("id", "theme").click()
    assert page.execute_script(ground) == shown["light"]
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_hostile_text_is_text(page: Any, documents: dict[int, str], tmp_path: Path) -> None:
    document = json.loads(documents[3])
    for session in document["sessions"]:
        session.update(name=session["name"] + HOSTILE, image=HOSTILE, owner=HOSTILE)
        session.update(reason=HOSTILE)
    for owner in document["owners"]:
        owner["owner"] += HOSTILE
    show(page, tmp_path, document)
    assert page.title == "Cluster sessions"
    assert page.find_elements("css selector", "img, main script, main style") == []
    assert HOSTILE in page.find_element("css selector", "table.sessions tbody th").text


def test_the_policy_stops_what_is_not_of_the_page(page: Any, documents: dict[int, str], tmp_path: Path) -> None:
    """The second defence, for a text that were not escaped."""
    show(page, tmp_path, json.loads(documents[0]))
    path = tmp_path / "sessions.html"
    injected = f"<main>{HOSTILE}<b onclick='document.title=3'>x</b>"
    path.write_text(path.read_text().replace("<main>", injected, 1))
    page.get(path.as_uri())
    page.find_element("css selector", "main b").click()
    assert page.title == "Cluster sessions"
    refused = [entry["message"] for entry in page.get_log("browser") if "Content Security Policy" in entry["message"]]
    assert len(refused) >= 3
