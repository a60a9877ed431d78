# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Apply the site's policy to a request: refuse it with the rule, hold it back by a quota for now, or accept it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import reduce
from typing import Any, Callable, Dict, Iterable, Mapping, Sequence, Tuple

from ..codec import subset
from ..constants import HOST, PRIVATE
from ..documents.plan import App, Resources
from ..documents.usage import Quota
from ..errors import InputError
from ..image_reference import split
from ..paths import covers
from ..units import parse_port_range, show_bytes, show_cpus
from .capacity import held_in_all
from .policy import NONE, OWN, PLAIN, SitePolicy
from .request import Request

Check = Callable[[Request, Any], None]
# How an amount is shown, what it is called, and the variable and the field of a request that ask for it.
_SHOWN: Dict[str, Tuple[Callable[[Any], Any], str, str, str]] = {
    "sessions": (str, "sessions", "session_name", "name"),
    "containers": (int, "containers", "session_cluster_size", "size"),
    "cpus": (show_cpus, "CPUs", "session_cpus", "millicpus"),
    "memory": (show_bytes, "memory", "session_memory", "memory"),
    "gpus": ("{:g}".format, "GPUs", "session_gpus", "gpus"),
}
QUOTAS = tuple(_SHOWN)
# Fractions of GPUs are added up.
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Use:
    """The holdings of an owner, or of a group of owners, at a time."""

    sessions: int = 0
    containers: int = 0
    cpus: int = 0
    memory: int = 0
    gpus: float = 0.0

    def plus(self, other: Use) -> Use:
        return Use(*(getattr(self, name) + getattr(other, name) for name in QUOTAS))

    @classmethod
    def of_request(cls, request: Request) -> Use:
        cpus, memory, gpus = (request.total(amount) for amount in ("millicpus", "memory", "gpus"))
        return cls(1, request.size, int(cpus), int(memory), gpus)

    @classmethod
    def of_resources(cls, resources: Iterable[Resources]) -> Use:
        held = list(resources)
        return cls(1, len(held), *held_in_all(held))


def shown_limit(name: str, amount: Any) -> str:
    """An amount of a quota for people.

    >>> shown_limit("memory", 1 << 30), shown_limit("gpus", 0.5)
    ('1g', '0.5')
    """
    return str(_SHOWN[name][0](amount))


def check_policy(policy: SitePolicy, request: Request) -> None:
    """Refuse a request that breaks a rule, or could never keep a quota. Raises InputError with the variable and the rule."""
    _check_rules(policy, request, _RULES)
    if permitted_folders(policy, request):
        _check_apart(request)
    asked = Use.of_request(request)
    for whose, quota, _owners in _quotas(policy, request.owner):
        for name in QUOTAS:
            limit, amount = quota[name], getattr(asked, name)
            if limit is not None and amount > limit + _TOLERANCE:
                rule = "makes %s %s in all, and the policy of this site permits %s %s at a time"
                values = (shown_limit(name, amount), _SHOWN[name][1], whose, shown_limit(name, limit))
                raise InputError(*_asked_for(request, name), rule % values)


def permit_relays(policy: SitePolicy, owner: str, apps: Sequence[App], port_range: str) -> None:
    """Refuse apps whose ports a relay of a running session would publish against a rule. Raises InputError with the rule."""
    request = Request("relays", owner, apps=tuple(apps), port_range=port_range)
    _check_rules(policy, request, ("public_apps", "port_range"))


def _check_rules(policy: SitePolicy, request: Request, names: Iterable[str]) -> None:
    unsaid = _UNSAID if policy.binds(request.owner) else {}
    for name in names:
        for limit in policy.limits_for(request.owner, name) or unsaid.get(name, ()):
            _RULES[name](request, limit)


def permit_commit(policy: SitePolicy, owner: str, image: str) -> None:
    """Refuse an image of a session's container that this owner must not make, or could not launch. Raises InputError."""
    if False in policy.limits_for(owner, "commit"):
        _refuse("commit_image", image, f"must not be made: {owner} may not commit containers")
    for patterns in policy.limits_for(owner, "images"):
        if not _is_permitted(image, patterns):
            _refuse("commit_image", image, f"must match one of: {', '.join(patterns)}")


def check_waiting(policy: SitePolicy, request: Request, waiting: int) -> None:
    """Refuse a session that would wait beside as many of its owner as may wait. Raises InputError."""
    most = min(policy.limits_for(request.owner, "waiting"), default=None)
    if most is not None and waiting >= most:
        rule = "would wait, and the policy of this site permits %s %d waiting sessions at a time; end one with terminate.yml"
        raise InputError("session_name", request.name, rule % (request.owner, most))


def too_long(policy: SitePolicy, owner: str, waited: float) -> str:
    """Why a session that has waited for these seconds waits no longer; empty if it may.

    >>> from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.policy import parse_policy
    >>> too_long(parse_policy({"default": {"patience": 60}}), "alice", 61)
    'it waited longer than the 60 seconds that the policy of this site permits'
    """
    most = min(policy.limits_for(owner, "patience"), default=None)
    if most is None or waited <= most:
        return ""
    return "it waited longer than the %d seconds that the policy of this site permits" % most


