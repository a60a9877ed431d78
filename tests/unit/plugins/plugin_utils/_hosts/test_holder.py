# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The process that holds a session during its launch."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.decision import Holder
from ansible_collections.cluster.compute.plugins.module_utils._shared.names import check_owner
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts import holder as _holder
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.holder import (
    _machine,
    _started,
    has_exited,
    lease_owner,
    login,
)

HERE = _machine()


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as started:
        yield started
        started.kill()


def test_the_holder_is_the_process_that_ansible_playbook_is() -> None:
    other = lease_owner()
    started = _started(os.getppid())
    assert other == Holder(socket.gethostname(), HERE, login(), started, os.getppid())
    assert started
    assert not has_exited(other)


def test_the_login_is_an_owner() -> None:
    assert check_owner("session_owner", login()) == login()


def test_an_account_without_a_name_is_an_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs as any number: ``docker run --user 45678``."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 45678)
    assert check_owner("session_owner", login()) == "45678"


def test_a_living_process_is_not_gone(process: subprocess.Popen[bytes]) -> None:
    assert not has_exited(Holder(machine=HERE, pid=process.pid, start=_started(process.pid)))


def test_an_ended_process_is_gone(process: subprocess.Popen[bytes]) -> None:
    other = Holder(machine=HERE, pid=process.pid, start=_started(process.pid))
    process.kill()
    process.wait()
    assert has_exited(other)


def test_another_process_of_the_same_number_is_another_process(process: subprocess.Popen[bytes]) -> None:
    assert has_exited(Holder(machine=HERE, pid=process.pid, start="1"))


@pytest.mark.parametrize("machine", ["", "elsewhere"])
def test_nothing_is_known_of_other_machines(machine: str) -> None:
    assert not has_exited(Holder(machine=machine, pid=2**22, start="1"))


@pytest.mark.parametrize("pid", [0, -1])
def test_a_holder_without_a_process_is_not_certain_to_be_gone(pid: int) -> None:
    assert not has_exited(Holder(machine=HERE, pid=pid, start="1"))


def test_a_process_that_may_not_be_looked_at_is_not_gone(process: subprocess.Popen[bytes], monkeypatch: Any) -> None:
    """With /proc mounted with hidepid, another user's process cannot be distinguished from a later process with the same ID."""
    other = Holder(machine=HERE, pid=process.pid, start=_started(process.pid))
    monkeypatch.setattr(_holder, "_started", lambda _pid: "")
    assert not has_exited(other)
