# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checks of what the kernel and the engine of an agent limit: files, memory, neighbours, processes."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Callable

from .._core.constants import BRIDGE_PORTS
from .._core.documents import Json
from .._core.units import show_bytes
from .._planning.kernel_limits import kernel_bounds, kernel_room, kernel_shortfall
from .findings import OK, WARN, Requirements, Verdict

NOFILE_WARN = 65536
MEMLOCK_WARN = 64 << 20
# The kernel's own default.
NEIGHBOURS_WARN = 1024
INOTIFY_WARN = 1024


def check_limits(report: Json, _required: Requirements) -> Verdict:
    nofile, memlock = report["nofile"], report["memlock"]
    if not nofile and not memlock:
        return OK, "the engine's own", ""
    found = f"nofile {_limit(nofile, str)}, memlock {_limit(memlock, show_bytes)}"
    if 0 < nofile < NOFILE_WARN or 0 < memlock < MEMLOCK_WARN:
        return WARN, found, "raise LimitNOFILE and LimitMEMLOCK of its engine, for large jobs and RDMA"
    return OK, found, ""


def check_neighbours(report: Json, _required: Requirements) -> Verdict:
    limit = report["kernel"].get("neighbours")
    if not limit:
        return OK, "not known", ""
    found = "up to %d in all networks together" % limit
    if limit < NEIGHBOURS_WARN:
        return WARN, found, "raise net.ipv4.neigh.default.gc_thresh3 with sysctl to at least %d" % NEIGHBOURS_WARN
    return OK, found, ""


def check_size(report: Json, _required: Requirements) -> Verdict:
    """How many containers the agent can run, whatever CPUs and memory it has."""
    kernel = report["kernel"]
    room = kernel_room(kernel_bounds(kernel))
    found = "up to %d containers of a session" % room
    if room < BRIDGE_PORTS:
        return (
            WARN,
            f"{found}: one more {kernel_shortfall(kernel, room + 1)}",
            "raise this limit for larger sessions",
        )
    return OK, found, ""


def check_inotify(report: Json, _required: Requirements) -> Verdict:
    """With cgroups of version 2, containerd watches the memory of each container by an instance of root's."""
    limit = report["kernel"].get("inotify", 0)
    if not limit:
        return OK, "not known", ""
    found = "%d instances" % limit
    if report["cgroup_version"] == "2" and limit < INOTIFY_WARN:
        found += ": of more running containers the engine does not see that memory ran out"
        return WARN, found, "raise fs.inotify.max_user_instances with sysctl to at least %d" % INOTIFY_WARN
    return OK, found, ""


def _limit(amount: int, show: Callable[[int], str]) -> str:
    return "unlimited" if amount < 0 else show(amount)
