# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The control groups of containers on this host: what the kernel enforces costs the engine no request."""

from __future__ import annotations

import os
import re
from typing import Collection, Dict, Iterator

from ..._shared.documents.report import Enforced
from ..._shared.paths import read

ROOT = "/sys/fs/cgroup"
# An engine's ID of a container is the whole name of its group, or a part of it: docker-<ID>.scope.
_ID = re.compile(r"[0-9a-f]{64}")
# The group of a container of a rootless engine is five folders below the root.
_DEEPEST = 6
# From this number on, version 1 means that memory is not limited.
_UNLIMITED = 1 << 62


def is_unified(root: str = ROOT) -> bool:
    return os.path.exists(os.path.join(root, "cgroup.controllers"))


def found(top: str, engine_ids: Collection[str]) -> Dict[str, str]:
    """The group of each of these containers below a directory."""
    wanted = set(engine_ids)
    return {identity: path for identity, path in _walk(top, _DEEPEST) if identity in wanted} if wanted else {}


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


def enforced(engine_ids: Collection[str], root: str = ROOT) -> Dict[str, Enforced]:
    """Return what the kernel enforces of the containers that run here, by their ID in the engine."""
    if is_unified(root):
        return {identity: _unified(path) for identity, path in found(root, engine_ids).items()}
    memory = os.path.join(root, "memory")
    paths = {identity: os.path.relpath(path, memory) for identity, path in found(memory, engine_ids).items()}
    return {identity: _separate(root, path) for identity, path in paths.items()}


def _unified(group: str) -> Enforced:
    """Version 2 of control groups."""

    def text(name: str) -> str:
        return read(os.path.join(group, name)).strip()

    quota, _space, period = text("cpu.max").partition(" ")
    return _known(quota, period, text("memory.max"), text("pids.max"), _cpus(group))


def _separate(root: str, path: str) -> Enforced:
    """Version 1, with a folder for each controller."""

    def text(controller: str, name: str) -> str:
        return read(os.path.join(root, controller, path, name)).strip()

    quota, period = text("cpu", "cpu.cfs_quota_us"), text("cpu", "cpu.cfs_period_us")
    memory, pids = text("memory", "memory.limit_in_bytes"), text("pids", "pids.max")
    return _known(quota, period, memory, pids, _cpus(os.path.join(root, "cpuset", path)))


def _cpus(group: str) -> str | None:
    """The CPUs of a group; empty if its parent has the same, None if they cannot be read."""
    own, above = (os.path.join(one, "cpuset.cpus") for one in (group, os.path.dirname(group)))
    if not os.path.exists(own):
        return None
    text = read(own).strip()
    return "" if text == read(above).strip() else text


def _known(quota: str, period: str, memory: str, pids: str, cpus: str | None) -> Enforced:
    cpu = _amount(quota)
    millicpus = round(cpu * 1000 / int(period)) if cpu and period.isdigit() and int(period) else cpu
    return Enforced(millicpus, _amount(memory), _amount(pids), cpus)


def _amount(text: str) -> int | None:
    """A limit; 0 for none, and None for a text that is no amount.

    >>> _amount("max"), _amount("-1"), _amount("4096"), _amount("")
    (0, 0, 4096, None)
    """
    if text in ("max", "-1"):
        return 0
    if not text.isdigit():
        return None
    return int(text) if int(text) < _UNLIMITED else 0
