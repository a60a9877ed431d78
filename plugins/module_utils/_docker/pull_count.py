# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Count the bytes of a pull from the events that the engine sends, in a file that others can read meanwhile."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, Mapping, Tuple

from .._core.counting import Write, progress_file

# Seconds between two counts in the file: the engine sends an event for every few hundred kilobytes.
PERIOD = 1.0

Listener = Callable[[Mapping[str, Any]], None]


class PullCount:
    """The bytes of each layer: those that have arrived, and all. The engine names a layer's size when it begins to fetch it."""

    def __init__(self) -> None:
        self._layers: Dict[str, Tuple[int, int]] = {}

    def add(self, event: Mapping[str, Any]) -> None:
        """Take an event of the engine: https://docs.docker.com/reference/api/engine/, "Create an image".

        >>> count = PullCount()
        >>> count.add({"id": "4f4f", "status": "Downloading", "progressDetail": {"current": 20, "total": 90}})
        >>> count.text()
        '20 90'
        """
        layer, status, detail = str(event.get("id") or ""), event.get("status"), event.get("progressDetail") or {}
        if status == "Downloading" and detail.get("total"):
            self._layers[layer] = (int(detail.get("current") or 0), int(detail["total"]))
        elif status in ("Download complete", "Pull complete") and layer in self._layers:
            size = self._layers[layer][1]
            self._layers[layer] = (size, size)

    def text(self) -> str:
        """The bytes that have arrived, and all that are known of."""
        return "%d %d" % (
            sum(now for now, _all in self._layers.values()),
            sum(size for _now, size in self._layers.values()),
        )


@contextmanager
def counted(path: str | None) -> Iterator[Listener | None]:
    """A listener for the events of a pull, which keeps the count in a new file. None without a file."""
    with progress_file(path) as write:
        yield _listener(write) if write is not None else None


def _listener(write: Write) -> Listener:
    count, written = PullCount(), 0.0

    def listen(event: Mapping[str, Any]) -> None:
        nonlocal written
        count.add(event)
        now = time.monotonic()
        if now - written >= PERIOD:
            written = now
            write(count.text())

    return listen
