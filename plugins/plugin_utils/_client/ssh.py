# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the controller into ``main1``, and from there to every other container: by strict SSH, within a deadline."""

from __future__ import annotations

import logging
import os
import re
import secrets
import socket
import subprocess
import tempfile
import time
import traceback
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Tuple

from ...module_utils._shared.errors import ComputeError, LibraryError
from .proof import MOST_OF_ANSWER, MOST_OF_SHELL, SCRIPT, Proof

# Seconds between two attempts: a jump host logs in at each.
_PAUSE, _PAUSE_OF_PROXY = 0.1, 1.0
_MOST_COMPLAINT = 4096
CHUNK = 1 << 14
# No hostnames: the script has begun; how the shell ended that did not run it.
BEGUN, ENDED = "(begun)", "(ended)"
# Seconds between two looks at the containers, and before the first: most sessions answer earlier.
GLANCE = 3.0
# Seconds of the deadline that remain for the last answer to arrive.
RESERVE = 2
# No more is read from main1, whatever its shell or its sshd sends: 1,000 answers of 300 bytes take a tenth of it.
MOST_BYTES = 4 << 20


class Gateway:
    """Connects to a host and port, again after each attempt. At the end, the command of a proxy is terminated."""

    def __init__(self, host: str, port: int, proxy: str = "") -> None:
        self._host, self._port = host, port
        values = {"%%": "%", "%h": host, "%p": str(port)}
        self._command = re.sub("%.", lambda token: values.get(token.group(), token.group()), proxy)
        self._process: subprocess.Popen[bytes] | None = None
        self._errors = tempfile.TemporaryFile() if proxy else None  # noqa: SIM115 (closed at the end)

    @property
    def pause(self) -> float:
        return _PAUSE_OF_PROXY if self._command else _PAUSE

    @property
    def complaint(self) -> str:
        """The last line that the command of the proxy has written as an error."""
        if self._errors is None:
            return ""
        self._errors.seek(0)
        lines = self._errors.read(_MOST_COMPLAINT).decode("utf-8", "replace").split("\n")
        return next((line.strip().rstrip(".") for line in reversed(lines) if line.strip()), "")

    def connect(self, seconds: float) -> socket.socket:
        """A new connection, with this timeout."""
        if self._errors is None:
            return socket.create_connection((self._host, self._port), timeout=seconds)
        self._stop()
        self._errors.seek(0)
        self._errors.truncate()
        ours, theirs = socket.socketpair()
        ours.settimeout(seconds)
        with theirs:
            self._process = subprocess.Popen(
                [os.environ.get("SHELL") or "/bin/sh", "-c", "exec " + self._command],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=self._errors,
                start_new_session=True,  # without a terminal, nothing can ask for a password
            )
        return ours

    def _stop(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(2)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._process = None

    def __enter__(self) -> Gateway:
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop()
        if self._errors is not None:
            self._errors.close()


@dataclass(frozen=True)
class SshEndpoint:
    """The SSH server of ``main1``: address, user, key, its host key, and the ProxyCommand that reaches it; empty without one."""

    host: str
    port: int
    user: str
    key_file: str
    host_key: str
    name: str = "main1"
    proxy: str = ""

    def __str__(self) -> str:
        return "%s at %s, port %d" % (self.name, self.host, self.port)


class BoundedSocket(socket.socket):
    """A connection that ends at its deadline, and after MOST_BYTES: whatever the other side sends, and however slowly."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        super().__init__(fileno=connection.detach())
        self._deadline = deadline
        self._received = 0

    def recv(self, size: int, flags: int = 0) -> bytes:
        if time.monotonic() >= self._deadline or self._received >= MOST_BYTES:
            return b""
        received = super().recv(size, flags)
        self._received += len(received)
        return received

    def send(self, data: Any, flags: int = 0) -> int:
        if time.monotonic() >= self._deadline:
            raise EOFError("the deadline has passed")
        return super().send(data, flags)


class Glance:
    """Looks every few seconds whether an attempt can still succeed: ``look`` raises the error of one that cannot."""

    def __init__(self, look: Callable[[], None]) -> None:
        self._look = look
        self._next = time.monotonic() + GLANCE

    def __call__(self) -> None:
        if time.monotonic() >= self._next:
            self._look()
            self._next = time.monotonic() + GLANCE


def reach(endpoint: SshEndpoint, proof: Proof, timeout: int, look: Callable[[], None] = lambda: None) -> List[str]:
    """The hostnames, all of which answered; ComputeError names the first pair that does not connect, and the reason.

    ``look`` is called while a container does not answer, and raises an error if that is known to be in vain.
    """
    glance = Glance(look)
    paramiko = load_paramiko()
    deadline = time.monotonic() + timeout
    with Gateway(endpoint.host, endpoint.port, endpoint.proxy) as gateway:
        connection = BoundedSocket(_connected(gateway, endpoint, deadline, glance), deadline)
        # The socket ends first: otherwise the transport waits for its thread, which reads as long as the server sends.
        with closing(paramiko.Transport(connection)) as transport, closing(connection):
            _enter(paramiko, transport, endpoint, deadline)
            answers = _ask(paramiko, transport, proof, deadline, glance) if proof.groups else {}
    pairs = list(proof.pairs(endpoint.name))
    if pairs and BEGUN not in answers:
        reason = answers.get(ENDED) or "runs no command within %d seconds" % timeout
        raise ComputeError(
            f"{endpoint} accepts the login, but its shell {reason}: check .bashrc and BASH_ENV there.", endpoint.name
        )
    silence = "no answer within %d seconds" % timeout
    if time.monotonic() < deadline - RESERVE:
        silence = "the check ended before its answer; session_memory may be too small for the programs there"
    for prover, name in pairs:
        reason = answers.get(name, silence)
        if reason:
            raise ComputeError(f"{name} does not accept ssh connections from {prover}: {reason.rstrip('.')}.", name)
    return [endpoint.name, *[name for _prover, name in pairs]]


def load_paramiko() -> Any:
    """paramiko without its log on stderr: the errors contain the same."""
    try:
        import paramiko
    except ImportError as error:
        raise LibraryError("paramiko", traceback.format_exc()) from error
    logging.getLogger("paramiko").addHandler(logging.NullHandler())
    return paramiko


def _connected(gateway: Gateway, endpoint: SshEndpoint, deadline: float, glance: Glance) -> socket.socket:
    """A connection to a server that answers. The engine's proxy accepts before a container listens, and closes it then."""
    reason = ""
    while True:
        try:
            connection = gateway.connect(_left(deadline))
            if connection.recv(4, socket.MSG_PEEK):
                return connection
            connection.close()
            reason = gateway.complaint or "connection closed by the server"
        except TimeoutError:
            # The deadline has cut this attempt short: an earlier one knows more.
            reason = gateway.complaint or reason or "timed out"
        except OSError as error:
            reason = gateway.complaint or error.strerror or str(error)
        glance()
        if time.monotonic() + gateway.pause >= deadline:
            raise ComputeError(
                f"{endpoint} does not accept ssh connections: {reason}; session_logs.yml shows its log.", endpoint.name
            )
        time.sleep(gateway.pause)


def _enter(paramiko: Any, transport: Any, endpoint: SshEndpoint, deadline: float) -> None:
    transport.get_security_options().key_types = ["ssh-ed25519"]
    transport.banner_timeout = transport.auth_timeout = _left(deadline)
    try:
        transport.start_client(timeout=_left(deadline))
        if transport.get_remote_server_key().get_base64() != endpoint.host_key.split()[1]:
            raise ComputeError(
                f"{endpoint} presents an unexpected host key; check which program listens on that port.", endpoint.name
            )
        transport.auth_publickey(endpoint.user, paramiko.Ed25519Key.from_private_key_file(endpoint.key_file))
    except (paramiko.SSHException, EOFError, OSError) as error:
        reason = str(error).rstrip(".") or type(error).__name__
        raise ComputeError(f"{endpoint} refuses the ssh login of {endpoint.user}: {reason}.", endpoint.name) from error


def _ask(paramiko: Any, transport: Any, proof: Proof, deadline: float, glance: Glance) -> Dict[str, str]:
    """One command on ``main1`` for all others: by hostname, why each does not answer, or empty; and BEGUN if it has begun."""
    mark = secrets.token_hex(8)
    left = max(1, int(_left(deadline)) - RESERVE)
    answers: Dict[str, str] = {}
    heard = ""
    wanted = {BEGUN, *[name for _prover, name in proof.pairs("")]}
    try:
        channel = transport.open_session(timeout=_left(deadline))
        channel.exec_command(proof.command(mark, left))
        channel.settimeout(_left(deadline))
        with suppress(OSError):  # the shell has ended
            channel.sendall(SCRIPT.encode())
            channel.shutdown_write()
        for line in _lines(channel, deadline, glance):
            word, name, reason = _answer(line, mark)
            if name in wanted:
                answers[name] = (
                    "" if word == "yes" else reason or "its shell answers nothing: check .bashrc and BASH_ENV there"
                )
            if len(answers) == len(wanted):
                break
            heard = line.strip() or heard
        if BEGUN not in answers and channel.eof_received:
            answers[ENDED] = _end_of(channel, heard, deadline)
    except (paramiko.SSHException, OSError, EOFError):
        pass  # the deadline has passed or main1 is gone: the caller names the missing hosts
    return answers


def _end_of(channel: Any, heard: str, deadline: float) -> str:
    """Return how a shell ended: its exit code, and the last line that it has written, as an error or else as output."""
    channel.status_event.wait(min(RESERVE, _left(deadline)))
    errors = channel.recv_stderr(CHUNK).decode("utf-8", "replace")
    said = ([line.strip() for line in errors.split("\n") if line.strip()] or [heard])[-1][:MOST_OF_ANSWER].rstrip(".")
    code = "with exit code %d" % channel.exit_status if channel.exit_status >= 0 else "without an exit code"
    return f"ends {code} before it runs a command" + (f" ({said})" if said else "")


def _answer(line: str, mark: str) -> Tuple[str, str, str]:
    """A line of the script: ``yes`` or ``no``, the hostname, and the reason; the name is empty for any other line."""
    found, _space, rest = line.partition(" ")
    if found != mark:
        return "", "", ""
    if rest == "begun":
        return "yes", BEGUN, ""
    word, name, reason = [*rest.split(None, 2), "", "", ""][:3]
    return word, name, reason.strip()


def _lines(channel: Any, deadline: float, glance: Glance) -> Iterator[str]:
    """Complete lines until the end or the deadline. A line longer than MOST_OF_SHELL is not kept."""
    rest = b""
    while time.monotonic() < deadline:
        glance()
        channel.settimeout(min(GLANCE, _left(deadline)))
        try:
            piece = channel.recv(CHUNK)
        except socket.timeout:
            continue
        if not piece:
            return
        *complete, rest = (rest + piece).split(b"\n")
        for line in complete:
            yield line.decode("utf-8", "replace")
        rest = rest[-MOST_OF_SHELL:]


def _left(deadline: float) -> float:
    return max(0.1, deadline - time.monotonic())
