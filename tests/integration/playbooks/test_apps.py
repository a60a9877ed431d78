# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The apps of a session in a real browser, their tokens, their death, and their change while the session runs."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import browser
import images
import pytest
from app_pages import (
    Tmux,
    elements,
    get,
    notebook_created,
    open_terminal,
    output_of_cell,
    send,
    tokens,
    typed,
    typed_into_cell,
    urls,
)
from controller import SMALL, Controller, Done, Session, run_playbook
from locks import lock
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.keys import Keys
from servers import until

SIZE = {
    "session_cluster_size": 2,
    "session_cpus": 1,
    "session_memory": "768m",
    "session_on_failure": "restart",
    "session_idle_timeout": 3600,
}
LAB, KEPT = "cluster-compute/lab:1.0", "cluster-compute-test/lab:kept"
WEB = {
    "name": "web",
    "port": 8000,
    "command": 'echo "hello from $APP_NAME"; test ! -e broken || exit 3; exec python3 -m http.server $APP_PORT',
    "ready": "/",
}


@pytest.fixture(scope="module")
def launch(controller: Controller) -> Done:
    """A session of two containers with three apps, launched with all that Ansible can print. The launch builds its image."""
    images.environment("lab")
    apps = ["jupyterlab", "terminal", WEB]
    # Other tests build on this image.
    with lock("environment-lab"):
        # The build finds its layers in the image, which has another name meanwhile.
        controller.client.tag(LAB, KEPT)
        controller.client.remove_image(LAB)
        try:
            variables = {"session_name": "desk", "session_image": "lab", "session_apps": apps, **SMALL, **SIZE}
            command = controller.command("cluster_session", "-vvv", **variables)
            return run_playbook(command, controller.environment).check()
        except BaseException:
            controller.client.tag(KEPT, LAB)
            raise
        finally:
            controller.client.remove_image(KEPT)


