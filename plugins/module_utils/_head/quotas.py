# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare what every owner holds with the quotas of the site's policy, and write the lines that show both."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any, Collection, Dict, Iterable, List, Mapping, Sequence, Tuple

from .._shared.codec import Json, subset
from .._shared.documents.plan import Resources
from .._shared.documents.report import AgentReport
from .._shared.planning.policy import Limits, SitePolicy
from .._shared.planning.policy_rules import QUOTAS, Use, shown_limit, use_of
from .._shared.text.table import table
from .session_record import SessionRecord

# The ID of a session, its owner, and what it holds.
SessionUse = Tuple[str, str, Use]
# What the policy limits besides amounts at a time.
_RULES = tuple(one.name for one in fields(Limits) if one.name not in QUOTAS)


def uses(rows: Iterable[SessionRecord], agents: Sequence[AgentReport]) -> List[SessionUse]:
    """Return what each of these sessions holds: by its plan, or by the labels of its containers if it has none."""
    return [(row.id, row.owner, Use.of_resources(_resources(row, agents))) for row in rows]


def by_owner(found: Iterable[SessionUse], besides: Collection[str] = ()) -> Dict[str, Use]:
    """The sums of all sessions of each owner, besides some."""
    use: Dict[str, Use] = {}
    for session, owner, held in found:
        if session not in besides:
            use[owner] = use.get(owner, Use()).plus(held)
    return use


def quota_entries(policy: SitePolicy, use: Mapping[str, Use]) -> List[Json]:
    """Every owner and group that has something or is named in the policy: what it has, and what it may have at a time."""
    owners = sorted({*use, *policy.owners, *(owner for group in policy.groups.values() for owner in group.owners)})
    found = [
        _entry("owner", owner, use.get(owner, Use()), {q: policy.quota(owner, q) for q in QUOTAS}) for owner in owners
    ]
    for name, group in sorted(policy.groups.items()):
        found.append(_entry("group", name, use_of(use, group.owners), subset(group.limits, *QUOTAS)))
    return found


def _entry(kind: str, name: str, use: Use, quota: Mapping[str, Any]) -> Json:
    return {"kind": kind, "name": name, "used": asdict(use), "allowed": quota}


def _resources(row: SessionRecord, agents: Iterable[AgentReport]) -> Iterable[Resources]:
    if row.plan:
        return [container.resources for container in row.plan.containers]
    return [one.resources for agent in agents for one in agent.containers if one.session == row.id]


def policy_lines(policy: SitePolicy, found: Sequence[Json]) -> List[str]:
    """A line for each owner and group, then the rules."""
    if policy == SitePolicy() and not found:
        return ["The site has no policy."]
    rows = [[f"{one['kind']} {one['name']}", *(_of_quota(one, name) for name in QUOTAS)] for one in found]
    return table(("who", *QUOTAS), rows) + _rules(policy)


def _of_quota(entry: Json, name: str) -> str:
    allowed = entry["allowed"][name]
    used = shown_limit(name, entry["used"][name])
    return used if allowed is None else f"{used} of {shown_limit(name, allowed)}"


def _rules(policy: SitePolicy) -> List[str]:
    limits = [("default", policy.default)]
    limits += [(f"owner {name}", one) for name, one in sorted(policy.owners.items())]
    limits += [(f"group {name}", one.limits) for name, one in sorted(policy.groups.items())]
    return [
        f"{whose}: {name} {_value(getattr(one, name))}"
        for whose, one in limits
        for name in _RULES
        if getattr(one, name) is not None
    ]


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
