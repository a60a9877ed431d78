# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The labels of a session's container, checked before anything reads them: every user of an engine can write labels."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import ipaddress
import json
import re
from typing import Any, Callable, Mapping

from .constants import (
    LABEL_CONTAINER,
    LABEL_FABRIC,
    LABEL_FIRST,
    LABEL_HOST_PORTS,
    LABEL_LAUNCH,
    LABEL_RELAY,
    LABEL_SESSION,
    LABEL_SLOTS,
)
from .names import check_owner, check_session_name

# Limits of what a session can have. A label that exceeds them is not the collection's.
_MOST_TEXT = 1 << 17
_MOST_CONTAINERS = 1000
_MOST_AMOUNT = 1 << 60
_MOST_CPUS = 4096
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# When an image was made of a container, and of whose: empty for other images.
MADE_AT = r"(?:[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:Z|[+-][0-9]{2}:[0-9]{2})?)?"
MADE_BY = r"(?:[A-Za-z0-9][A-Za-z0-9_-]{0,31})?"
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)


def flaw(labels: Mapping[str, str]) -> str:
    """The name of the first label that cannot be read; empty if all can. A label that is absent or empty has no flaw.

    >>> flaw({"cluster.compute.container.rank": "first"})
    'cluster.compute.container.rank'
    """
    return next((name for name, check in _CHECKS.items() if labels.get(name) and not _passes(check, labels[name])), "")


def whole(text: str | None) -> int:
    """A small number from a label; 0 for any other text."""
    return int(text) if text and re.fullmatch(r"[0-9]{1,4}", text, re.ASCII) else 0


def _passes(check: Callable[[str], object], text: str) -> bool:
    try:
        return len(text) <= _MOST_TEXT and bool(check(text))
    except Exception:
        return False


def _is_whole(text: str) -> bool:
    return re.fullmatch(r"[0-9]{1,4}", text, re.ASCII) is not None


def _are_sizes(text: str) -> bool:
    return all(_is_whole(size) for size in text.split(","))


def _are_slots(text: str) -> bool:
    parts = json.loads(text)
    slots = [slot for part in parts for slot in part]
    return (
        all(parts)
        and 0 < len(slots) == len(set(slots)) <= _MOST_CONTAINERS
        and all(isinstance(slot, int) and _is_whole(str(slot)) for slot in slots)
    )


def is_uuid(text: str) -> bool:
    return _UUID.fullmatch(text) is not None


def _is_word(text: str) -> bool:
    return _WORD.fullmatch(text) is not None


def _are_resources(text: str) -> bool:
    resources = json.loads(text)
    amounts = [resources.get(name, 0) for name in ("millicpus", "memory", "shm")]
    gpus = resources.get("gpus") or []
    return (
        all(_is_amount(amount) for amount in amounts)
        and len(gpus) <= _MOST_CONTAINERS
        and all(isinstance(gpu["id"], str) and 0 < float(gpu.get("shares", 1.0)) <= 1024 for gpu in gpus)
        and is_cpuset(resources.get("cpuset", ""))
        and isinstance(resources.get("fabric", False), bool)
    )


def is_cpuset(text: object) -> bool:
    """Whether these are CPUs, such as ``0-2,5``, of a machine that can exist. A long list or range takes the time of every user."""
    parts = text.split(",") if isinstance(text, str) and text else []
    if (
        not isinstance(text, str)
        or len(parts) > _MOST_CPUS
        or not all(re.fullmatch(r"[0-9]{1,4}(-[0-9]{1,4})?", part, re.ASCII) for part in parts)
    ):
        return False
    ends = [[int(end) for end in part.split("-")] for part in parts]
    return sum(end[-1] - end[0] + 1 for end in ends) <= _MOST_CPUS


def _is_amount(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_AMOUNT


def _are_ports(text: str) -> bool:
    ports = json.loads(text)
    return isinstance(ports, list) and all(
        isinstance(port["name"], str)
        and ipaddress.ip_address(port["host_ip"])
        and all(_is_amount(port[name]) and port[name] <= 65535 for name in ("container_port", "host_port"))
        for port in ports
    )


def _is_placement(text: str) -> bool:
    runs = json.loads(text)
    counts = [count for agent, count in runs if isinstance(agent, str) and _is_amount(count)]
    return len(counts) == len(runs) and 0 < sum(counts) <= _MOST_CONTAINERS


_CHECKS: Mapping[str, Callable[[str], object]] = {
    LABEL_SESSION: is_uuid,
    LABEL_SESSION + ".name": check_session_name,
    LABEL_SESSION + ".owner": check_owner,
    LABEL_SESSION + ".group": _is_word,
    LABEL_SESSION + ".mode": _is_word,
    LABEL_SESSION + ".size": _is_whole,
    LABEL_SESSION + ".placement": _is_placement,
    LABEL_SESSION + ".subnet": ipaddress.IPv4Network,
    LABEL_SESSION + ".request": _is_word,
    LABEL_FABRIC: ipaddress.IPv4Network,
    LABEL_FIRST: _are_sizes,
    LABEL_HOST_PORTS: re.compile("[0-9]{1,5},[0-9]{1,5}").fullmatch,
    LABEL_SLOTS: _are_slots,
    LABEL_LAUNCH: _is_word,
    LABEL_CONTAINER: is_uuid,
    LABEL_CONTAINER + ".role": _is_word,
    LABEL_CONTAINER + ".index": _is_whole,
    LABEL_CONTAINER + ".rank": _is_whole,
    LABEL_CONTAINER + ".resources": _are_resources,
    LABEL_CONTAINER + ".ports": _are_ports,
    LABEL_CONTAINER + ".spec": _is_word,
    LABEL_RELAY: _is_word,
}
