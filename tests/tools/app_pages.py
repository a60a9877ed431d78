# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The apps of a session as their user meets them: URLs with tokens, and pages in a browser."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import browser
from controller import ROOT, Session
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
from selenium.webdriver.common.keys import Keys
from servers import until


def urls(session: Session) -> dict[str, str]:
    """The URLs with their tokens."""
    lines = (session.folder / "apps").read_text().splitlines()
    return dict(line.split(" ", 1) for line in lines)


def tokens(session: Session) -> list[str]:
    return [url.rpartition("token=")[2] for url in urls(session).values()]


@contextmanager
def opened(session: Session, app: str) -> Iterator[str]:
    """The URL of an app while ``cluster-compute open`` runs. TERM ends it, as an interruption."""
    own = ["-e", f"session_artifacts={session.controller.artifacts}"]
    command = [sys.executable, str(ROOT / "extensions/command/cluster_compute"), *own, "open", session.name, app]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            name, url = process.stdout.readline().split()
            assert name == app
            yield url
        finally:
            process.terminate()
    assert process.returncode == 130


def elements(page: WebDriver, selector: str) -> list[Any]:
    return [found for found in page.find_elements("css selector", selector) if found.is_displayed()]


def send(page: WebDriver, *keys: str) -> None:
    ActionChains(page).send_keys(*keys).perform()


def get(address: str) -> str:
    """The page, as soon as something answers there."""
    found: list[str] = []

    def answers() -> bool:
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                found.append(answer.read().decode())
        except urllib.error.HTTPError as error:
            found.append(str(error.code))
        except OSError:
            return False
        return True

    until(answers, f"an answer at {address.partition('?')[0]}")
    return found[0]


def notebook_created(page: WebDriver) -> bool:
    """Create a notebook by a click on its card. A page that a busy server did not load whole shows a dialog, and is loaded again."""
    if elements(page, ".jp-Dialog"):
        page.refresh()
        return False
    card = elements(page, '.jp-LauncherCard[data-category="Notebook"]')
    if card:
        card[0].click()
    return bool(card)


def typed_into_cell(page: WebDriver, text: str) -> bool:
    """Type into the first cell, unless it has the text."""
    cell = elements(page, ".jp-Notebook .cm-content")[0]
    if text not in cell.text:
        cell.click()
        ActionChains(page).key_down(Keys.CONTROL).send_keys("a").key_up(Keys.CONTROL).send_keys(text).perform()
    return text in cell.text


def output_of_cell(page: WebDriver) -> list[str]:
    """Run the cell until it has an output: a page that is not yet connected to the kernel drops the request."""
    end = time.monotonic() + browser.PATIENCE
    while time.monotonic() < end:
        elements(page, '[data-command="notebook:run-cell-and-select-next"]')[0].click()
        for _attempt in range(50):
            shown = [one.text for one in elements(page, ".jp-Notebook .jp-OutputArea-output") if one.text]
            if shown:
                return shown
            time.sleep(0.2)
        elements(page, ".jp-Notebook .cm-content")[0].click()
    raise AssertionError(browser.shown(page))


def open_terminal(page: WebDriver, url: str) -> None:
    page.get(url)
    browser.wait_for(page, lambda: page.find_elements("css selector", ".xterm-helper-textarea"), "a terminal")
    rows = ".xterm-rows, .xterm-screen canvas"
    browser.wait_for(page, lambda: elements(page, rows), "the screen of the terminal")[0].click()


def typed(page: WebDriver, session: Session, command: str, file: str) -> str:
    """What a command writes to a file. The first keys may be lost while the terminal connects, so it is typed again."""
    end = time.monotonic() + browser.PATIENCE
    while time.monotonic() < end:
        send(page, f"{command} >~/{file}", Keys.ENTER)
        for _attempt in range(10):
            found = session.ssh("main1", f"cat {file}")
            if found.code == 0 and found.text:
                return found.text.strip()
            time.sleep(0.3)
    raise AssertionError(browser.shown(page))


class Tmux:
    """The tmux of a web terminal: its keys are typed in the page, and what it does is asked of it by SSH."""

    def __init__(self, page: WebDriver, session: Session) -> None:
        self._page, self._session = page, session

    def prefix(self, *keys: str) -> None:
        """Ctrl-B, and then the keys. A dialog, such as about a busy server, would get them."""
        for button in elements(self._page, ".jp-Dialog-close-button"):
            button.click()
        # A click would be one for tmux, too, and its timer for a second click cancels the prefix.
        self._page.execute_script("document.querySelector('.xterm-helper-textarea').focus()")
        ActionChains(self._page).key_down(Keys.CONTROL).send_keys("b").key_up(Keys.CONTROL).perform()
        send(self._page, *keys)

    def does(self, form: str, expected: str, *keys: str) -> None:
        """Type Ctrl-B and these keys until a format of tmux has this value: a busy page can lose a key."""
        for _attempt in range(5):
            self.prefix(*keys)
            with suppress(AssertionError):
                return self.shows(form, expected, 30)
        raise AssertionError(f"Ctrl-B {keys}: {form} is not {expected}. {browser.shown(self._page)}")

    def wheel(self) -> None:
        """Turn the wheel above the terminal, away from the user."""
        screen = ScrollOrigin.from_element(elements(self._page, ".xterm-screen")[0])
        ActionChains(self._page).scroll_from_origin(screen, 0, -400).perform()

    def shows(self, form: str, expected: str, patience: float = browser.PATIENCE) -> None:
        """Wait until a format of tmux has this value."""
        command = f"tmux display-message -p -t web '{form}'"
        what = f"{form} to be {expected}"
        browser.wait_for(
            self._page, lambda: self._session.ssh("main1", command).text.strip() == expected, what, patience
        )
