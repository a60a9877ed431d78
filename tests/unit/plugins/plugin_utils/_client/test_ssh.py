# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verification ends at its deadline and reads a bounded amount, whatever main1 sends."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import paramiko
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError
from ansible_collections.cluster.compute.plugins.plugin_utils._client.proof import Proof
from ansible_collections.cluster.compute.plugins.plugin_utils._client.ssh import (
    MOST_BYTES,
    BoundedSocket,
    SshEndpoint,
    _answer,
    reach,
)

# Seconds after which a verification that does not end has failed the test.
PATIENCE = 60
# Seconds of a verification whose proxy command is a new process, on a busy machine.
SLOW = 6

Shell = Callable[[Any, str, "list[str]"], None]


class Server(paramiko.ServerInterface):
    """Accepts every key, and hands the command to a shell of the test."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell

    def check_auth_publickey(self, username: str, key: Any) -> int:
        return int(paramiko.AUTH_SUCCESSFUL)

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return int(paramiko.OPEN_SUCCEEDED)

    def check_channel_exec_request(self, channel: Any, command: bytes) -> bool:
        mark, _seconds, _workers, *hosts = command.decode().partition(" prove' ")[2].split()
        threading.Thread(target=self._run, args=(channel, mark, hosts), daemon=True).start()
        return True

    def _run(self, channel: Any, mark: str, hosts: list[str]) -> None:
        with contextlib.suppress(OSError, EOFError):
            while channel.recv(4096):
                pass
            self.shell(channel, mark, hosts)
            channel.close()


def key_file(folder: Path, name: str) -> str:
    path = folder / name
    path.write_bytes(Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    return str(path)


@contextlib.contextmanager
def listening(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server on a free port of this host, for a single connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            with contextlib.suppress(OSError, EOFError):
                serve(listener.accept()[0])

        threading.Thread(target=accept, daemon=True).start()
        yield int(listener.getsockname()[1])


def nothing() -> None:
    """No container has ended."""


def ended() -> None:
    raise ComputeError("sub1: the container ended.")


def answer_of(
    port: int, folder: Path, host_key: str, timeout: int = 3, proxy: str = "", look: Callable[[], None] = nothing
) -> str:
    """What the verification of sub1 and sub2 says, in a thread that must end."""
    endpoint = SshEndpoint("127.0.0.1", port, "work", key_file(folder, "id"), host_key, proxy=proxy)
    said: list[str] = []

    def verify() -> None:
        try:
            said.append(" ".join(reach(endpoint, Proof.direct(["sub1", "sub2"]), timeout, look)))
        except ComputeError as error:
            said.append(error.message)

    thread = threading.Thread(target=verify, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive(), "the verification does not end"
    return said[0]


def verified(folder: Path, shell: Shell, timeout: int = 3, proxy: str = "", look: Callable[[], None] = nothing) -> str:
    own = paramiko.Ed25519Key.from_private_key_file(key_file(folder, "host"))

    def serve(connection: socket.socket) -> None:
        transport = paramiko.Transport(connection)
        transport.add_server_key(own)
        transport.start_server(server=Server(shell))

    with listening(serve) as port:
        return answer_of(port, folder, "ssh-ed25519 " + own.get_base64(), timeout, proxy, look)


def well_behaved(channel: Any, mark: str, hosts: list[str]) -> None:
    channel.sendall(f"\n{mark} begun\n".encode())
    for host in hosts:
        channel.sendall(f"\n{mark} yes {host}\n".encode())


def dripping(channel: Any, _mark: str, _hosts: list[str]) -> None:
    while True:
        channel.sendall(b"welcome\n")
        time.sleep(0.01)


def endless_line(channel: Any, _mark: str, _hosts: list[str]) -> None:
    while True:
        channel.sendall(b"x" * 4096)


def silent(_channel: Any, _mark: str, _hosts: list[str]) -> None:
    threading.Event().wait(PATIENCE)


def test_every_container_answers(tmp_path: Path) -> None:
    assert verified(tmp_path, well_behaved, 30) == "main1 sub1 sub2"


def test_a_server_with_another_host_key_gets_no_login(tmp_path: Path) -> None:
    """Another program may have the port."""
    asked: list[str] = []

    class Curious(Server):
        def check_auth_publickey(self, username: str, key: Any) -> int:
            asked.append(username)
            return super().check_auth_publickey(username, key)

    def serve(connection: socket.socket) -> None:
        transport = paramiko.Transport(connection)
        transport.add_server_key(paramiko.Ed25519Key.from_private_key_file(key_file(tmp_path, "host")))
        transport.start_server(server=Curious(well_behaved))

    expected = paramiko.Ed25519Key.from_private_key_file(key_file(tmp_path, "expected"))
    with listening(serve) as port:
        said = answer_of(port, tmp_path, "ssh-ed25519 " + expected.get_base64(), 30)
    assert "presents an unexpected host key; check which program listens on that port" in said
    assert asked == []


RELAY = """
import os, socket, sys, threading
server = socket.create_connection((sys.argv[1], int(sys.argv[2])))
def send():
    for block in iter(lambda: os.read(0, 4096), b""):
        server.sendall(block)
threading.Thread(target=send, daemon=True).start()
for block in iter(lambda: server.recv(4096), b""):
    os.write(1, block)
