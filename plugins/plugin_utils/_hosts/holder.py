# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's process that holds a session during its launch, and its user."""

from __future__ import annotations

import getpass
import os
import socket

from ...module_utils._shared.documents.decision import Holder
from ...module_utils._shared.names import owner_from_login


def login() -> str:
    """The controller's user, as an owner: the number of an account without a name, as in a container that runs as any number."""
    try:
        return owner_from_login(getpass.getuser())
    except (KeyError, OSError):
        return str(os.getuid())


def lease_owner() -> Holder:
    """The process of this ansible-playbook, which holds a session during its launch. Actions run in its forks."""
    pid = os.getppid()
    return Holder(host=socket.gethostname(), machine=_machine(), user=login(), start=_started(pid), pid=pid)


def has_exited(other: Holder) -> bool:
    """Return whether another holder has certainly ended: it ran in this PID namespace, and its process no longer exists."""
    machine = _machine()
    # kill(2) treats other numbers than those of processes as groups.
    if not machine or other.machine != machine or other.pid < 1:
        return False
    try:
        os.kill(other.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    # The kernel reuses process IDs: a process with another start time is another process.
    started = _started(other.pid)
    return bool(started) and started != other.start


def _machine() -> str:
    """The boot of the kernel and the PID namespace, because hosts and containers may share a name; empty without /proc."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as boot:
            return f"{boot.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """The start time of a process in ticks of the kernel; empty without /proc."""
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as status:
            return status.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
