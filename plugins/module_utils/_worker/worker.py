# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A process that stays on a host after a module, and answers further steps in copies of itself.

To unpack a module, start a Python and import the library takes half a second of a processor; a copy of a process takes
milliseconds. The process listens on a socket in a directory that only its user can enter. It ends after ``IDLE`` seconds without
work, which is how long Ansible keeps a connection open, and after the first step that fails or that finds no engine: what a user
then corrects, such as a group or a library, it would not see. Nothing depends on it: a controller that does not find it sends the
module again.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import struct
import sys
import tempfile
import time
from contextlib import suppress
from typing import Any, Callable, List, Tuple

from .._shared.codec import Json

IDLE, LONGEST = 60.0, 600.0  # seconds
# Steps at the same time; others wait until one ends.
MOST = 32
# Seconds until a request must have arrived, and between two looks at the copies.
_ARRIVAL, _LOOK = 30.0, 0.5
# The exit codes of a copy.
_DONE, _FAILED = 0, 1

# The answer to a request, and whether the process may stay after it.
Answer = Callable[[Json], Tuple[Json, bool]]
# The client of this copy.
_asking: List[int] = []


def client_pid() -> int:
    """The process that asks for the step of this one, below the connection of the controller: without a client, this one itself."""
    return _asking[0] if _asking else os.getpid()


def own_directory(directory: str) -> str:
    """The directory with the name of this host: hosts may share the homes of their users."""
    return "%s-%s" % (directory, os.uname().nodename.partition(".")[0])


def daemonize(answer: Answer, directory: str, prepare: Callable[[], None] = lambda: None) -> None:
    """Leave a copy of this process that answers requests at the socket C(steps) of a directory, unless another one does so.

    The copy prepares itself before it takes a request. There is no such process if the path is too long for a socket, or no process
    can be made.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        if not _is_placed(listener, directory):
            return
        try:
            copy = os.fork()
        except OSError:
            shutil.rmtree(directory, ignore_errors=True)
            return
        if copy == 0:
            # Whatever happens, the copy never goes on with the work of the module.
            try:
                _live(listener, directory, answer, prepare)
            finally:
                os._exit(0)


def _is_placed(listener: socket.socket, directory: str) -> bool:
    """Listen in a new directory, which then gets its name: a client never finds a socket that does not answer."""
    base = os.path.dirname(directory)
    try:
        os.makedirs(base, 0o700, exist_ok=True)
        own = tempfile.mkdtemp(prefix="cluster-compute-", dir=base)
    except OSError:
        return False
    try:
        listener.bind(os.path.join(own, "steps"))
        listener.listen(MOST)
        if not _answers(os.path.join(directory, "steps")):
            # Another process was killed.
            shutil.rmtree(directory, ignore_errors=True)
        os.rename(own, directory)
    except OSError:
        shutil.rmtree(own, ignore_errors=True)
        return False
    return True


def _answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
        return one.connect_ex(path) == 0


def _live(listener: socket.socket, directory: str, answer: Answer, prepare: Callable[[], None]) -> None:
    """Serve, apart from the module and from its connection, until there is no work."""
    own = os.stat(directory).st_ino
    try:
        os.setsid()
        os.chdir("/")
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        with suppress(OSError), open("/proc/self/comm", "w", encoding="ascii") as name:
            name.write("cluster-compute")
        signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit())
        prepare()
        _serve(listener, answer)
    finally:
        with suppress(OSError):
            # Another process may have taken the name.
            if os.stat(directory).st_ino == own:
                shutil.rmtree(directory)
        # No client can connect any more; those that have connected get an answer.
        listener.settimeout(0)
        while _accepted(listener, answer):
            pass


def _serve(listener: socket.socket, answer: Answer) -> None:
    listener.settimeout(_LOOK)
    end = time.monotonic() + LONGEST
    copies, failed, deadline = 0, 0, time.monotonic() + IDLE
    while not failed and time.monotonic() < min(deadline, end):
        ended = _ended()
        copies, failed = copies - len(ended), any(ended)
        if copies >= MOST:
            time.sleep(_LOOK)
        elif not failed:
            copies += _accepted(listener, answer)
        if copies:
            deadline = time.monotonic() + IDLE


def _accepted(listener: socket.socket, answer: Answer) -> int:
    """Accept one connection, and leave it to a copy of this process. 0 if there is none, 1 if there is."""
    try:
        connection, _address = listener.accept()
    except OSError:
        return 0
    with connection:
        if os.fork() == 0:
            listener.close()
            _answer_one(connection, answer)
    return 1


def _ended() -> List[int]:
    """Return how the copies have ended that were not there at the last call."""
    found = []
    with suppress(ChildProcessError):
        while True:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                break
            found.append(status)
    return found


def _answer_one(connection: socket.socket, answer: Answer) -> None:
    """Answer one request, and end this copy; does not return. A copy that is killed has answered nothing."""
    code = _FAILED
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _belong_to(struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])
        connection.settimeout(_ARRIVAL)
        with connection.makefile("rb") as stream:
            text = stream.read()
        if not text:
            # Another module asks whether this process answers.
            code = _DONE
            return
        request: Any = json.loads(text)
        result, may_stay = answer(request)
        # A client that stops reading does not keep this copy.
        connection.settimeout(LONGEST)
        connection.sendall(json.dumps(result).encode())
        code = _DONE if may_stay else _FAILED
    finally:
        os._exit(code)


def _belong_to(client: int) -> None:
    """Take the environment of a client: its login may be another one than the login of the module."""
    _asking[:] = [client]
    with suppress(OSError), open("/proc/%d/environ" % client, "rb") as variables:
        pairs = [pair.partition(b"=") for pair in variables.read().split(b"\0")]
        os.environb.clear()
        os.environb.update({name: value for name, _equals, value in pairs if name})