"""


def test_a_proxy_command_reaches_what_no_direct_connection_does(tmp_path: Path) -> None:
    relay = tmp_path / "relay.py"
    relay.write_text(RELAY)
    assert verified(tmp_path, well_behaved, 30, f"{sys.executable} {relay} %h %p") == "main1 sub1 sub2"


def test_what_a_proxy_command_complains_of_is_the_reason(tmp_path: Path) -> None:
    proxy = "sh -c 'echo noise >&2; echo bastion: no route to %%h >&2; exit 255'"
    said = answer_of(9, tmp_path, "ssh-ed25519 AAAA", SLOW, proxy)
    assert said == (
        "main1 at 127.0.0.1, port 9 does not accept ssh connections: bastion: no route to %h; session_logs.yml shows its log."
    )


def test_an_attempt_that_the_deadline_cuts_short_does_not_hide_the_reason(tmp_path: Path) -> None:
    second = tmp_path / "second"
    proxy = f"sh -c 'test ! -e {second} || exec sleep 60; touch {second}; echo bastion: no route >&2; exit 255'"
    said = answer_of(9, tmp_path, "ssh-ed25519 AAAA", SLOW, proxy)
    assert "does not accept ssh connections: bastion: no route; " in said


def test_a_silent_proxy_command_ends_at_the_deadline(tmp_path: Path) -> None:
    started = tmp_path / "pid"
    proxy = f"sh -c 'echo $$ >{started}; exec sleep 600'"
    assert "timed out" in answer_of(9, tmp_path, "ssh-ed25519 AAAA", SLOW, proxy)
    assert not Path("/proc", started.read_text().strip()).exists()


def test_what_a_login_shell_prints_is_not_an_answer(tmp_path: Path) -> None:
    def chatty(channel: Any, mark: str, hosts: list[str]) -> None:
        channel.sendall(b"no sub1 way\nyes sub2\n" + b"y" * (1 << 20) + b"an unfinished line")
        well_behaved(channel, mark, hosts)

    assert verified(tmp_path, chatty, 30) == "main1 sub1 sub2"


def test_a_shell_that_goes_on_after_the_answers_is_not_waited_for(tmp_path: Path) -> None:
    def lingering(channel: Any, mark: str, hosts: list[str]) -> None:
        well_behaved(channel, mark, hosts)
        silent(channel, mark, hosts)

    assert verified(tmp_path, lingering, 30) == "main1 sub1 sub2"


@pytest.mark.parametrize("shell", [dripping, endless_line, silent])
def test_a_shell_that_never_runs_the_command_is_named(tmp_path: Path, shell: Shell) -> None:
    assert verified(tmp_path, shell).endswith(
        "accepts the login, but its shell runs no command within 3 seconds: check .bashrc and BASH_ENV there."
    )


def test_a_shell_that_ends_before_the_command_is_named_with_its_last_line(tmp_path: Path) -> None:
    def refusing(channel: Any, _mark: str, _hosts: list[str]) -> None:
        channel.sendall(b"Welcome\n")
        channel.sendall_stderr(b"This account is not available.\n")
        channel.send_exit_status(1)

    assert verified(tmp_path, refusing, 60).endswith(
        "accepts the login, but its shell ends with exit code 1 before it runs a command (This account is not available): "
        "check .bashrc and BASH_ENV there."
    )


def test_a_shell_that_ends_silently_is_not_waited_for(tmp_path: Path) -> None:
    said = verified(tmp_path, lambda channel, _mark, _hosts: None, 60)
    assert "its shell ends without an exit code before it runs a command: check" in said


def test_a_container_that_does_not_answer_is_named_with_its_reason(tmp_path: Path) -> None:
    def partly(channel: Any, mark: str, _hosts: list[str]) -> None:
        channel.sendall(f"\n{mark} begun\n\n{mark} yes sub1\n\n{mark} no sub2 Permission denied.\n".encode())

    assert verified(tmp_path, partly, 30) == "sub2 does not accept ssh connections from main1: Permission denied."


def test_a_container_that_has_ended_is_not_waited_for(tmp_path: Path) -> None:
    begun = time.monotonic()
    assert verified(tmp_path, silent, 50, look=ended) == "sub1: the container ended."
    assert answer_of(9, tmp_path, "ssh-ed25519 AAAA", 50, look=ended) == "sub1: the container ended."
    assert time.monotonic() - begun < 30


def test_a_server_whose_banner_never_ends_is_given_up(tmp_path: Path) -> None:
    sent = 0

    def serve(connection: socket.socket) -> None:
        nonlocal sent
        while True:
            sent += connection.send(b"z" * 1024)

    with listening(serve) as port:
        assert "refuses the ssh login of work" in answer_of(port, tmp_path, "ssh-ed25519 AAAA")
    assert sent < 4 * MOST_BYTES


@pytest.mark.parametrize(("seconds", "most", "read"), [(60.0, 8, 8), (0.0, 1 << 20, 0)])
def test_a_connection_yields_bounded_bytes_until_its_deadline(
    seconds: float, most: int, read: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ansible_collections.cluster.compute.plugins.plugin_utils._client.ssh.MOST_BYTES", most)
    ours, theirs = socket.socketpair()
    with theirs, BoundedSocket(ours, time.monotonic() + seconds) as connection:
        theirs.send(b"x" * 64)
        theirs.shutdown(socket.SHUT_WR)
        received = list(iter(lambda: connection.recv(4), b""))
    assert len(b"".join(received)) == read


@pytest.mark.parametrize("line", ["mark ", "mark no", "mark yes sub1", "mark"])
def test_a_short_answer_of_a_hostile_container_is_read(line: str) -> None:
    assert all(isinstance(word, str) for word in _answer(line, "mark"))
