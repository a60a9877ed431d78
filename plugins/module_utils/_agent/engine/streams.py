# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Streams of an engine: read in pieces, without their frames, and cut to their last lines; what is sent is confirmed."""

from __future__ import annotations

import socket
import time
from collections import deque
from contextlib import suppress
from typing import Any, Callable, Deque, Iterable, Iterator

from ..._shared.errors import EngineError

MIB = 1 << 20
# A frame of a log: one byte for the stream, three unused bytes, four bytes for the length (API, "Attach to a container").
_HEADER = 8


# What PID 1 writes when it has unpacked its files: receive_files in roles/image/files/init.sh.
RECEIVED = b"the files of the session have arrived"
# No more is read of what PID 1 answers.
LONGEST_ANSWER = 1 << 16


class CutError(EngineError):
    """A stream has ended before what it carries."""


class Pieces:
    """A file over an iterator of bytes: takes no more pieces than are read."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._rest = b""

    def read(self, size: int) -> bytes:
        """The next ``size`` bytes; fewer at the end."""
        have, count = [self._rest], len(self._rest)
        while count < size:
            piece = next(self._pieces, None)
            if piece is None:
                break
            have.append(piece)
            count += len(piece)
        whole = b"".join(have)
        self._rest = whole[size:]
        return whole[:size]

    def drain(self) -> None:
        """Read the rest and drop it."""
        for _piece in self._pieces:
            self._rest = b""


def unframed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """A container's output without the frames that separate its two streams. CutError if it ends inside of a frame."""
    stream = Pieces(pieces)
    while True:
        header = stream.read(_HEADER)
        if not header:
            return
        size = int.from_bytes(header[4:], "big")
        content = stream.read(size) if len(header) == _HEADER else b""
        yield content
        if len(header) < _HEADER or len(content) < size:
            raise CutError("The output of a container was cut short; check the log of its engine, and run this again.")


def until(pieces: Iterable[bytes], deadline: float) -> Iterator[bytes]:
    """The pieces that arrive before a time of the monotonic clock."""
    for piece in pieces:
        if time.monotonic() >= deadline:
            return
        yield piece


def last(pieces: Iterable[bytes], most: int) -> bytes:
    """The last lines in at most ``most`` bytes; if lines are left out, the first line says so."""
    kept: Deque[bytes] = deque()
    size, cut = 0, False
    for piece in pieces:
        kept.append(piece)
        size += len(piece)
        while size - len(kept[0]) > most:
            size -= len(kept.popleft())
            cut = True
    whole = b"".join(kept)
    if not cut and size <= most:
        return whole
    _broken, _end, lines = whole[-most:].partition(b"\n")
    amount = b"%g MiB" % (most / MIB) if most >= MIB else b"%d KiB" % (most >> 10)
    return b"(only the last %s of this log)\n" % amount + (lines or whole[-most:])


def reading(answer: Any, stream: Any) -> Callable[[int], bytes]:
    """Return how output is read: the SDK has read the headers through a buffer, which can hold the first bytes of the output."""
    response = getattr(getattr(answer, "_response", None), "raw", None)
    read: Callable[[int], bytes] = getattr(getattr(getattr(response, "_fp", None), "fp", None), "read1", stream.recv)
    return read


class Answers:
    """The output of PID 1 while it receives something."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._text = b""

    def has(self, wanted: bytes, deadline: float) -> bool:
        """Wait for these words; false if the stream ends without them. TimeoutError at the deadline, or after too many other words."""
        with suppress(socket.timeout):
            for piece in until(self._pieces, deadline):
                self._text += piece
                if wanted in self._text:
                    return True
                if len(self._text) > LONGEST_ANSWER:
                    break
            else:
                if time.monotonic() < deadline:
                    return False
        raise TimeoutError