def permitted_folders(policy: SitePolicy, request: Request) -> Tuple[str, ...]:
    """The folders of the policy below which the request mounts something: its users can make links in it.

    An owner's own entry may lie in a folder that others may mount: the shortest folder of the whole policy counts.
    """
    if not policy.limits_for(request.owner, "mounts"):
        return ()
    limits = [policy.default, *policy.owners.values(), *(group.limits for group in policy.groups.values())]
    known = sorted({folder.rstrip("/") or "/" for one in limits for folder in one.mounts or ()}, key=len)
    found = set()
    for source in (mount.source.rstrip("/") for mount in request.mounts if mount.type == "bind"):
        folder = next((one for one in known if covers(one, source)), source)
        found.update([folder] if folder != source else [])
    return tuple(sorted(found))


def in_permitted_group(policy: SitePolicy, request: Request) -> Request:
    """The request, in the only resource group that the policy permits its owner instead of the default group."""
    limits = policy.limits_for(request.owner, "resource_groups")
    permitted = set(limits[0]).intersection(*limits[1:]) if limits else set()
    usual = Request(request.name, request.owner).group
    if len(permitted) != 1 or usual not in {request.group, *(role.group for role in request.roles)}:
        return request
    only = permitted.pop()
    roles = tuple(replace(role, group=only) if role.group == usual else role for role in request.roles)
    return replace(request, group=only if request.group == usual else request.group, roles=roles)


def over_quota(policy: SitePolicy, use: Mapping[str, Use], request: Request) -> str:
    """Why a request must wait for the end of other sessions, by the use of every owner; empty if it need not.

    A request that is larger than a quota waits for no end: C(check_policy) refuses it when its turn comes.
    """
    asked = Use.of_request(request)
    for whose, quota, owners in _quotas(policy, request.owner):
        has = use_of(use, owners)
        for name in QUOTAS:
            limit = quota[name]
            if limit is None or getattr(asked, name) > limit + _TOLERANCE:
                continue
            if getattr(has, name) + getattr(asked, name) > limit + _TOLERANCE:
                values = (whose, shown_limit(name, getattr(has, name)), shown_limit(name, limit), _SHOWN[name][1])
                return "{} has {} of the {} {} that the policy of this site permits, and it needs {}".format(
                    *values, shown_limit(name, getattr(asked, name)))  # fmt: skip
    return ""


def allowed(policy: SitePolicy, owner: str) -> Quota:
    """Return what an owner alone may have at a time, as lists show it.

    >>> from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.policy import parse_policy
    >>> allowed(parse_policy({"default": {"cpus": 2, "gpus": 1}}), "alice").to_json()
    {'millicpus': 2000, 'gpus': 1.0}
    """
    return Quota(*(policy.quota(owner, name) for name in QUOTAS))


def quota_left(policy: SitePolicy, use: Mapping[str, Use], owner: str) -> Quota:
    """Return what the quotas leave to an owner, by the use of every owner."""
    left: Dict[str, Any] = dict.fromkeys(QUOTAS)
    for _whose, quota, owners in _quotas(policy, owner):
        has = use_of(use, owners)
        for name in QUOTAS:
            if quota[name] is not None:
                rest = max(0, quota[name] - getattr(has, name))
                left[name] = rest if left[name] is None else min(rest, left[name])
    return Quota(*left.values())


def _quotas(policy: SitePolicy, owner: str) -> Sequence[Tuple[str, Mapping[str, Any], Sequence[str]]]:
    """The quotas of an owner and of each group of the owner. Each names the owners whose use counts against it."""
    own = {name: policy.quota(owner, name) for name in QUOTAS}
    groups = policy.groups_of(owner).items()
    return [(owner, own, (owner,))] + [
        (f"group {name}", subset(one.limits, *QUOTAS), one.owners) for name, one in groups
    ]


def use_of(use: Mapping[str, Use], owners: Iterable[str]) -> Use:
    """Return what these owners have together."""
    return reduce(Use.plus, (use.get(owner, Use()) for owner in owners), Use())


def _asked_for(request: Request, name: str) -> Tuple[str, object]:
    """The variable that asks for an amount, and its value."""
    if request.roles and name != "sessions":
        return "session_roles", ", ".join("%s:%d" % (role.name, role.size) for role in request.roles)
    show, _word, variable, field = _SHOWN[name]
    return variable, show(getattr(request, field))


def _refuse(variable: str, value: object, rule: str) -> None:
    raise InputError("session_" + variable, value, rule + " (policy of this site)")


