# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Limits of an agent's kernel and engine that bound the number of containers, whatever CPUs and memory are free."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Dict, Mapping, Tuple

from .._core.constants import BRIDGE_PORTS

# What the idle containers of a session take, each: the engine's shim has 11 threads, and PID 1, sshd and one program are
# processes; the engine keeps six files open. A container takes a port of its bridge and an entry in the neighbours of C(main1).
_LIMITS = (
    ("neighbours", "neighbours (net.ipv4.neigh.default.gc_thresh3)", 1),
    ("processes", "processes (kernel.pid_max)", 14),
    ("files", "open files of the engine (LimitNOFILE)", 6),
)


def kernel_bounds(kernel: Mapping[str, int]) -> Dict[str, Tuple[int, int]]:
    """The limits by name: the amount that the agent has, and the amount that each container takes. Unknown limits are left out."""
    known = {name: (kernel[key], each) for key, name, each in _LIMITS if kernel.get(key)}
    return {"ports of a bridge": (BRIDGE_PORTS, 1), **known}


def kernel_room(bounds: Mapping[str, Tuple[int, int]]) -> int:
    """How many containers of a session an agent with these limits can run at most."""
    return min(amount // each for amount, each in bounds.values())


def kernel_shortfall(kernel: Mapping[str, int], count: int) -> str:
    """The first limit that does not suffice for ``count`` containers; empty if all of them do.

    >>> kernel_shortfall({"processes": 32768}, 1000), kernel_shortfall({"processes": 4096}, 300)
    ('', 'needs 4200 processes (kernel.pid_max), has 4096')
    """
    for name, (amount, each) in kernel_bounds(kernel).items():
        if count * each > amount:
            return "needs %d %s, has %d" % (count * each, name, amount)
    return ""
