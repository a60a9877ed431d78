# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read long answers of an engine in pieces: the memory used does not depend on what a container wrote."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import time
from collections import deque
from typing import Deque, Iterable, Iterator

MIB = 1 << 20
# A frame of a log: one byte for the stream, three unused bytes, four bytes for the length (API, "Attach to a container").
_HEADER = 8


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
    """A container's output without the frames that separate its two streams."""
    stream = Pieces(pieces)
    while True:
        header = stream.read(_HEADER)
        if len(header) < _HEADER:
            return
        yield stream.read(int.from_bytes(header[4:], "big"))


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
