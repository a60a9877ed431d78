# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Notifications: which event a change is, what is sent, and that nothing waits for it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from conducted import conducted

from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.decision import DecidedSession
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.rules import check_notify
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts import notification, notification_sender
from ansible_collections.cluster.compute.plugins.plugin_utils._session.record import record_session

ROW: Json = {
    "id": "3614fdf3-0e04-4a4b-8a4e-000000000000",
    "name": "train",
    "owner": "alice",
    "state": "RUNNING",
    "reason": "verified",
    "holder": {"pid": 1},
}
SESSION = DecidedSession.from_json(ROW)


@pytest.mark.parametrize(
    ("state", "changed", "result", "event"),
    [
        ("RUNNING", True, "", "running"),
        ("RUNNING", False, "", ""),
        ("RUNNING", False, "SUCCESS", "finished"),
        ("RUNNING", False, "FAILURE", "failed"),
        ("ERROR", True, "", "failed"),
        ("TERMINATING", True, "", ""),
        ("TERMINATED", True, "SUCCESS", "ended"),
        ("CANCELLED", True, "", "ended"),
        ("CANCELLED", False, "", ""),
    ],
)
def test_the_event_of_a_change(state: str, changed: bool, result: str, event: str) -> None:
    assert notification.event_of(changed, state, result) == event
    assert notification.event_of(False, "") == ""


class _Server:
    """A web server that answers with given statuses in turn, and then with 200. The status 0 is an answer that is not HTTP."""

    def __init__(self, *statuses: int) -> None:
        self.requests: list[tuple[dict[str, str], Json]] = []
        answers, requests = list(statuses), self.requests

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                requests.append((dict(self.headers), json.loads(body)))
                status = answers.pop(0) if answers else 200
                if not status:
                    self.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n")
                    return
                self.send_response(status)
                self.send_header("Location", "/elsewhere")
                self.end_headers()

            def log_message(self, *_arguments: Any) -> None:
                """Nothing: the output belongs to the tests."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[_Server]:
    opened = _Server(*getattr(request, "param", ()))
    yield opened
    opened.server.shutdown()
    opened.server.server_close()


def wait_for(path: Path, lines: int) -> list[Json]:
    end = time.monotonic() + 60
    while not path.exists() or len(path.read_text().splitlines()) < lines:
        assert time.monotonic() < end, "no notification"
        time.sleep(0.05)
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    ("server", "problem", "tries"),
    [((500, 302), "", 3), ((500,) * 3, "HTTP status 500", 3), ((0,) * 3, "BadStatusLine", 3)],
    indirect=["server"],
)
def test_a_url_is_tried_three_times(server: _Server, monkeypatch: pytest.MonkeyPatch, problem: str, tries: int) -> None:
    monkeypatch.setattr(notification_sender, "PAUSES", (0.0, 0.0))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    document = notification.document("running", SESSION)
    assert notification_sender.deliver(server.url, document) == problem
    assert [body for _headers, body in server.requests] == [document] * tries
    assert server.requests[0][0]["Content-Type"] == "application/json"
    assert "holder" not in document["session"]


def test_a_command_gets_the_document_and_is_tried_three_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notification_sender, "PAUSES", (0.0, 0.0))
    document = notification.document("ended", SESSION)
    assert notification_sender.deliver(f"cat >{tmp_path}/one; exit 3", document) == "exit code 3"
    assert json.loads((tmp_path / "one").read_text()) == document
    monkeypatch.setattr(notification_sender, "COMMAND_PATIENCE", 0.5)
    assert notification_sender.deliver(f"echo >>{tmp_path}/tries; exec sleep 9", document).startswith(
        "it ran for more than"
    )
    assert len((tmp_path / "tries").read_text().splitlines()) == 3


def test_nothing_waits_for_a_notification_and_its_order_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It needs no temporary file, for which a disk may have no room."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "full"))
    begun = time.monotonic()
    target = f"while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; cat >>{tmp_path}/got"
    notification.send(target, [notification.document(event, SESSION) for event in ("running", "ended")])
    assert not (tmp_path / "got").exists()
    assert time.monotonic() - begun < 30
    (tmp_path / "go").write_text("")
    assert [one["event"] for one in wait_for(tmp_path / "got", 2)] == ["running", "ended"]


def test_a_sender_that_cannot_be_started_fails_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A launch would be undone because of it."""
    monkeypatch.setattr("sys.executable", str(tmp_path / "gone"))
    play = conducted({"session.record": {"changed": True, "session": ROW}}, session_notify="true")
    assert record_session(play, "running", id="uuid").known.data == ROW


@pytest.mark.parametrize("check_mode", [True, False])
def test_a_record_notifies_of_its_session_and_of_others_that_have_ended(tmp_path: Path, check_mode: bool) -> None:
    other = {**ROW, "name": "sweep", "state": "TERMINATED", "environment": {"TOKEN": "x"}}
    path = tmp_path / "got"
    answer = {"changed": True, "session": ROW, "ended": [other]}
    play = conducted({"session.record": answer}, check=check_mode, session_notify=f"cat >>{path}")
    record_session(play, "running", id="uuid")
    if check_mode:
        assert not path.exists()
        return
    first, second = wait_for(path, 2)
    assert (first["event"], first["session"]["name"]) == ("running", "train")
    assert (second["event"], second["session"]["name"]) == ("ended", "sweep")
    assert "TOKEN" not in path.read_text()


@pytest.mark.parametrize("value", ["https://example.org/x?token=1", "http://[::1]:8000/", "mail -s cluster me", ""])
def test_a_url_or_a_command(value: str) -> None:
    assert check_notify("session_notify", value) == value


@pytest.mark.parametrize("value", ["ftp://example.org/secret", "https:///secret", "a\nsecret", ["secret"]])
def test_another_value_is_refused_and_not_repeated(value: Any) -> None:
    with pytest.raises(InputError) as refused:
        check_notify("session_notify", value)
    assert "secret" not in refused.value.message
