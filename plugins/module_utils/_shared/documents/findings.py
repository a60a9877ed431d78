# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A finding of a check, and what the checks compare the agents with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence, Tuple

from ..codec import Document

OK, WARN, FAIL = "ok", "warn", "fail"
PROVISION = "run provision_agents.yml"
# Datagrams of the check of ports: to the port of VXLAN, to it and as long as a packet, to the port of gossip; and to the port of VXLAN
# from a container, which may not reach it.
VXLAN, FULL, GOSSIP, CONTAINER = "vxlan", "full", "gossip", "container"


@dataclass(frozen=True)
class Finding(Document):
    """A line of the table. ``where`` is an agent, a pair of agents as ``agent1 -> agent2``, or ``all``."""

    check: str
    where: str
    status: str
    found: str
    remedy: str = ""


@dataclass(frozen=True)
class Requirements:
    """The needs of the sessions of the inventory: address pools, encrypted networks, and the head's Swarm."""

    pools: Sequence[str] = ("10.201.0.0/16",)
    encrypted: bool = False
    head: str = ""


Verdict = Tuple[str, str, str]


def verdict(found: str, is_bad: object, remedy: str, status: str = WARN) -> Verdict:
    """Return what was found, which is a warning, or another status with its remedy, if it is bad."""
    return (status, found, remedy) if is_bad else (OK, found, "")
