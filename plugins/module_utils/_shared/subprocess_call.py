# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls that may never return, such as a look at a folder of a lost file server, in processes that are abandoned at a deadline."""

from __future__ import annotations

import json
import os
import select
import signal
import time
from contextlib import suppress
from functools import partial
from typing import Any, Callable, Dict, Optional, Sequence

from .errors import InputError
from .waiting import deadline_in

# Seconds that a folder may take to answer. A network file system that is alive answers within a few.
PATIENCE = 10.0
_CHUNK = 1 << 16
_MOST_FILES = 1 << 16


class SilentError(Exception):
    """The call has not returned in time."""


class ForkedCall:
    """A call in a process of its own. Its value is JSON; an OSError or InputError of it is raised where the value is asked for.

    The kernel may not end a process that waits for a lost file server, nor a process of which only a thread waits for it. This
    process has no open stream of its parent, and ends when the server is back.
    """

    def __init__(self, call: Callable[[], Any]) -> None:
        self._answer, writing = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            _answer(call, writing)
        os.close(writing)

    def value(self, deadline: float) -> Any:
        """The value of the call; raises a SilentError at the deadline of the monotonic clock."""
        options = os.WNOHANG
        try:
            answer = self._read(deadline)
            options = 0
        finally:
            os.close(self._answer)
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(self._pid, options)
        if "refused" in answer:
            raise InputError(*answer["refused"])
        if "error" in answer:
            raise OSError(*answer["error"])
        return answer["value"]

    def _read(self, deadline: float) -> Dict[str, Any]:
        text = b""
        while select.select([self._answer], [], [], max(0.0, deadline - time.monotonic()))[0]:
            piece = os.read(self._answer, _CHUNK)
            if not piece:
                found: Dict[str, Any] = json.loads(text.decode())
                return found
            text += piece
        raise SilentError


def call_with_timeout(call: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """The value of the call, which is JSON; raises a SilentError after so many seconds."""
    return ForkedCall(call).value(deadline_in(seconds))


def existing(paths: Sequence[str], seconds: float = PATIENCE) -> Dict[str, Optional[bool]]:
    """Return whether each path exists; None for a path that does not answer: a network file system waits for a lost server forever."""
    pending = {path: ForkedCall(partial(_exists, path)) for path in paths}
    deadline = deadline_in(seconds)
    return {path: _value_or_none(one, deadline) for path, one in pending.items()}


def unresponsive_mount(folder: str, agent: str) -> str:
    """A sentence for users about a data folder that does not answer.

    >>> unresponsive_mount("/srv/data", "node1")
    'session_mounts: /srv/data: it does not answer on node1; check the file server, and mount the directory there again.'
    """
    message = (
        "session_mounts: %s: it does not answer on %s; check the file server, and mount the directory there again."
    )
    return message % (folder, agent)


def _value_or_none(pending: ForkedCall, deadline: float) -> Optional[bool]:
    try:
        return bool(pending.value(deadline))
    except SilentError:
        return None


def _exists(path: str) -> bool:
    if not os.path.exists(path):
        return False
    # The kernel can know the path from a cache. A question about its file system goes to the server.
    with suppress(OSError):
        os.statvfs(path)
    return True


def _answer(call: Callable[[], Any], writing: int) -> None:
    """Write the value or the error of a call, and end this process, which keeps only this pipe of its parent."""
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        os.closerange(3, writing)
        os.closerange(writing + 1, _MOST_FILES)
        os.write(writing, json.dumps(_called(call)).encode())
    finally:
        os._exit(0)


def _called(call: Callable[[], Any]) -> Dict[str, Any]:
    try:
        return {"value": call()}
    except InputError as error:
        return {"refused": error.parts}
    except OSError as error:
        return {"error": [error.errno, error.strerror]}
