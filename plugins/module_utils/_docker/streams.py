# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An engine's long answers, piece by piece: nobody holds more of them than he needs, however much a container wrote."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from collections import deque
from typing import Deque, Iterable, Iterator

MIB = 1 << 20
# A frame of a log: one byte for the stream, three for nothing, four for the length (API, "Attach to a container").
_HEADER = 8


class Pieces:
    """An answer that comes in pieces, as a file: no more of it is taken than is read."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._rest = b""

    def read(self, size: int) -> bytes:
        """As many bytes; fewer at the end."""
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
        """Take what is left."""
        for _piece in self._pieces:
            self._rest = b""


def unframed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """What a container wrote, out of the frames that tell its two streams apart."""
    stream = Pieces(pieces)
    while True:
        header = stream.read(_HEADER)
        if len(header) < _HEADER:
            return
        yield stream.read(int.from_bytes(header[4:], "big"))


def last(pieces: Iterable[bytes], most: int) -> bytes:
    """The last lines of it all, in at most as many bytes; where some are left out, the first line says so."""
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
    return b"(only the last %g MiB of this log)\n" % (most / MIB) + (lines or whole[-most:])
