# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A second connection that asks a host for bytes; the connection is a fake."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from ansible.errors import AnsibleConnectionFailure

from ansible_collections.cluster.compute.plugins.callback.progress import _transfers
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts import transfer_watch
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.transfer_watch import TERMINAL

MOST = 10.0  # seconds


class Connection:
    """Answers each command with the next of its answers, and then with the last one."""

    def __init__(self, *answers: tuple[int, bytes] | Exception, transport: str = "ssh") -> None:
        self.transport, self.answers, self.asked = transport, list(answers), [0]
        self.enough = threading.Event()

    def exec_command(self, command: str, in_data: object, sudoable: bool) -> tuple[int, bytes, bytes]:
        self.asked[0] += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if len(self.answers) == 1 and self.asked[0] > 2:
            self.enough.set()
        if isinstance(answer, Exception):
            raise answer
        return (*answer, b"")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(TERMINAL, "folder", str(tmp_path))
    monkeypatch.setattr(transfer_watch, "PERIOD", 0.1)
    return tmp_path


@pytest.mark.parametrize(
    ("answer", "total", "found"),
    [
        ((0, b"10 100\n"), 0, [(10, 100)]),
        ((0, b"10\n"), 50, [(10, 50)]),
        ((0, b"5 90\n0\n"), 0, [(5, 90)]),
        ((1, b"10 100\n"), 0, []),
        ((0, b"\x1b[2J; rm -rf\n"), 0, []),
        ((0, b"9" * 400 + b"\n"), 0, []),
        (AnsibleConnectionFailure("gone"), 0, []),
    ],
)
def test_an_answer_is_shown_only_if_it_is_a_count(
    folder: Path, answer: tuple[int, bytes] | Exception, total: int, found: list[tuple[int, int]]
) -> None:
    connection = Connection(answer)
    with transfer_watch.watched(connection, "agent1", "cat progress", total):
        assert connection.enough.wait(MOST)
        assert _transfers(str(folder)) == found
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("transport", ["paramiko", "docker"])
def test_a_connection_that_cannot_be_used_twice_is_not(folder: Path, transport: str) -> None:
    connection = Connection((0, b"10 100\n"), transport=transport)
    with transfer_watch.watched(connection, "agent1", "cat progress"):
        pass
    assert connection.asked == [0]


def test_nothing_is_asked_where_nothing_shows_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TERMINAL, "folder", "")
    connection = Connection((0, b"10 100\n"))
    with transfer_watch.watched(connection, "agent1", "cat progress"):
        pass
    assert connection.asked == [0]


def test_workers_that_write_one_file_at_once_do_not_disturb_each_other(folder: Path) -> None:
    def write(number: int) -> None:
        for _time in range(200):
            transfer_watch.write_whole(str(folder / "agent_step.json"), str(number))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert [path.name for path in folder.iterdir()] == ["agent_step.json"]
