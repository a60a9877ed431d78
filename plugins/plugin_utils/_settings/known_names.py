# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Refuse names that are no variables of this collection, with the nearest name."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import AbstractSet, Any, Iterable, List, Mapping, Set

from ...module_utils._shared.errors import ComputeError, escape_control

# No other software has variables that begin like these.
OWN_PREFIXES = ("session_", "sessions_")
SHARED_PREFIXES = ("agent_", "check_", "environments", "image_", "policy_", "timer_", "usage_")
PREFIXES = OWN_PREFIXES + SHARED_PREFIXES
# Variables of Ansible and of automation controllers, which add theirs to each job.
_OF_ANSIBLE = ("ansible_", "awx_", "tower_")
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
_TEMPLATE = re.compile(r"\{[{%](.*?)[}%]\}", re.DOTALL)
_WORD = re.compile(r"(?<![.\w])[A-Za-z_]\w*")


def suspects(given: Iterable[str], inventory: Iterable[str], known: AbstractSet[str]) -> List[str]:
    """The names that are not known: all of the command line, and those of the inventory that begin like our variables."""
    typed = {name for name in given if not name.startswith(_OF_ANSIBLE)}
    return sorted({*typed, *(name for name in inventory if name.startswith(PREFIXES))}.difference(known))


def in_templates(value: Any) -> Set[str]:
    """The words of all templates in a value, without attributes.

    >>> sorted(in_templates({"session_name": "train-{{ run.name }}", "session_apps": ["lab"]}))
    ['run']
    """
    if isinstance(value, str):
        return {word for template in _TEMPLATE.findall(value) for word in _WORD.findall(template)}
    parts: Iterable[Any] = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return {word for part in parts for word in in_templates(part)}


def of_collection(given: Mapping[str, str], known: AbstractSet[str]) -> Mapping[str, str]:
    """The names of a command line that can only be meant for the collection, where other plays have variables of their own."""
    return {name: file for name, file in given.items() if name.startswith(PREFIXES) or is_slip(name, known)}


def check_known(given: Mapping[str, str], inventory: Mapping[str, List[str]], known: AbstractSet[str]) -> None:
    """Refuse unknown names: all that the command line gives, and those of the inventory that nothing else can mean.

    ``given`` has the file of each name, or an empty text, and ``inventory`` the hosts. A shared prefix may belong to other software
    in an inventory, so that only a name that resembles a known one is refused.
    """
    messages = []
    for name in suspects(given, inventory, known):
        if name in given or name.startswith(OWN_PREFIXES) or is_slip(name, known):
            nearest = nearest_names(name, known)
            where = given[name] or "-e" if name in given else _hosts(inventory[name])
            offer = f"did you mean {' or '.join(nearest)}?" if nearest else "no variable has a similar name."
            messages.append(f"{escape_control(name)[:120]} (from {escape_control(where)}): unknown; {offer}")
    if messages:
        more = "docs/variables.md lists all variables; session_ignored_variables takes names of other software."
        raise ComputeError(" ".join([*messages, more]))


def is_slip(name: str, known: AbstractSet[str]) -> bool:
    """Return whether a name is most likely a misspelled one of the same prefix, or one whose prefix is misspelled.

    >>> is_slip("agent_user", {"agent_users"}), is_slip("agent_version", {"agent_users", "image_version"})
    (True, False)
    >>> is_slip("sesion_name", {"session_name"}), is_slip("name", {"session_name"})
    (True, False)
    """
    prefix = _prefix(name)
    if not prefix and any(own in name for own in OWN_PREFIXES):
        return False
    return any(_likeness(name, other) >= _SLIP for other in known if not prefix or _prefix(other) == prefix)


def nearest_names(name: str, known: AbstractSet[str]) -> List[str]:
    """The known names that resemble a name, the nearest first.

    >>> nearest_names("session_mount", {"session_mounts", "session_name", "agent_mount_points"})
    ['session_mounts']
    >>> nearest_names("cluster_size", {"session_cluster_size", "session_log_size"})
    ['session_cluster_size']
    """
    if not _prefix(name) and (natural := [prefix + name for prefix in PREFIXES if prefix + name in known]):
        return natural[:1]
    scores = {other: score for other in known for score in [_likeness(name, other)] if score >= _LIKE}
    best = max(scores.values(), default=0.0)
    near = [other for other in sorted(scores) if scores[other] >= best - _NEAR_BEST]
    return sorted(near, key=lambda other: -scores[other])[: 1 if best >= _SLIP else _MOST_SHOWN]


def _likeness(name: str, other: str) -> float:
    """From 0 to 1: three quarters are the likeness of the names behind their prefixes. Names without a prefix are compared whole."""
    if not _prefix(name):
        whole = SequenceMatcher(None, name, other)
        return max(whole.ratio() if whole.quick_ratio() >= _SLIP else 0.0, _of_parts(name, other))
    return _of_parts(name, other)


def _of_parts(name: str, other: str) -> float:
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
