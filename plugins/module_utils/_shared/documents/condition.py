# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare a running container with its plan: its place on the network, its published ports, and its limits.

Other users of its engine can change all of this while it runs, and its programs go on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, List, Mapping, Set, Tuple

from ..exits import CHANGED, DETACHED, UNPUBLISHED
from ..names import container_names
from ..units import show_bytes, show_cpus
from .plan import Container, Plan
from .report import Enforced, ObservedContainer

# The kernel rounds memory to pages, the largest of which have 64 KiB.
_PAGE = 1 << 16
# A container by the name of its agent and its ID.
Place = Tuple[str, str]


def as_planned(plan: Plan, observed: Mapping[Place, ObservedContainer]) -> Dict[Place, ObservedContainer]:
    """The observed containers. A container that differs from its plan gets a state that says how."""
    places = [((one.agent, one.id), one) for one in plan.containers]
    own = {place: compared(plan, one, observed[place]) for place, one in places if place in observed}
    return {**observed, **own}


def compared(plan: Plan, container: Container, seen: ObservedContainer) -> ObservedContainer:
    """The observed container; if it runs and differs from its plan, with a state and a C(fault) that say so."""
    state, fault = difference(plan, container, seen)
    return replace(seen, state=state, fault=fault) if fault else seen


def difference(plan: Plan, container: Container, seen: ObservedContainer) -> Tuple[str, str]:
    """The state of a container that runs and differs from its plan, and what differs; empty texts for none.

    What a report does not have is taken to be right.
    """
    if seen.state != "running":
        return "", ""
    if not plan.network.is_of_host:
        place, fault = _place(plan, container, seen)
        if fault:
            return place, fault
    limits = limit_faults(plan, container, seen.enforced) if seen.enforced else []
    name, session = seen.engine_name, plan.session
    if name and name not in container_names(session.owner, session.name, container.hostname, session.id):
        limits = [f"the name {name} in place of {container.name}", *limits]
    return (CHANGED, f"has {', '.join(limits)}") if limits else ("", "")


def _place(plan: Plan, container: Container, seen: ObservedContainer) -> Tuple[str, str]:
    if seen.published is None:
        return "", ""
    if seen.network != plan.network.name:
        return DETACHED, "is not on the network of the session"
    if seen.address != container.address:
        return DETACHED, f"has the address {seen.address or 'none'} in place of {container.address}"
    lost = {port.host_port for port in container.ports}.difference(seen.published)
    return (UNPUBLISHED, f"does not publish port {min(lost)}") if lost else ("", "")


def limit_faults(plan: Plan, container: Container, enforced: Enforced) -> List[str]:
    """The limits that differ, each beside the planned one. A container with CPUs of its own has no quota."""
    planned = container.resources
    cpus, memory, pids, cpuset = enforced.millicpus, enforced.memory, enforced.pids, enforced.cpuset
    found = []
    if cpus is not None and not planned.cpuset and abs(cpus - planned.millicpus) > 1:
        found.append(f"{_shown(cpus, show_cpus(cpus))} CPUs in place of {show_cpus(planned.millicpus)}")
    if memory is not None and abs(memory - planned.memory) >= _PAGE:
        found.append(f"{_shown(memory, show_bytes(memory))} memory in place of {show_bytes(planned.memory)}")
    if pids is not None and pids != plan.session.pids:
        found.append(f"{_shown(pids, str(pids))} processes in place of {plan.session.pids}")
    if cpuset is not None and numbers(cpuset) != numbers(planned.cpuset):
        found.append(f"the CPUs {cpuset or 'of all'} in place of {planned.cpuset or 'all'}")
    return found


def _shown(amount: int, text: str) -> str:
    return text if amount else "unlimited"


def numbers(cpuset: str) -> Set[int]:
    """
    >>> sorted(numbers("0-2,5")), numbers("")
    ([0, 1, 2, 5], set())
    """
    ends = [part.partition("-") for part in cpuset.split(",") if part]
    return {number for first, _dash, last in ends for number in range(int(first), int(last or first) + 1)}
