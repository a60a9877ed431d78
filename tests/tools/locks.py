# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Locks between test processes that run side by side: each image is built once, each address block is used once."""

from __future__ import annotations

import contextlib
import fcntl
import random
import socket
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / ".cache" / "locks"


@contextlib.contextmanager
def lock(name: str) -> Iterator[None]:
    """Hold a lock of this checkout; wait for a process that holds it already. It ends with its process at the latest."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / name).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def claim(kind: str, numbers: list[int]) -> tuple[int, socket.socket]:
    """A number that no other process of this machine has claimed, and the socket that keeps it until it is closed."""
    for number in random.SystemRandom().sample(numbers, len(numbers)):
        kept = socket.socket(socket.AF_UNIX)
        try:
            kept.bind(f"\0cluster-compute-test-{kind}-{number}")
        except OSError:
            kept.close()
            continue
        return number, kept
    raise RuntimeError(f"All {len(numbers)} numbers of kind {kind} are claimed by other test processes.")
