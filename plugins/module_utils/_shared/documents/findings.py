# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A finding of a check, and what the checks compare the agents with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ..codec import Document, Json

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

    @property
    def reason(self) -> str:
        """A failure as part of a sentence."""
        return f"{self.check} on {self.where}: {self.found.rstrip('.')}"


@dataclass(frozen=True)
class Measurement:
    """Throughput in Mbit/s and latency in milliseconds from one agent to another; None: not measured."""

    sender: str
    receiver: str
    mbits: Optional[float] = None
    milliseconds: Optional[float] = None

    def to_json(self) -> Json:
        return {"from": self.sender, "to": self.receiver, "mbits": self.mbits, "milliseconds": self.milliseconds}


@dataclass(frozen=True)
class Checkup:
    """The result of a check of agents.

    ``unfit`` has the agents that sessions should avoid, each with a reason, ``unguarded`` those whose containers reach overlays of
    other sessions, and ``overlay`` the measurements inside an overlay network.
    """

    findings: Tuple[Finding, ...]
    unfit: Mapping[str, str]
    unguarded: Tuple[str, ...]
    overlay: Tuple[Measurement, ...] = ()

    @property
    def counts(self) -> Dict[str, int]:
        return {status: sum(one.status == status for one in self.findings) for status in (OK, WARN, FAIL)}

    @property
    def failed(self) -> List[Finding]:
        return [one for one in self.findings if one.status == FAIL]

    @property
    def message(self) -> str:
        if not self.failed:
            return "All agents can run sessions."
        reasons = "; ".join(one.reason for one in self.failed[:8])
        return "%d of %d checks failed: %s." % (len(self.failed), len(self.findings), reasons)

    def to_json(self) -> Json:
        """The document that users get in a file."""
        return {
            "fit": not self.failed,
            "counts": self.counts,
            "findings": [one.to_json() for one in self.findings],
            "overlay": [one.to_json() for one in self.overlay],
        }


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


def names_of_one_engine(identities: Iterable[Tuple[str, str]]) -> List[List[str]]:
    """The agents that are the same engine, of these names with the identity of their engine. One that is not known is like no other.

    >>> names_of_one_engine([("a", "1"), ("b", ""), ("c", "1"), ("d", ""), ("e", "2")])
    [['a', 'c']]
    """
    found: Dict[str, List[str]] = {}
    for name, identity in identities:
        found.setdefault(identity, []).append(name)
    return [names for identity, names in found.items() if identity and len(names) > 1]


def one_engine(names: Sequence[str]) -> Tuple[str, str]:
    """Return what is wrong with agents that are the same engine, and the remedy.

    >>> one_engine(["a", "b"])
    ('a and b are the same engine', 'remove one of them from the inventory')
    >>> one_engine(["a", "b", "c"])
    ('a, b and c are the same engine', 'keep only one of them in the inventory')
    """
    remedy = "remove one of them from" if len(names) == 2 else "keep only one of them in"
    return f"{', '.join(names[:-1])} and {names[-1]} are the same engine", f"{remedy} the inventory"
