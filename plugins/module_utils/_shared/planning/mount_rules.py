# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rules of data folders: each entry of ``session_mounts`` becomes a ``Mount``, or is refused with one message."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Tuple

from ..constants import RUNTIME_PATH, RUNTIME_VOLUME_PREFIX
from ..documents.plan import Mount
from ..errors import InputError
from ..paths import covers
from ..value_rules import check_boolean, check_list, check_path, entry_of, one_of

_MODES = ("rw", "ro")
_VOLUME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]+")
# What no user can give: the type follows from the source.
_BY_SOURCE = object()


@dataclass(frozen=True)
class _Entry:
    """A mount as a user writes it, with values of any kind."""

    source: Any
    target: Any
    type: Any = _BY_SOURCE
    mode: Any = "rw"
    options: Any = None
    local: Any = False


def check_mounts(variable: str, value: Any) -> Tuple[Mount, ...]:
    entries = value.split(",") if isinstance(value, str) else check_list(variable, value)
    return tuple(_mount(variable, _parsed(variable, entry) if isinstance(entry, str) else entry) for entry in entries)


def with_owner(value: Any, owner: str) -> Any:
    """The mounts as a user gives them, with the owner in the places of C(<% owner %>).

    >>> with_owner(["/srv/users/<% owner %>:/data"], "alice")
    ['/srv/users/alice:/data']
    """
    if isinstance(value, str):
        return re.sub(r"<%\s*owner\s*%>", lambda _found: owner, value)
    if isinstance(value, list):
        return [with_owner(entry, owner) for entry in value]
    if isinstance(value, Mapping) and isinstance(value.get("source"), str):
        return {**value, "source": with_owner(value["source"], owner)}
    return value


def _parsed(variable: str, text: str) -> Dict[str, str]:
    """A mount as Docker writes it.

    >>> _parsed("session_mounts", "/srv/data:/data:ro")
    {'source': '/srv/data', 'target': '/data', 'mode': 'ro'}
    """
    parts = text.strip().split(":")
    if not 2 <= len(parts) <= 3 or not all(parts) or (len(parts) == 3 and parts[2] not in _MODES):
        rule = (
            "must be SOURCE:TARGET, SOURCE:TARGET:ro or a dictionary with source and target, as in /srv/data:/data or "
            "{source: /srv/data, target: /data}"
        )
        raise InputError(variable, text, rule)
    return dict(zip(("source", "target", "mode"), parts))


def _mount(variable: str, value: Any) -> Mount:
    entry = entry_of(_Entry, variable, value)
    source, target = check_path(variable, entry.source), check_path(variable, entry.target)
    usual = "bind" if "/" in source else "volume"
    kind = one_of("bind", "volume", "nfs")(variable, usual if entry.type is _BY_SOURCE else entry.type)
    mode = one_of(*_MODES)(variable, entry.mode)
    options = entry.options or {}
    if not isinstance(options, Mapping) or not all(str(name).isprintable() for name in options):
        raise InputError(f"{variable}: options", options, "must be a dictionary of values by printable names")
    target = target.rstrip("/")
    parts = target.split("/")
    if len(parts) < 2 or parts[0] or {"", ".", ".."} & set(parts[1:]) or _reserved(target):
        rule = "must be an absolute path without '.' and '..' that the session does not use itself"
        raise InputError(variable, entry.target, rule)
    if kind == "bind" and not source.startswith("/"):
        raise InputError(variable, source, "must be an absolute path, because it is a directory of the agents")
    if kind == "bind" and options:
        raise InputError(variable, options, "must be empty: only volumes and NFS directories have options")
    if kind == "nfs" and not re.fullmatch(r"[A-Za-z0-9.:_-]+:/\S*", source):
        raise InputError(variable, source, "must be server:/path for an NFS directory")
    if kind == "volume" and not _VOLUME.fullmatch(source):
        raise InputError(variable, source, "must be a volume name of letters, digits, '-', '_' or '.'")
    if kind == "volume" and source.startswith(RUNTIME_VOLUME_PREFIX):
        raise InputError(
            variable, source, f"must not start with {RUNTIME_VOLUME_PREFIX}: these volumes are the agents' own"
        )
    is_local = check_boolean(f"{variable}: local", entry.local)
    if is_local and (kind != "volume" or options):
        raise InputError(variable, source, "must be a volume without options to be local")
    return Mount(source, target, kind, mode, {str(key): str(option) for key, option in options.items()}, is_local)


def _reserved(target: str) -> bool:
    """Return what a data folder would hide."""
    own = (RUNTIME_PATH, "/etc", "/proc", "/sys", "/dev", "/run/sshd")
    # A mount there asks NVIDIA's runtime for GPUs, whatever the container was given:
    # https://github.com/NVIDIA/nvidia-container-toolkit/blob/main/internal/config/image/cuda_image.go
    refused = (*own, "/var/run/nvidia-container-devices", "/run/nvidia-container-devices")
    return any(covers(path, target) for path in refused) or any(covers(target, path) for path in own)
