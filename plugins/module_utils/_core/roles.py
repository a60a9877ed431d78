# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The roles of a session whose containers are not all alike."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Iterable, List, Mapping, Sequence, Tuple

from .documents import Document

# The last character is a letter: a hostname is the name of a role and a number.
ROLE_NAME = "[a-z](?:[a-z0-9-]{0,14}[a-z])?"
# Parameter servers and evaluators take no part in the collective operations of MPI, torch and Horovod.
NOT_COMPUTING = ("ps", "evaluator")
_READY = re.compile(r"([0-9]{1,5})(/[A-Za-z0-9._~/?=&%+,@-]{0,500})?")


@dataclass(frozen=True)
class Role(Document):
    """A role with all that its containers have; what the user did not give is the session's.

    ``environment`` has only the role's own variables. ``ready`` is a port, a port and a path, or a command. This role starts
    when the roles in ``after`` are ready.
    """

    name: str = ""
    size: int = 1
    image: str = ""
    millicpus: int = 0
    memory: int = 0
    shm: int = 0
    gpus: float = 0.0
    pinned: bool = False
    group: str = ""
    per_agent: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    ready: str = ""
    after: Tuple[str, ...] = ()
    compute: bool = True


def of(roles: Iterable[Role], name: str) -> Role | None:
    """The role of this name; None in a session without roles."""
    return next((role for role in roles if role.name == name), None)


def waves(roles: Sequence[Role]) -> List[Tuple[str, ...]]:
    """The names of roles that start together, first to last. Roles that wait for each other are left out.

    >>> waves([Role("main", after=("ps",)), Role("ps"), Role("worker", after=("ps",))])
    [('ps',), ('main', 'worker')]
    """
    found: List[Tuple[str, ...]] = []
    started: List[str] = []
    while True:
        wave = tuple(one.name for one in roles if one.name not in started and set(one.after) <= set(started))
        if not wave:
            return found
        found.append(wave)
        started.extend(wave)


def role_of(hostname: str) -> str:
    """The role in a hostname.

    >>> role_of("worker12")
    'worker'
    """
    return hostname.rstrip("0123456789")


def is_role_name(text: str) -> bool:
    return re.fullmatch(ROLE_NAME, text, re.ASCII) is not None


def ready_port(text: str) -> Tuple[int, str]:
    """The port and the path that a text names; port 0 for a command.

    >>> ready_port("8080/health"), ready_port("8080"), ready_port("true")
    ((8080, '/health'), (8080, ''), (0, ''))
    """
    found = _READY.fullmatch(text)
    return (int(found.group(1)), found.group(2) or "") if found else (0, "")