def _rule(
    variable: str, values: Callable[[Request], Iterable[Any]], is_kept: Callable[[Any, Any], bool], rule: str
) -> Check:
    """The rule of values of a request. ``is_kept`` gets each with what the policy permits, which ``rule`` shows in place of ``{}``."""

    def check(request: Request, permitted: Any) -> None:
        for value in values(request):
            if not is_kept(value, permitted):
                shown = (", ".join(permitted) or "there is none") if isinstance(permitted, tuple) else permitted
                _refuse(variable, value, f"must {rule.format(shown)}")

    return check


def _of_field(name: str, is_kept: Callable[[Any, Any], bool], rule: str) -> Check:
    return _rule(name, lambda request: [getattr(request, name)], is_kept, rule)


def _is_permitted(image: str, patterns: Iterable[str]) -> bool:
    return any(_matches(image, pattern) for pattern in patterns)


def _matches(image: str, pattern: str) -> bool:
    """Return whether a pattern permits an image. Repository and tag are compared apart: C(ubuntu:*) is no registry with a port.

    >>> _matches("ubuntu:24.04", "ubuntu:*"), _matches("ubuntu:5000/image:1", "ubuntu:*")
    (True, False)
    """
    wanted, colon, tag = pattern.rpartition(":")
    if not colon or "/" in tag:
        wanted, tag = pattern, "*"
    repository, version = split(image)
    return fnmatchcase(repository, wanted) and fnmatchcase(version, tag)


def _is_within(source: str, folders: Iterable[str]) -> bool:
    parts = source.rstrip("/").split("/")
    plain = "/".join(parts)
    return not {"", ".", ".."} & set(parts[1:]) and any(
        plain == folder.rstrip("/") or (folder.endswith("/") and plain.startswith(folder)) for folder in folders
    )


def _check_apart(request: Request) -> None:
    """A mount within a data folder lands where a link of its users leads."""
    targets = sorted(mount.target for mount in request.mounts)
    for outer in targets:
        for inner in targets:
            if inner != outer and covers(outer, inner):
                _refuse("mounts", inner, f"must not lie in {outer}, the target of another mount")


def _check_volumes(request: Request, permitted: str) -> None:
    for mount in request.mounts:
        # The engine makes it itself: the options of a volume can name any folder of the agent.
        is_plain = mount.type == "volume" and not mount.options
        if mount.type != "bind" and (permitted == NONE or (permitted in (PLAIN, OWN) and not is_plain)):
            rule = "must be no volume" if permitted == NONE else "must be a volume without options"
            _refuse("mounts", mount.source, rule)


def _check_ports(request: Request, permitted: str) -> None:
    (first, last), (lowest, highest) = parse_port_range(request.port_range), parse_port_range(permitted)
    if first < lowest or last > highest:
        _refuse("port_range", request.port_range, f"must be within {permitted}")
    for app in request.apps:
        port = app.preferred_port or (app.port if request.network == HOST else 0)
        if port and not lowest <= port <= highest:
            _refuse("apps", port, f"must be a preferred port within {permitted}")


def _check_logs(request: Request, most: int) -> None:
    if request.log_size * request.log_files > most:
        rule = f"must, times session_log_files, be at most {show_bytes(most)}"
        _refuse("log_size", show_bytes(request.log_size), rule)


def _check_disk(request: Request, most: int) -> None:
    if not 0 < request.disk <= most:
        _refuse("disk", show_bytes(request.disk), f"must be set, to at most {show_bytes(most)}")


# What binds an owner who has limits, without being named: ports below 1024 belong to services of the agents, as does their network.
# More than the default of priority and processes would be at the expense of other owners.
_UNSAID: Mapping[str, Sequence[Any]] = {
    "port_range": ["1024-65535"],
    "host_network": [False],
    # A program can send frames to other agents through it, past the rules that keep containers out of overlays.
    "fabric": [False],
    "priority": [10],
    "pids": [32768],
}
_RULES: Mapping[str, Check] = {
    "resource_groups": _rule(
        "resource_group",
        lambda asked: [part.group for part in asked.parts],
        lambda one, some: one in some,
        "be one of: {}",
    ),
    "images": _rule("image", lambda asked: [part.image for part in asked.parts], _is_permitted, "match one of: {}"),
    "mounts": _rule(
        "mounts",
        lambda asked: [mount.source for mount in asked.mounts if mount.type == "bind"],
        _is_within,
        "be a permitted directory: {}",
    ),
    "volumes": _check_volumes,
    "public_apps": _rule(
        "apps", lambda asked: [app.name for app in asked.apps if app.public], lambda _name, may: may, "not be public"
    ),
    "port_range": _check_ports,
    **{
        name: _of_field(name, lambda seconds, longest: 0 < seconds <= longest, "be from 1 to {} seconds")
        for name in ("lifetime", "idle_timeout")
    },
    **{name: _of_field(name, lambda one, most: one <= most, "be at most {}") for name in ("priority", "pids", "grace")},
    "logs": _check_logs,
    "disk": _check_disk,
    **{name: _of_field(name, lambda is_set, may: may or not is_set, "be false") for name in ("rdma", "fabric")},
    "host_network": _of_field("network", lambda network, may: may or network != HOST, f"be {PRIVATE}"),
}
