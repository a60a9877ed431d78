# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The policy of the site, and who has how much of what it permits, as lines for people."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from dataclasses import asdict
from typing import Any, List, Mapping

from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._planning.policy import Limits, SitePolicy
from ansible_collections.cluster.compute.plugins.module_utils._planning.policy_rules import QUOTAS, Use, shown

_RULES = tuple(name for name in asdict(Limits()) if name not in QUOTAS)


def entries(policy: SitePolicy, use: Mapping[str, Use]) -> List[Json]:
    """Every owner and group that has something or is named in the policy: what it has, and what it may have at a time."""
    owners = sorted({*use, *policy.owners, *(owner for group in policy.groups.values() for owner in group.owners)})
    found = [
        _entry("owner", owner, use.get(owner, Use()), {q: policy.quota(owner, q) for q in QUOTAS}) for owner in owners
    ]
    for name, group in sorted(policy.groups.items()):
        total = Use()
        for owner in group.owners:
            total = total.plus(use.get(owner, Use()))
        found.append(_entry("group", name, total, {q: getattr(group.limits, q) for q in QUOTAS}))
    return found


def _entry(kind: str, name: str, use: Use, quota: Mapping[str, Any]) -> Json:
    return {"kind": kind, "name": name, "used": asdict(use), "allowed": dict(quota)}


def lines(policy: SitePolicy, found: List[Json]) -> List[str]:
    """A line for each owner and group, then the rules.

    >>> lines(SitePolicy(), [])
    ['The site has no policy.']
    """
    if policy == SitePolicy() and not found:
        return ["The site has no policy."]
    head = ["who", *QUOTAS]
    rows = [head] + [["%s %s" % (one["kind"], one["name"]), *(_of(one, name) for name in QUOTAS)] for one in found]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    return table + _rules(policy)


def _of(entry: Json, name: str) -> str:
    allowed = entry["allowed"][name]
    used = shown(name, entry["used"][name])
    return used if allowed is None else "%s of %s" % (used, shown(name, allowed))


def _rules(policy: SitePolicy) -> List[str]:
    limits = [("default", policy.default)]
    limits += [("owner %s" % name, one) for name, one in sorted(policy.owners.items())]
    limits += [("group %s" % name, one.limits) for name, one in sorted(policy.groups.items())]
    return [
        "%s: %s %s" % (whose, name, _value(getattr(one, name)))
        for whose, one in limits
        for name in _RULES
        if getattr(one, name) is not None
    ]


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
