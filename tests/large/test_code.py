# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The environment code in a real browser: a password, a file that is edited and run, and an extension on a data directory."""

from __future__ import annotations

import contextlib
import json
import os
import zipfile
from pathlib import Path

import browser
from app_pages import elements, send, typed, urls
from controller import Controller, Session
from environments import NAME, copied, launched
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

EXTENSION = {
    "name": "proof",
    "publisher": "tests",
    "version": "1.0.0",
    "engines": {"vscode": "^1.80.0"},
    "main": "./main.js",
    "activationEvents": ["*"],
    "capabilities": {"untrustedWorkspaces": {"supported": True}},
}
SHOWS_HOST = """\
const item = require("vscode").window.createStatusBarItem()
exports.activate = () => { item.text = "extension on " + require("os").hostname(); item.show() }
"""


def test_a_file_is_edited_and_run_with_extensions_on_a_data_directory(controller: Controller, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    os.chown(data, 1000, 1000)
    session = started(controller, data)
    (tmp_path / "hello.py").write_text("print('old')\n")
    with zipfile.ZipFile(tmp_path / "proof.vsix", "w") as archive:
        archive.writestr("extension/package.json", json.dumps(EXTENSION))
        archive.writestr("extension/main.js", SHOWS_HOST)
    for name in ("hello.py", "proof.vsix"):
        copied(controller, tmp_path / name)
    assert "successfully installed" in session.say("main1", "web-editor --install-extension proof.vsix")
    assert (data / "extensions/tests.proof-1.0.0/main.js").read_text() == SHOWS_HOST
    url, token = urls(session)["code"].split(" ")
    assert token not in url
    with browser.opened(tmp_path) as page:
        logged_in(page, url, token)
        replaced(page, "hello.py", "import socket; print(socket.gethostname())")
        browser.wait_for(page, lambda: "gethostname" in session.say("main1", "cat hello.py"), "the saved file")
        has_extension(page)
        chord(page, "`")
        browser.wait_for(page, lambda: elements(page, ".terminal-wrapper .xterm-screen"), "a terminal")[0].click()
        assert typed(page, session, "python3 hello.py", "said") == "main1"
        page.save_screenshot(str(tmp_path / "editor.png"))
        # The processes of containers are processes of this machine.
        assert shown_by_processes("/opt/code-server")
        assert shown_by_processes(token) == []
    assert token not in controller.client.logs(session.containers()["main1"]["Id"]).decode()
    controller.terminate(NAME).check()
    assert "tests.proof" in started(controller, data).say("main1", "web-editor --list-extensions")
    controller.terminate(NAME).check()


def started(controller: Controller, data: Path) -> Session:
    folder = {"session_mounts": [f"{data}:/data"], "session_environment": {"CODE_EXTENSIONS": "/data/extensions"}}
    return launched(controller, "code", session_apps=["code"], session_user={"uid": 1000, "gid": 1000}, **folder)


def logged_in(page: WebDriver, url: str, token: str) -> None:
    """A wrong password is refused; the page says where the right one is."""
    for password, selector in (("0" * 64, ".error"), (token, ".monaco-workbench")):
        page.get(url)
        field = browser.wait_for(page, lambda: elements(page, "input[name=password]"), "the form")[0]
        assert "cluster-compute open" in browser.shown(page)
        field.send_keys(password, Keys.ENTER)
        browser.wait_for(page, lambda selector=selector: elements(page, selector), selector)
    assert token not in page.current_url


def replaced(page: WebDriver, name: str, text: str) -> None:
    """Open a file by its name, type another text, and save it."""

    def file() -> WebElement | None:
        rows = elements(page, ".explorer-folders-view .monaco-list-row")
        return next((row for row in rows if name in row.text), None)

    row = browser.wait_for(page, file, "the file in the list")
    assert row is not None
    row.click()
    shown = ".part.editor .view-lines"
    browser.wait_for(page, lambda: any("old" in one.text for one in elements(page, shown)), "the old text")
    elements(page, shown)[0].click()
    chord(page, "a")
    send(page, text)
    chord(page, "s")


def has_extension(page: WebDriver) -> None:
    def item() -> bool:
        return any("extension on main1" in one.text for one in elements(page, ".statusbar-item"))

    browser.wait_for(page, item, "what the extension shows")


def chord(page: WebDriver, key: str) -> None:
    ActionChains(page).key_down(Keys.CONTROL).send_keys(key).key_up(Keys.CONTROL).perform()


def shown_by_processes(text: str) -> list[str]:
    """The files with command lines and environments that contain a text."""
    found = []
    for path in (process / name for process in Path("/proc").glob("[0-9]*") for name in ("cmdline", "environ")):
        with contextlib.suppress(OSError):  # the process has ended
            found += [str(path)] if text.encode() in path.read_bytes() else []
    return found
