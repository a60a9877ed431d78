# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The policy of a site: what an owner may ask for, and how much at a time. Written by provisioning, read by every decision."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Dict, List, Mapping, Tuple

from ..constants import LONGEST_GRACE
from ..errors import InputError
from ..names import check_group, check_owner
from ..units import bytes_from, parse_cpus
from ..value_rules import check_boolean, check_list, check_texts, one_of, within
from .rules import check_port_range, seconds_up_to

VARIABLE = "agent_policy"
_MOST = 2**31 - 1
_LONGEST = 512
_YEAR = 365 * 86400
_MONTH = 30 * 86400
_number = seconds_up_to(_MOST)
ANY, PLAIN, OWN, NONE = "any", "plain", "own", "none"
STRICT, BACKFILL = "strict", "backfill"


def _mapping(variable: str, data: object) -> Mapping[str, Any]:
    if data is not None and not isinstance(data, Mapping):
        raise InputError(variable, data, "must be a dictionary")
    return data or {}


def _positive(variable: str, value: object) -> float:
    number: float = _number(variable, value)
    # A much smaller share of a sum would be 0.
    if number < 1e-6:
        raise InputError(variable, value, "must be at least 0.000001")
    return number


def _words(variable: str, value: object) -> Tuple[str, ...]:
    """Texts that messages show."""
    words = check_texts(variable, value)
    for word in words:
        if not word.isprintable() or len(word) > _LONGEST:
            raise InputError(variable, word, "must be one line of at most %d characters" % _LONGEST)
    return words


def _folders(variable: str, value: object) -> Tuple[str, ...]:
    folders = _words(variable, value)
    for folder in folders:
        if not folder.startswith("/") or {".", ".."} & set(folder.split("/")) or "//" in folder:
            raise InputError(variable, folder, "must be an absolute path without '.' and '..'")
    return folders


def _resource_groups(variable: str, value: object) -> Tuple[str, ...]:
    return tuple(check_group(variable, name) for name in check_list(variable, value))


def _shares(variable: str, value: object) -> Dict[str, float]:
    return {
        check_owner("session_owner", name): _positive(f"{variable}.{name}", part)
        for name, part in _mapping(variable, value).items()
    }


def _limit(rule: Any, default: Any = None) -> Any:
    """A field with the rule of its entry in the policy."""
    return field(default=default, metadata={"rule": rule})


@dataclass(frozen=True)
class Limits:
    """The limits of one owner, or of all owners of a group together. None means no limit.

    The first five are amounts at a time; ``pids``, ``logs`` and ``disk`` are amounts of each container. ``mounts`` are folders of
    the agents; an entry that ends with a slash permits what is below it, too. ``waiting`` and ``patience`` bind the sessions of
    each owner that wait.
    """

    sessions: int | None = _limit(within(0, _MOST))
    containers: int | None = _limit(within(0, _MOST))
    cpus: int | None = _limit(lambda variable, value: parse_cpus(value, variable))
    memory: int | None = _limit(bytes_from(0))
    gpus: float | None = _limit(_number)
    resource_groups: Tuple[str, ...] | None = _limit(_resource_groups)
    images: Tuple[str, ...] | None = _limit(_words)
    mounts: Tuple[str, ...] | None = _limit(_folders)
    volumes: str | None = _limit(one_of(ANY, PLAIN, OWN, NONE))
    public_apps: bool | None = _limit(check_boolean)
    port_range: str | None = _limit(check_port_range)
    lifetime: int | None = _limit(within(1, _YEAR))
    idle_timeout: int | None = _limit(within(1, _MONTH))
    priority: int | None = _limit(within(0, 100))
    pids: int | None = _limit(within(64, _MOST))
    grace: int | None = _limit(within(0, LONGEST_GRACE))
    logs: int | None = _limit(bytes_from(0))
    disk: int | None = _limit(bytes_from(0))
    rdma: bool | None = _limit(check_boolean)
    fabric: bool | None = _limit(check_boolean)
    host_network: bool | None = _limit(check_boolean)
    commit: bool | None = _limit(check_boolean)
    waiting: int | None = _limit(within(0, _MOST))
    patience: int | None = _limit(within(1, _YEAR))


@dataclass(frozen=True)
class OwnerGroup:
    """Owners whose use is added up, and their limits."""

    owners: Tuple[str, ...]
    limits: Limits


