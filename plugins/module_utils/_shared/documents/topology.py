# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The members of a session: roles, indexes, hostnames, ranks and local ranks."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from itertools import count
from typing import Dict, Hashable, Iterable, Iterator, List, Sequence, Tuple

from ..constants import ALL_ADDRESSES, ALL_FAMILIES, MAIN, SUB
from .plan import App, Container, Plan, Role, Session

# Parameter servers and evaluators take no part in the collective operations of MPI, torch and Horovod.
NOT_COMPUTING = ("ps", "evaluator")


@dataclass(frozen=True)
class Member:
    """A place in the session: ``rank`` counts from 0 over the whole session, ``index`` from 1 within the role."""

    role: str
    index: int
    rank: int

    @property
    def hostname(self) -> str:
        return "%s%d" % (self.role, self.index)


def members(size: int, roles: Sequence[Role] = ()) -> List[Member]:
    """All members in rank order: main1, sub1, sub2 … (sub9 before sub10); with roles, role by role."""
    counts = [(role.name, role.size) for role in roles] or [(MAIN, 1), (SUB, size - 1)]
    places = [(role, index + 1) for role, most in counts for index in range(most)]
    return [Member(role, index, rank) for rank, (role, index) in enumerate(places)]


def order_of(hostname: str) -> Tuple[bool, str, int]:
    """A key that sorts main1 first, and the containers of a role by their numbers.

    >>> sorted(["sub10", "main1", "sub9"], key=order_of)
    ['main1', 'sub9', 'sub10']
    """
    role = role_of(hostname)
    return role != MAIN, role, int(hostname[len(role) :] or 0)


def replicas(roles: Sequence[str]) -> str:
    """The number of containers of each role, in the order in which the roles appear."""
    return ",".join("%s:%d" % pair for pair in Counter(roles).items())


def local_ranks(places: Iterable[Hashable]) -> List[int]:
    """The number of each rank among the ranks in the same place, such as an agent, from the places in rank order."""
    counts: Dict[Hashable, Iterator[int]] = defaultdict(count)
    return [next(counts[place]) for place in places]


def waves(roles: Sequence[Role]) -> List[Tuple[str, ...]]:
    """The names of roles that start together, first to last. Roles that wait for each other are left out."""
    found: List[Tuple[str, ...]] = []
    started: List[str] = []
    while True:
        wave = tuple(one.name for one in roles if one.name not in started and set(one.after) <= set(started))
        if not wave:
            return found
        found.append(wave)
        started.extend(wave)


def apps_of(session: Session, container: Container) -> Tuple[App, ...]:
    """The apps of a container. main1 has the apps of the session; the first container of another role has the apps of its role."""
    role = session.role(container.role)
    return session.apps if container.rank == 0 else role.apps if role and container.index == 1 else ()


def kept_apps(plan: Plan) -> List[Tuple[Container, App]]:
    """The apps that PID 1 runs, each with its container: those with a command."""
    return [(one, app) for one in plan.containers for app in apps_of(plan.session, one) if app.command]


def without_apps(plan: Plan, names: Sequence[str]) -> Plan:
    """The plan without these apps of roles."""
    kept = (tuple(app for app in role.apps if app.name not in names) for role in plan.session.roles)
    roles = tuple(replace(role, apps=apps) for role, apps in zip(plan.session.roles, kept))
    return replace(plan, session=replace(plan.session, roles=roles))


def address_of_app(app: App, beside: str) -> str:
    """Return the address at which the agent of ``main1`` publishes an app. It publishes SSH at the address ``beside``.

    >>> address_of_app(App("lab", 8888), "::"), address_of_app(App("lab", 8888, public=True), "::")
    ('127.0.0.1', '::')
    """
    if not app.public:
        return "127.0.0.1"
    return ALL_FAMILIES if ":" in beside else ALL_ADDRESSES


def role_of(hostname: str) -> str:
    """The role in a hostname.

    >>> role_of("worker12")
    'worker'
    """
    return hostname.rstrip("0123456789")


def timeout_text(session: Session) -> str:
    """The file with the seconds that the batch command may take; empty without a limit."""
    return "%d\n" % session.command_timeout if session.command_timeout else ""
