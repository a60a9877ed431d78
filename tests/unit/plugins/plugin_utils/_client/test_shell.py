# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands over ssh: a program stands in for it."""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
from pathlib import Path

import pytest
from samples import SESSION

from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError, InputError
from ansible_collections.cluster.compute.plugins.module_utils._shared.waiting import deadline_in, wait_until
from ansible_collections.cluster.compute.plugins.plugin_utils._client import shell as _session_shell
from ansible_collections.cluster.compute.plugins.plugin_utils._client.shell import LONGEST, Output, Shell

SCRIPTS = Path(__file__).resolve().parents[5] / "roles/image/files"
# Runs the script of the last argument here; the name of the host decides what else happens.
SSH = """#!/bin/sh
for last; do host=$before; before=$last; done
[ "$host" != lost ] || { echo 'connect: No route to host.' >&2; exit 255; }
[ "$host" != noisy ] || echo 'Welcome!'
# Out of the process group of this program, as on another machine.
exec setsid --wait sh -c "$last"
"""


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "ssh").write_text(SSH)
    (programs / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("SHELL", "/bin/sh")
    monkeypatch.setattr(_session_shell, "RUNTIME_PATH", "/usr")
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    (runtime / "bin").symlink_to("/bin")
    (runtime / "libexec").symlink_to(SCRIPTS)
    script = _session_shell.SCRIPT.replace("/opt/cluster-compute/bin/", "").replace(
        "/opt/cluster-compute", str(runtime)
    )
    monkeypatch.setattr(_session_shell, "SCRIPT", script)
    folder = tmp_path / "base" / "train"
    folder.mkdir(parents=True, mode=0o700)
    session = {"id": SESSION, "name": "train", "owner": "alice", "user": {"name": "work"}}
    document = {"session": session, "network": {"driver": "bridge"}, "containers": [], "apps": []}
    (folder / "session.json").write_text(json.dumps(document))
    return Shell(str(tmp_path / "base"), "train")


def test_the_name_of_a_host_is_no_option_of_ssh(shell: Shell) -> None:
    assert shell.command("-oProxyCommand=id", "true")[-3:] == ["--", "-oProxyCommand=id", "true"]


def test_answers_come_in_order_with_exit_codes(shell: Shell) -> None:
    first, second, third = shell.run(["noisy", "lost", "sub1"], "echo out; echo err >&2; exit 4", 30)
    assert (first.code, first.content, first.problem) == (4, b"out\nerr\n", "")
    assert (second.code, second.problem) == (255, "no connection: connect: No route to host")
    assert (third.code, third.content) == (4, b"out\nerr\n")


def test_a_session_has_more_containers_than_a_process_may_open_pipes(shell: Shell) -> None:
    """1,024 files, which a process may usually open, are the pipes of 500 containers."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 12, limits[1]))
    try:
        answers = shell.run(["sub%d" % number for number in range(1, 13)], "echo here", 60)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert [answer.content for answer in answers] == [b"here\n"] * 12


def test_a_program_that_cannot_be_started_is_one_message(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object, **_options: object) -> None:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(
        ComputeError, match=r"^ssh cannot be started on the controller: Resource temporarily unavailable\.$"
    ):
        shell.run(["sub1"], "true", 30)


def test_a_command_gets_no_input_and_any_characters(shell: Shell) -> None:
    (answer,) = shell.run(["sub1"], "cat; printf '%s' \"it's $((1 + 1)) \"'\"ü\"'\n", 30)
    assert answer.content.decode() == 'it\'s 2 "ü"'


@pytest.mark.parametrize("program", ["sleep 600", "timeout 600 sleep 600"])
def test_a_command_that_takes_too_long_ends_with_its_children(shell: Shell, tmp_path: Path, program: str) -> None:
    """The program ``timeout`` is in a process group of its own."""
    marker = tmp_path / "pid"
    (answer,) = shell.run(["sub1"], f"echo begun; {program} & echo $! >{marker}; wait", 1)
    assert (answer.code, answer.content, answer.problem) == (124, b"begun\n", "no end within 1 s")
    pid = int(marker.read_text())
    assert _ends(pid)


def _ends(pid: int) -> bool:
    def is_gone() -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except FileNotFoundError:
            return True

    return bool(wait_until(is_gone, deadline_in(20), 0.1))


def test_a_command_that_is_too_long_is_refused(shell: Shell) -> None:
    with pytest.raises(InputError, match="must be at most 60000 bytes long"):
        shell.run(["sub1"], "x" * (LONGEST + 1), 5)


def test_a_session_without_a_document_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"session_name: 'train': .*/train has no session.json: sessions.yml lists"):
        Shell(str(tmp_path), "train")


def test_a_damaged_document_is_one_sentence(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "base" / "train" / "session.json").write_text("{")
    with pytest.raises(ComputeError, match="is damaged: run the session's launch again"):
        Shell(str(tmp_path / "base"), "train")


def test_the_end_of_a_long_output_is_kept() -> None:
    output = Output("marker", 10)
    output.add(b"profile\nmar")
    output.add(b"ker\n")
    for number in range(100):
        output.add(b"%02d\n" % number)
    assert (output.content, output.left_out) == (b"\n97\n98\n99\n"[-10:], 290)


def test_a_marker_that_never_comes_is_a_complaint() -> None:
    output = Output("marker", 10)
    output.add(b"Warning\nPermission denied (publickey).\n\n")
    assert (output.is_connected, output.complaint) == (False, "Permission denied (publickey)")
