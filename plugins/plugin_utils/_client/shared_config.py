# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one file that a user includes in ``~/.ssh/config``: the containers of all sessions, under names of their own.

It is derived from the folders of the sessions each time, under a lock, and appears complete or not at all. So a controller that was
killed, or several launches at once, leave nothing in it that the next launch or end does not correct.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import List

from ...module_utils._shared.errors import ComputeError
from .._hosts.files import DIRECTORY, lock_folder, replace
from .session_dir import Artifacts, base_of

NAME = "ssh_config"
MARK = "# Written by cluster.compute: every launch, repair and end of a session replaces this file.\n"


def update(base: str) -> str:
    """Write the file; returns a warning if it cannot be written, which is no reason to fail a launch."""
    folder = base_of(base)
    path = os.path.join(folder, NAME)
    try:
        handle = os.open(folder, DIRECTORY)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return _warning(path, error.strerror or str(error))
    try:
        lock_folder(handle)
        return _replace(handle, folder, path)
    except OSError as error:
        return _warning(path, error.strerror or str(error))
    finally:
        os.close(handle)


def _replace(handle: int, folder: str, path: str) -> str:
    if os.fstat(handle).st_uid != os.geteuid():
        return _warning(path, "its directory belongs to another user")
    before = _content(handle)
    if before is not None and not before.startswith(MARK.encode()):
        return _warning(path, "it is a file of yours")
    sessions = _sessions(folder)
    after = (MARK + "".join(sessions)).encode("utf-8", "surrogateescape")
    if sessions and after != before:
        _write(handle, after)
    elif not sessions and before is not None:
        os.unlink(NAME, dir_fd=handle)
    return ""


def _sessions(folder: str) -> List[str]:
    """The part of each session that runs: its folder has the result of the launch."""
    parts = []
    for name in sorted(os.listdir(folder)):
        if name.startswith(".") or name == NAME:
            continue
        with suppress(ComputeError):  # another user's folder, or none of a session
            artifacts = Artifacts(folder, name)
            config = artifacts.read("ssh_config")
            if config is not None and artifacts.read("session.json") is not None:
                parts.append(renamed_config(name, config.decode("utf-8", "surrogateescape")))
    return parts


def _content(handle: int) -> bytes | None:
    try:
        file = os.open(NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=handle)
    except FileNotFoundError:
        return None
    with os.fdopen(file, "rb") as stream:
        return stream.read()


def _write(handle: int, content: bytes) -> None:
    replace(handle, NAME, content)
    for left in os.listdir(handle):  # of a writer that was killed: the lock is ours
        if left.startswith(f".{NAME}."):
            os.unlink(left, dir_fd=handle)


def _warning(path: str, reason: str) -> str:
    return f"{path} is not written: {reason}. Names such as train.main1 work only with this file; the session itself is not affected."


def renamed_config(session: str, text: str) -> str:
    """The controller's configuration of a session, with ``session.hostname`` instead of each hostname.

    >>> print(renamed_config("train", "Host main1\\n    Port 2\\nHost sub1\\n    ProxyJump main1\\n"), end="")
    Host train.sub1
        HostName sub1
        HostKeyAlias sub1
    Host train.main1
        Port 2
    Host train.sub1
        ProxyJump train.main1
    """
    lines = text.rstrip("\n").split("\n")
    hosts = list(dict.fromkeys(name for line in lines if line.startswith("Host ") for name in line.split()[1:]))
    names = {name: f"{session}.{name}" for name in hosts}
    # The first of the hosts is main1, whose address the text has.
    renamed: List[str] = []
    for host in hosts[1:]:
        renamed += ["Host " + names[host], "    HostName " + host, "    HostKeyAlias " + host]
    for line in lines:
        word, _blank, rest = line.strip().partition(" ")
        if word == "Host":
            renamed.append("Host " + " ".join(names[name] for name in rest.split()))
        elif word == "ProxyJump":
            renamed.append("    ProxyJump " + ",".join(names.get(name, name) for name in rest.split(",")))
        else:
            renamed.append(line)
    return "\n".join([*renamed, ""])