@dataclass(frozen=True)
class QueueRules:
    """The site's rules for its queue. A policy that names nothing here leaves it to the variables of the launch."""

    policy: str = _limit(one_of("backfill", "strict"), "")
    age_bound: float | None = _limit(_number)
    priority_weight: float = _limit(_number, 1000.0)
    age_weight: float = _limit(_number, 1.0)
    age_limit: float = _limit(_positive, 7 * 86400.0)
    share_weight: float = _limit(_number, 0.0)
    size_weight: float = _limit(_number, 0.0)
    half_life: float = _limit(_positive, 7 * 86400.0)
    refuse_impossible: bool = _limit(check_boolean, False)
    shares: Mapping[str, float] = field(default_factory=dict, metadata={"rule": _shares})


@dataclass(frozen=True)
class Policy:
    """The rules of overtaking. After ``age_bound`` seconds, one that does not fit holds back those behind it."""

    name: str = BACKFILL
    age_bound: float = 3600.0
    rules: QueueRules = field(default_factory=QueueRules)


@dataclass(frozen=True)
class SitePolicy:
    """Everything that the site has decided."""

    default: Limits = field(default_factory=Limits)
    owners: Mapping[str, Limits] = field(default_factory=dict)
    groups: Mapping[str, OwnerGroup] = field(default_factory=dict)
    queue: QueueRules = field(default_factory=QueueRules)

    def groups_of(self, owner: str) -> Dict[str, OwnerGroup]:
        return {name: group for name, group in self.groups.items() if owner in group.owners}

    def limits_for(self, owner: str, name: str) -> List[Any]:
        """Every value of a limit that binds the requests of an owner: the owner's own, else those of groups, else the default."""
        own = getattr(self.owners.get(owner, Limits()), name)
        if own is not None:
            return [own]
        of_groups = [getattr(group.limits, name) for group in self.groups_of(owner).values()]
        found = [value for value in of_groups if value is not None]
        default = getattr(self.default, name)
        return found or ([] if default is None else [default])

    def binds(self, owner: str) -> bool:
        """Return whether the site limits this owner in anything."""
        limits = [
            self.default,
            self.owners.get(owner, Limits()),
            *(one.limits for one in self.groups_of(owner).values()),
        ]
        return any(one != Limits() for one in limits)

    def quota(self, owner: str, name: str) -> Any:
        """The amount that the owner alone may have at a time: the owner's own or the default; None without a limit."""
        own = getattr(self.owners.get(owner, Limits()), name)
        return getattr(self.default, name) if own is None else own


def parse_policy(data: object) -> SitePolicy:
    """The policy from the variable of the role. Raises InputError for the first entry that is wrong."""
    entry = _entry(VARIABLE, data or {}, ("default", "owners", "groups", "queue"))
    owners = _mapping(VARIABLE + ".owners", entry.get("owners"))
    groups = _mapping(VARIABLE + ".groups", entry.get("groups"))
    return SitePolicy(
        default=_ruled(Limits, VARIABLE + ".default", entry.get("default")),
        owners={
            check_owner("session_owner", name): _ruled(Limits, f"{VARIABLE}.owners.{name}", value)
            for name, value in owners.items()
        },
        groups={str(name): _group(f"{VARIABLE}.groups.{name}", value) for name, value in groups.items()},
        queue=_ruled(QueueRules, VARIABLE + ".queue", entry.get("queue")),
    )


def _group(variable: str, data: object) -> OwnerGroup:
    entry = dict(_mapping(variable, data))
    owners = tuple(
        check_owner("session_owner", name) for name in check_list(variable + ".owners", entry.pop("owners", ()))
    )
    return OwnerGroup(owners, _ruled(Limits, variable, entry))


def _ruled(kind: Any, variable: str, data: object) -> Any:
    """A dataclass from a dictionary whose entries keep the rules of its fields. An entry without a value has its default."""
    rules = {one.name: one.metadata["rule"] for one in fields(kind)}
    entry = _entry(variable, data or {}, tuple(rules))
    given = {name: value for name, value in entry.items() if value is not None}
    return kind(**{name: rules[name](f"{variable}.{name}", value) for name, value in given.items()})


def _entry(variable: str, data: object, known: Tuple[str, ...]) -> Mapping[str, Any]:
    entry = _mapping(variable, data)
    unknown = sorted(set(map(str, entry)) - set(known))
    if unknown:
        raise InputError(variable, unknown[0], f"must be one of {', '.join(known)}")
    return entry
