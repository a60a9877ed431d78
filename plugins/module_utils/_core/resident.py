# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A process that stays on a host after a module, and answers further steps in copies of itself.

To unpack a module, start a Python and import the library takes half a second of a processor; a copy of a process takes
milliseconds. The process listens on a socket in a directory that only its user can enter. It ends after ``IDLE`` seconds without
work. Nothing else depends on it: a controller that does not find it sends the module again.
"""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from typing import Any, Callable, Dict, List

from .documents import Json

IDLE = 10.0  # seconds
# Steps at the same time; further ones wait until one has ended.
MOST = 32
# Seconds until a request must have arrived, and between two looks at the copies.
_ARRIVAL, _LOOK = 30.0, 0.5
_PIECE = 1 << 16

Answer = Callable[[Json], Json]


def stay(answer: Answer, base: str) -> Dict[str, str]:
    """Leave a copy of this process that answers requests, and return its Python and its socket.

    C(base) is a directory of the user. The result is empty if the path is too long for a socket, or no process can be made.
    """
    directory = tempfile.mkdtemp(prefix="cluster-compute-", dir=base)
    path = os.path.join(directory, "steps")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(path)
        listener.listen(MOST)
        copy = os.fork()
    except OSError:
        listener.close()
        shutil.rmtree(directory, ignore_errors=True)
        return {}
    if copy == 0:
        _live(listener, directory, answer)
    listener.close()
    return {"python": sys.executable, "socket": path}


def _live(listener: socket.socket, directory: str, answer: Answer) -> None:
    """Serve, apart from the module and from its connection, until there is no work; does not return."""
    try:
        os.setsid()
        os.chdir("/")
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit())
        _serve(listener, answer)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        # Nobody can connect any more; whoever has done so before gets an answer.
        listener.settimeout(0)
        while _accepted(listener, answer):
            pass
        os._exit(0)


def _serve(listener: socket.socket, answer: Answer) -> None:
    listener.settimeout(_LOOK)
    copies, deadline = 0, time.monotonic() + IDLE
    while copies or time.monotonic() < deadline:
        copies -= _ended()
        if copies:
            deadline = time.monotonic() + IDLE
        if copies >= MOST:
            time.sleep(_LOOK)
            continue
        copies += _accepted(listener, answer)


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


def _ended() -> int:
    """How many copies have ended since the last call."""
    count = 0
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            count += 1
    except ChildProcessError:
        pass
    return count


def _answer_one(connection: socket.socket, answer: Answer) -> None:
    """Answer one request, and end this copy; does not return. A copy that fails has answered nothing."""
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        connection.settimeout(_ARRIVAL)
        request: Any = json.loads(_whole(connection))
        connection.settimeout(None)
        connection.sendall(json.dumps(answer(request)).encode())
    finally:
        os._exit(0)


def _whole(connection: socket.socket) -> bytes:
    pieces: List[bytes] = []
    while True:
        piece = connection.recv(_PIECE)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
