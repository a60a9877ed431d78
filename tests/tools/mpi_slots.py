# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a plain ``mpirun`` must do in a session of three containers with two slots each."""

from __future__ import annotations

import re
from typing import Any

from controller import Session

RING = r"^rank (\d+) of (\d+) on (\S+): ring (\d+), all-reduce of 1000000: 0 wrong$"
PAIRS: dict[str, Any] = {"session_cluster_size": 3, "session_cpus": "2", "session_memory": "256m", "session_shm": "64m"}


def check_slots(session: Session, version: str) -> None:
    """Six ranks for a program, one for each slot in the order of the containers."""
    assert re.search(version, session.say("main1", "mpirun --version"))
    for host in ("main1", "sub2"):
        names = session.say(host, "mpirun -n 6 hostname").split()
        assert sorted(names) == [name for name in ("main1", "sub1", "sub2") for _slot in range(2)]
    assert len(session.say("sub1", "mpirun -n 3 sh -c 'echo $BACKENDAI_CLUSTER_HOST'").split()) == 3
    found = re.findall(RING, session.say("main1", "mpirun ring"), re.MULTILINE)
    hosts = ("main1", "main1", "sub1", "sub1", "sub2", "sub2")
    assert sorted(found) == [(str(rank), "6", host, "15") for rank, host in enumerate(hosts)]
    for host in ("main1", "sub1", "sub2"):
        assert session.say(host, "hostname -i") == session.addresses[int(host[-1]) if host != "main1" else 0]