@pytest.fixture(scope="module")
def desk(controller: Controller, launch: Done) -> Session:
    return Session(controller, "desk")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDriver]:
    with browser.opened(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


def test_a_launch_builds_the_environment_that_it_names(controller: Controller, launch: Done, desk: Session) -> None:
    assert "Build the image from the files" in launch.text
    assert controller.client.inspect_image(LAB)["Id"] == desk.containers()["main1"]["Image"]


def test_a_cell_of_a_notebook_reaches_the_other_container(desk: Session, page: WebDriver) -> None:
    page.get(urls(desk)["jupyterlab"] + "&reset")
    browser.wait_for(page, lambda: notebook_created(page), "the launcher of JupyterLab")
    widgets = ".jp-StatusBar-Widget *"
    browser.wait_for(page, lambda: any("| Idle" in one.text for one in elements(page, widgets)), "a kernel that waits")
    browser.wait_for(page, lambda: typed_into_cell(page, "!ssh sub1 hostname; echo written >from-notebook"), "a cell")
    assert output_of_cell(page) == ["sub1"]
    assert "/lab" in page.current_url


def test_the_key_in_the_file_browser_opens_the_container(desk: Session, tmp_path: Path) -> None:
    """Nobody else reads it, and sub1 has none."""
    base, token = urls(desk)["jupyterlab"].split("/lab?")
    key = tmp_path / "id_container"
    key.touch(0o600)
    key.write_text(json.loads(get(f"{base}/api/contents/id_container?{token}"))["content"])
    public = ["ssh-keygen", "-y", "-f"]
    kept = subprocess.run([*public, desk.folder / "id_container"], capture_output=True, check=True).stdout
    assert subprocess.run([*public, key], capture_output=True, check=True).stdout == kept
    assert desk.say("main1", "stat -c '%a %U' id_container; ssh sub1 test ! -e id_container").split() == ["600", "work"]


def test_a_wrong_token_is_refused(desk: Session, page: WebDriver) -> None:
    for name, folder in (("jupyterlab", "/api/contents"), ("terminal", "/api/terminals")):
        address, right = urls(desk)[name].split("token=")
        base = address.partition("/lab")[0].partition("/terminals")[0]
        wrong = tokens(desk)[0 if name == "terminal" else 1]
        assert get(f"{base}{folder}?token={wrong}") == "403"
        assert get(f"{base}{folder}?token={right}") != "403"
    # An open page would ask the server again, and get its cookie back.
    page.get("about:blank")
    page.execute_cdp_cmd("Network.clearBrowserCookies", {})
    page.get(urls(desk)["jupyterlab"].partition("token=")[0] + "token=wrong")
    browser.wait_for(page, lambda: elements(page, "#password_input"), "the form that asks for the token")
    assert "/login" in page.current_url


def test_a_terminal_outlives_its_page(desk: Session, page: WebDriver) -> None:
    url = urls(desk)["terminal"]
    open_terminal(page, url)
    assert typed(page, desk, "echo $BACKENDAI_CLUSTER_HOST", "host") == "main1"
    shell = typed(page, desk, "echo $$", "first-shell")
    page.get("about:blank")
    open_terminal(page, url)
    assert typed(page, desk, "echo $$", "second-shell") == shell
    assert typed(page, desk, "tmux list-sessions -F '#{session_name}'", "names") == "web"
    # The notebook and the terminal have the same files.
    assert typed(page, desk, "cat from-notebook", "seen") == "written"


def test_the_web_terminal_leaves_keys_and_wheel_to_tmux(desk: Session, page: WebDriver) -> None:
    """The page of Notebook has shortcuts of its own, such as Ctrl-B."""
    open_terminal(page, urls(desk)["terminal"])
    assert typed(page, desk, "seq 300; echo ready", "ready").endswith("ready")
    send(page, "seq 300", Keys.ENTER)
    tmux = Tmux(page, desk)
    tmux.does("#{session_windows}", "2", "c")
    tmux.does("#{pane_mode}", "tree-mode", "w")
    send(page, "q")
    tmux.shows("#{pane_mode}", "")
    tmux.does("#{pane_mode}", "copy-mode", "[")
    send(page, "q")
    tmux.shows("#{pane_mode}", "")
    tmux.prefix("x")
    # tmux 3.3 ignores what is typed before its prompt is there.
    time.sleep(2)
    send(page, "y")
    tmux.shows("#{session_windows}", "1")
    tmux.does("#{pane_mode}", "copy-mode", Keys.PAGE_UP)
    send(page, "q")
    tmux.shows("#{pane_mode}", "")
    tmux.wheel()
    tmux.shows("#{pane_mode}", "copy-mode")
    send(page, "q")
    tmux.shows("#{pane_mode}", "")
    tmux.prefix(":")
    time.sleep(2)
    send(page, "set -g mouse off", Keys.ENTER)
    tmux.shows("#{mouse}", "0")


def test_a_browser_keeps_the_session_in_use(desk: Session, page: WebDriver) -> None:
    """Nothing but the open page of a terminal uses main1 now; nothing uses sub1."""
    open_terminal(page, urls(desk)["terminal"])

    def quiet(hostname: str) -> int:
        # From outside: a program in the container would use it.
        identity = desk.containers()[hostname]["Id"]
        chunks, _facts = desk.controller.client.get_archive(identity, "/etc/cluster-compute/run/quiet")
        with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
            file = archive.extractfile("quiet")
            return int(file.read() or 0) if file else 0

    least, end = quiet("sub1") + 30, time.monotonic() + 120
    longest = 0
    while quiet("sub1") < least and time.monotonic() < end:
        longest = max(longest, quiet("main1"))
        time.sleep(1)
    assert quiet("sub1") >= least
    assert longest < 10


def test_nothing_shows_a_token(controller: Controller, desk: Session, launch: Done) -> None:
    assert (desk.folder / "apps").stat().st_mode & 0o777 == 0o600
    assert all(len(token) == 64 for token in tokens(desk))
    inspected = json.dumps(desk.containers())
    logs = "".join(controller.client.logs(one["Id"]).decode() for one in desk.containers().values())
    processes = b"".join(_read(path) for path in Path("/proc").glob("[0-9]*/cmdline"))
    store = b"".join(path.read_bytes() for path in controller.state.rglob("*") if path.is_file())
    shown = controller.play("sessions", "-vvv").check().text
    places = [
        launch.text,
        inspected,
        logs,
        shown,
        (desk.folder / "session.json").read_text(),
        repr(processes),
        repr(store),
    ]
    assert [place[:100] for place in places for token in tokens(desk) if token in place] == []
    assert "web: hello from web" in logs
    assert b"http.server" in processes
    assert desk.say("main1", "cat /var/log/cluster-compute/web.log").startswith("hello from web")
    assert desk.say("main1", "stat -c '%a %U' /etc/cluster-compute/app/web/token") == "600 work"


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_the_same_command_changes_nothing(controller: Controller, desk: Session) -> None:
    again = controller.launch("desk", session_image="lab", session_apps=["jupyterlab", "terminal", WEB], **SIZE).check()
    assert again.changed == 0
    assert f"Open the apps in a browser: their URLs, with tokens, are in {desk.folder}/apps" in again.text


def test_an_app_that_dies_is_back(desk: Session) -> None:
    pid = "pgrep -f http.server"
    before = desk.say("main1", pid)
    desk.say("main1", "kill -KILL " + before)
    until(lambda: desk.ssh("main1", pid).text.strip() not in ("", before), "another process of the app")
    assert "Directory listing" in get(urls(desk)["web"])
    assert "app web has ended with exit code 137" in "".join(
        desk.controller.client.logs(one["Id"]).decode() for one in desk.containers().values()
    )


def test_an_app_that_stays_down_makes_the_session_unhealthy_until_it_heals(
    controller: Controller, desk: Session
) -> None:
    desk.say("main1", "touch broken")
    failed = controller.play("session_apps", session_name="desk", session_apps_restart=["web"])
    assert "App web of main1 ends with exit code 3 before it is ready" in failed.message
    unhealed = controller.play("schedule").check()
    assert "Session desk was not repaired: App web of main1 ends with exit code 3" in unhealed.text
    [listed] = controller.sessions(session_name="desk")
    assert (listed["degraded"], listed["unhealthy"]) == ([], ["app web"])
    shown = controller.play("sessions", session_name="desk").check().text
    assert "RUNNING (unhealthy)" in shown
    assert "app web has ended with exit code 3 and is not started again" in shown
    desk.say("main1", "rm broken")
    healed = controller.play("schedule").check()
    assert "Session desk: RUNNING, app web started again" in healed.text
    assert "Directory listing" in get(urls(desk)["web"])
    assert controller.play("schedule").check().changed == 0
    [listed] = controller.sessions(session_name="desk")
    assert listed["unhealthy"] == []
    assert [note["reason"] for note in listed["history"]][-2:] == [
        "unhealthy: app web has ended with exit code 3 and is not started again",
        "apps and commands run again",
    ]


def listed_apps(controller: Controller) -> dict[str, int]:
    """The port of each app in the list of sessions."""
    [listed] = controller.sessions(session_name="desk")
    return {app["name"]: app["port"] for app in listed["apps"]}


def test_apps_come_and_go_in_a_running_session(controller: Controller, desk: Session) -> None:
    """A port that was not published at the launch is reached by SSH."""
    board = {
        "name": "board",
        "port": 8100,
        "command": "mkdir -p b; cd b; exec python3 -m http.server 8100",
        "ready": "/",
    }
    old = desk.say("main1", "pgrep -f 'http.server 8000'")
    done = controller.play(
        "session_apps", session_name="desk", session_apps=[board], session_apps_restart=["web"]
    ).check()
    assert "App board: ready" in done.text
    assert desk.say("main1", "pgrep -f 'http.server 8000'") != old
    entry = next(app for app in desk.document["apps"] if app["name"] == "board")
    assert entry["tunnel"] in done.text
    assert listed_apps(controller)["board"] == 0
    tunnel = subprocess.Popen(shlex.split(entry["tunnel"]), stdin=subprocess.DEVNULL)
    try:
        assert "Directory listing" in get(urls(desk)["board"])
    finally:
        tunnel.terminate()
        tunnel.wait()
    done = controller.play("session_apps", session_name="desk", session_apps_remove=["board"]).check()
    assert "board" not in done.text.partition("Apps]")[2]
    assert "board" not in listed_apps(controller)
    assert "board" not in urls(desk)
    assert desk.ssh("main1", "pgrep -f 'http.server 8100'").code != 0


def test_a_relay_publishes_an_app_of_a_running_session(controller: Controller, desk: Session) -> None:
    """It is no member of the session, and ends with main1 and with the session."""
    board = {"name": "board", "port": 8100, "command": "exec python3 -m http.server 8100", "ready": "/"}
    wanted = {"session_name": "desk", "session_apps": [board], "session_apps_publish": True}
    done = controller.play("session_apps", **wanted).check()
    entry = next(app for app in desk.document["apps"] if app["name"] == "board")
    assert controller.ports <= entry["port"] < controller.ports + 36
    assert f"App board: ready, published by a relay at port {entry['port']}" in done.text
    assert "Directory listing" in get(urls(desk)["board"])
    assert listed_apps(controller)["board"] == entry["port"]
    assert controller.play("session_apps", **wanted).check().changed == 0
    relay = f"{controller.owner}.desk.relay1"
    assert f"container /{relay}" in controller.engine("desk")
    [listed] = controller.sessions(session_name="desk")
    assert [one["hostname"] for one in listed["containers"]] == ["main1", "sub1"]
    assert controller.play("schedule").check().changed == 0
    assert "relay" not in controller.play("session_logs", session_name="desk").check().text
    controller.client.kill(f"{controller.owner}.desk.main1")
    until(lambda: controller.client.inspect_container(relay)["State"]["Status"] == "exited", "the end of the relay")
    controller.play("schedule").check()
    controller.terminate("desk").check()
    assert controller.engine("desk") == {}


def test_the_command_of_the_image_is_an_app(controller: Controller) -> None:
    """An app that cannot start fails the launch with its last line; the command of an image starts."""
    controller.client.commit(
        _idle(controller),
        "cluster-compute-test/serving",
        conf={"Entrypoint": ["python3", "-m"], "Cmd": ["http.server", "8000"]},
    )
    try:
        image = {"session_image": "cluster-compute-test/serving"}
        broken = {"name": "broken", "port": 8000, "command": "echo some reason >&2; exit 3"}
        refused = controller.launch("broken", session_apps=[broken], **image)
        assert refused.code != 0
        assert "App broken of main1 ends with exit code 3 before it is ready: " in refused.message
        assert refused.message.endswith("some reason")
        stock = {"name": "stock", "port": 8000, "command": "image", "ready": "/"}
        session = controller.launched("stock", session_apps=[stock], **image)
        assert "Directory listing" in get(urls(session)["stock"])
        controller.terminate("stock").check()
        assert not session.folder.exists()
    finally:
        controller.client.remove_image("cluster-compute-test/serving", force=True)


def test_apps_that_were_removed_stay_away_when_main1_starts_again(controller: Controller) -> None:
    """After all apps were removed, the list does not show the apps of the launch again, and the file has no URLs."""
    ports = {"one": 8000, "two": 8001}
    apps = [
        {"name": name, "port": port, "command": f"exec python3 -m http.server {port}"} for name, port in ports.items()
    ]
    session = controller.launched("fewer", session_apps=apps, session_on_failure="restart")
    for left in ({"two"}, set[str]()):
        removed = sorted(set(urls(session)) - left)
        controller.play("session_apps", session_name="fewer", session_apps_remove=removed).check()
        controller.client.kill(f"{controller.owner}.fewer.main1")
        assert "Session fewer: RUNNING" in controller.play("schedule").check().text
        assert set(urls(session)) == left
        [listed] = controller.sessions(session_name="fewer")
        assert {app["name"] for app in listed["apps"]} == left
    controller.terminate("fewer").check()


def _idle(controller: Controller) -> str:
    """A container that a commit makes an image of; it never starts."""
    made: dict[str, str] = controller.client.create_container(
        "cluster-compute/reference:1", labels={"cluster.compute.session.owner": controller.owner}
    )
    return made["Id"]
