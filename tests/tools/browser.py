# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real browser for tests: Debian's Chromium without a screen, driven by Selenium.

with browser.opened(tmp_path) as page:
    page.get("http://127.0.0.1:30001/")
    browser.wait_for(page, lambda: page.find_elements("css selector", "h1"), "the heading")
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

Value = TypeVar("Value")
PATIENCE = 120.0
PROGRAMS = {"chromium": "chromium", "chromedriver": "chromium-driver"}
# The page that Chromium shows in place of one that it could not load.
FAILED_LOAD = "#main-frame-error"
OPTIONS = (
    "--headless=new",
    # The tests run as root, and every page is of this machine.
    "--no-sandbox",
    "--no-proxy-server",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
)


def program(name: str) -> str:
    """The path of a program of the browser. A test without it fails, with the package to install."""
    path = shutil.which(name)
    assert path, f"The tests in a browser need {name}: apt-get install -y {PROGRAMS[name]}"
    return path


@contextlib.contextmanager
def opened(folder: Path, size: tuple[int, int] = (1280, 800)) -> Iterator[webdriver.Chrome]:
    """A browser with an empty profile in a folder; it ends with the block."""
    options = Options()
    options.binary_location = program("chromium")
    for option in (*OPTIONS, f"--window-size={size[0]},{size[1]}", f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(option)
    service = Service(executable_path=program("chromedriver"), log_output=str(folder / "driver.log"))
    page = webdriver.Chrome(options=options, service=service)
    page.set_page_load_timeout(PATIENCE)
    try:
        yield page
    finally:
        page.quit()


def wait_for(page: webdriver.Chrome, find: Callable[[], Value], what: str, patience: float = PATIENCE) -> Value:
    """The first value that is true. An element that is not there yet, or is replaced meanwhile, is asked for again.

    Each start of a container changes the machine's networks, for which Chromium ends a load: the page is then loaded again.
    """
    end = time.monotonic() + patience
    while True:
        problem = ""
        try:
            value = find()
            if value:
                return value
            if page.find_elements("css selector", FAILED_LOAD):
                page.refresh()
        except WebDriverException as error:
            problem = str(error.msg)
        assert time.monotonic() < end, f"{what}: not there after {patience:g} s. {problem}\n{shown(page)}"
        time.sleep(0.2)


def shown(page: Any) -> str:
    """The address and the text of the page, for the message of a failed test. Tokens in the address are left out."""
    with contextlib.suppress(WebDriverException):
        body = page.find_element("css selector", "body")
        return f"{page.current_url.partition('?')[0]}\n{body.text[-3000:]}"
    return "(the browser shows no page)"
