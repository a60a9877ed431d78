# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The processes of this host that hold a lock on a file."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import os
from typing import List

# A line: number, kind, ADVISORY, READ or WRITE, PID, MAJOR:MINOR:INODE, and the range of bytes. A process that waits has an arrow.
_LOCKS = "/proc/locks"


def lock_holders(path: str, table: str = _LOCKS) -> List[str]:
    """One entry for each process, such as ``process 712 (python3) locks it``; none if the kernel does not say."""
    try:
        inode = str(os.stat(path).st_ino)
        with open(table, encoding="ascii", errors="replace") as lines:
            locks = [line.split() for line in lines]
    except OSError:
        return []
    # A process of another PID namespace has the number 0 there.
    holders = {
        int(lock[4]) for lock in locks if lock[1] != "->" and lock[5].rpartition(":")[2] == inode and lock[4] != "0"
    }
    return ["process %d%s locks it" % (pid, _program(pid)) for pid in sorted(holders - {-1, os.getpid()})]


def _program(pid: int) -> str:
    try:
        with open("/proc/%d/comm" % pid, encoding="utf-8", errors="replace") as name:
            return f" ({name.read().strip()})"
    except OSError:
        return ""
