# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Counters of containers from the control groups of this host, where an engine on it keeps them."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from typing import Collection, Dict, Iterator

from .host import read

ROOT = "/sys/fs/cgroup"
# An engine's ID of a container is the whole name of its group, or a part of it: docker-<ID>.scope.
_ID = re.compile(r"[0-9a-f]{64}")
# The group of a container of a rootless engine is five folders below the root.
_DEEPEST = 6


@dataclass(frozen=True)
class Reading:
    """Counters of a container: when they were read, in seconds; nanoseconds of CPU time since its start; bytes of memory."""

    moment: float
    cpu: int
    memory: int


class Groups:
    """The control groups of containers, found once and read as often as needed."""

    def __init__(self, engine_ids: Collection[str], root: str = ROOT) -> None:
        self._unified = os.path.exists(os.path.join(root, "cgroup.controllers"))
        tops = {name: root if self._unified else os.path.join(root, name) for name in ("cpuacct", "memory")}
        self._cpu = _found(tops["cpuacct"], engine_ids)
        self._memory = self._cpu if self._unified else _found(tops["memory"], engine_ids)

    def readings(self) -> Dict[str, Reading]:
        """A reading of each container whose groups are here, by its ID in the engine."""
        read_one = self._read_unified if self._unified else self._read_separate
        found = {identity: read_one(identity) for identity in self._cpu if identity in self._memory}
        return {identity: reading for identity, reading in found.items() if reading}

    def _read_unified(self, identity: str) -> Reading | None:
        """Version 2 of control groups."""
        folder = self._cpu[identity]
        spent, used = _field(folder, "cpu.stat", "usage_usec"), read(os.path.join(folder, "memory.current"))
        return _reading(spent * 1000, used, _field(folder, "memory.stat", "inactive_file"))

    def _read_separate(self, identity: str) -> Reading | None:
        """Version 1, with a folder for each controller."""
        spent, folder = read(os.path.join(self._cpu[identity], "cpuacct.usage")), self._memory[identity]
        used = read(os.path.join(folder, "memory.usage_in_bytes"))
        return _reading(int(spent or 0), used, _field(folder, "memory.stat", "total_inactive_file"))


def without_cache(used: int, cache: int) -> int:
    """Memory without the page cache that the kernel can give up, as in C(docker stats)."""
    return used - cache if cache < used else used


def _reading(cpu: int, memory: str, cache: int) -> Reading | None:
    """None if the group is gone: the container has ended."""
    return Reading(time.monotonic(), cpu, without_cache(int(memory), cache)) if memory.strip() else None


def _field(folder: str, name: str, field: str) -> int:
    """A line of a file of names and numbers."""
    match = re.search(rf"^{field} (\d+)$", read(os.path.join(folder, name)), re.MULTILINE)
    return int(match.group(1)) if match else 0


def _found(top: str, engine_ids: Collection[str]) -> Dict[str, str]:
    wanted = set(engine_ids)
    return {identity: path for identity, path in _walk(top, _DEEPEST) if identity in wanted}


def _walk(folder: str, depth: int) -> Iterator[tuple[str, str]]:
    """The groups of containers below a folder, each with the ID in its name."""
    try:
        entries = [entry for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return
    for entry in entries:
        match = _ID.search(entry.name)
        if match:
            yield match.group(), entry.path
        elif depth > 1:
            yield from _walk(entry.path, depth - 1)
