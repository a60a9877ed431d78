# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A set of containers that something else has started, as the plan from which their keys and files are made."""

from __future__ import annotations

import ipaddress
import re
import uuid
from dataclasses import dataclass
from typing import Any, Mapping, Sequence, Tuple

from ..._shared.codec import Json
from ..._shared.documents.plan import Container, Network, Plan, Session, User
from ..._shared.documents.schema import LOGIN
from ..._shared.documents.step_documents import RunningContainer
from ..._shared.errors import ConflictError, InputError
from ..._shared.names import check_session_name

# The name of a host in lower case, as ssh compares names, which is a word of hostfiles, too.
_HOSTNAME = re.compile(r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")
_HOSTNAME_RULE = (
    "must have 1 to 63 small letters, digits or '-', and start with a letter; set the hostname of the container"
)
_HOME = re.compile(r"(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)+")
_MOST_ID = 2**31 - 1
# The ID of a set follows from its name, so that its keys are made for it alone.
_NAMESPACE = uuid.UUID("8d4a2c51-61fb-4a0c-9a55-0f6d0c2b7f13")


@dataclass(frozen=True)
class SetMember:
    """A container as the user names it: its name in the engine, its host if that is named, and its name in the set."""

    name: str
    host: str
    hostname: str


def members_of(entries: Sequence[Json]) -> Tuple[SetMember, ...]:
    """The checked members of a set. Raises InputError."""
    made = tuple(SetMember(one["name"], one.get("host") or "", one.get("hostname") or one["name"]) for one in entries)
    hostnames = [member.hostname for member in made]
    for hostname in hostnames:
        if not _HOSTNAME.fullmatch(hostname) or hostname == "localhost":
            raise InputError("containers", hostname, _HOSTNAME_RULE)
        if hostnames.count(hostname) > 1:
            raise InputError("containers", hostname, "is the hostname of two containers; set another hostname for one")
    return made


def user_of(values: Mapping[str, Any]) -> User:
    """The checked account of a set. Raises InputError."""
    given = {name: value for name, value in values.items() if value is not None}
    user = User(**{"home": f"/home/{given.get('name', 'work')}", **given})
    if user.name == "root" or not LOGIN(user.name):
        raise InputError("user", user.name, "must be the name of an account other than root")
    for number in (user.uid, user.gid):
        if not 1 <= number <= _MOST_ID:
            raise InputError("user", number, "must have IDs from 1 to %d" % _MOST_ID)
    if not _HOME.fullmatch(user.home):
        raise InputError(
            "user", user.home, "must have a home that is an absolute path of letters, digits, '.', '_' and '-'"
        )
    return user


def plan_of(
    name: str, members: Sequence[SetMember], found: Mapping[str, Sequence[RunningContainer]], user: User
) -> Plan:
    """The plan of a set, from what each host has found by the names of its members. Raises InputError, ConflictError."""
    check_session_name("session_name", name)
    placed = [_placed(member, found) for member in members]
    _check_network(members, placed)
    _host, example = placed[0]
    subnet = ipaddress.IPv4Network(f"{example.address}/{example.prefix}", strict=False)
    return Plan(
        Session(
            id=str(uuid.uuid5(_NAMESPACE, name)),
            name=name,
            owner="",
            group="",
            launch="",
            mode="",
            size=len(members),
            image="",
            request="",
            user=user,
        ),
        Network(name="", driver="", subnet=str(subnet), gateway="", ip_range=""),
        tuple(_container(rank, member, *place) for rank, (member, place) in enumerate(zip(members, placed))),
    )


def _container(rank: int, member: SetMember, host: str, seen: RunningContainer) -> Container:
    return Container(
        id=seen.id,
        name=seen.name,
        hostname=member.hostname,
        role=member.hostname,
        index=1,
        rank=rank,
        local_rank=0,
        agent=host,
        address=seen.address,
        resources=seen.resources,
    )


def _placed(member: SetMember, found: Mapping[str, Sequence[RunningContainer]]) -> Tuple[str, RunningContainer]:
    places = [
        (host, seen)
        for host, listed in found.items()
        for seen in listed
        if member.host in ("", host) and seen.name == member.name
    ]
    if not places:
        where = member.host or "a host of the play"
        raise InputError("containers", member.name, f"must be a running container of {where}; start it first")
    if len(places) > 1:
        hosts = " and ".join(host for host, _seen in places)
        raise InputError(
            "containers", member.name, f"must be one container, and {hosts} have one of that name; set its host"
        )
    return places[0]


def _check_network(members: Sequence[SetMember], placed: Sequence[Tuple[str, RunningContainer]]) -> None:
    """Refuse containers of different networks: they could not reach each other by the addresses that they have there."""
    first, (first_host, example) = members[0], placed[0]
    for member, (host, seen) in zip(members, placed):
        if seen.network != example.network:
            raise ConflictError(
                f"{member.name} on {host} is in another network than {first.name} on {first_host}; connect all containers to one "
                "network, an overlay if they are on several hosts, and name it with the option network.", host)  # fmt: skip


def with_hosts(text: str, plan: Plan) -> str:
    """The text of ``/etc/hosts`` with the block of the set at its top, where it is found first; other lines are kept."""
    begin, end = f"# {plan.session.name}: begin (cluster.compute)", f"# {plan.session.name}: end"
    lines = text.splitlines()
    if begin in lines and end in lines[lines.index(begin) :]:
        first = lines.index(begin)
        del lines[first : lines.index(end, first) + 1]
    own = [f"{address} {hostname}" for hostname, address in plan.addresses]
    return "".join(line + "\n" for line in [begin, *own, end, *lines])
