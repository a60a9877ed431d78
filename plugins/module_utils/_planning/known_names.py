# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Refuse names that look like variables of this collection and are none, with the nearest name."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import AbstractSet, Iterable, List, Mapping

from .._core.errors import ComputeError, visible

# No other software has variables that begin like these.
OWN_PREFIXES = ("session_", "sessions_")
SHARED_PREFIXES = ("agent_", "check_", "environments", "image_", "policy_", "timer_", "usage_")
PREFIXES = OWN_PREFIXES + SHARED_PREFIXES
# What the inventory says of an agent.
AGENT_VARIABLES = frozenset(
    (
        "agent_docker_host agent_resource_group agent_schedulable agent_cpus agent_memory agent_reserved_cpus agent_reserved_memory "
        "agent_gpus agent_gpu_sharing agent_mps_directory agent_fabric agent_publish"
    ).split()
)
# From how much likeness of 1 on a name is offered, and is a slip of the pen.
_LIKE, _SLIP = 0.6, 0.85
_NEAR_BEST = 0.1
# The likeness of stems: the least, and that of a name whose words another name has, too.
_LEAST, _WORDS = 0.45, 0.7
_MOST_SHOWN = 3


def suspects(names: Iterable[str], known: AbstractSet[str]) -> List[str]:
    """The names that begin like variables of the collection and are not known."""
    return sorted(name for name in names if name.startswith(PREFIXES) and name not in known)


def check_known(given: AbstractSet[str], inventory: Mapping[str, List[str]], known: AbstractSet[str]) -> None:
    """Refuse unknown names: all that the command line gives, and those of the inventory that nothing else can mean.

    ``inventory`` has the hosts that have each name. A shared prefix may belong to other software there, so that only a name
    that resembles a known one is refused.
    """
    messages = []
    for name in suspects({*given, *inventory}, known):
        if name in given or name.startswith(OWN_PREFIXES) or is_slip(name, known):
            nearest = nearest_names(name, known)
            where = "-e" if name in given else _hosts(inventory[name])
            offer = f"did you mean {' or '.join(nearest)}?" if nearest else "no variable has a similar name."
            messages.append(f"{visible(name)[:120]} (from {where}): unknown; {offer}")
    if messages:
        more = "docs/variables.md lists all variables; session_ignored_variables takes names of other software."
        raise ComputeError(" ".join([*messages, more]))


def is_slip(name: str, known: AbstractSet[str]) -> bool:
    """Whether a name is most likely a misspelled one of the same prefix.

    >>> is_slip("agent_user", {"agent_users"}), is_slip("agent_version", {"agent_users", "image_version"})
    (True, False)
    """
    return any(_likeness(name, other) >= _SLIP for other in known if _prefix(other) == _prefix(name))


def nearest_names(name: str, known: AbstractSet[str]) -> List[str]:
    """The known names that resemble a name, the nearest first.

    >>> nearest_names("session_mount", {"session_mounts", "session_name", "agent_mount_points"})
    ['session_mounts']
    """
    scores = {other: score for other in known for score in [_likeness(name, other)] if score >= _LIKE}
    best = max(scores.values(), default=0.0)
    near = [other for other in sorted(scores) if scores[other] >= best - _NEAR_BEST]
    return sorted(near, key=lambda other: -scores[other])[: 1 if best >= _SLIP else _MOST_SHOWN]


def _likeness(name: str, other: str) -> float:
    """From 0 to 1: three quarters are the likeness of the names behind their prefixes."""
    stem, known = _stem(name), _stem(other)
    matcher = SequenceMatcher(None, stem, known)
    has_words = set(stem.split("_")) <= set(known.split("_"))
    if not has_words and matcher.quick_ratio() < _LEAST:
        return 0.0
    ratio = max(matcher.ratio(), _WORDS if has_words else 0.0)
    return 0.75 * ratio + 0.25 * SequenceMatcher(None, _prefix(name), _prefix(other)).ratio()


def _prefix(name: str) -> str:
    return next((prefix for prefix in PREFIXES if name.startswith(prefix)), "")


def _stem(name: str) -> str:
    prefix = _prefix(name)
    return name[len(prefix) :] if prefix.endswith("_") else name


def _hosts(hosts: List[str]) -> str:
    shown = ", ".join(hosts[:_MOST_SHOWN])
    rest = len(hosts) - _MOST_SHOWN
    return f"the inventory, host {shown}" + (" and %d others" % rest if rest > 0 else "")
