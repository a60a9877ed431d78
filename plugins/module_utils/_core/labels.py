# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The labels of a session's container, checked before anything reads them: every user of an engine can write labels."""

from __future__ import annotations

import ipaddress
import json
from functools import partial
from typing import Callable, Mapping

from .constants import (
    LABEL_BEGAN,
    LABEL_CONTAINER,
    LABEL_FABRIC,
    LABEL_FIRST,
    LABEL_FOLDERS,
    LABEL_HOST_PORTS,
    LABEL_LAUNCH,
    LABEL_RELAY,
    LABEL_SESSION,
    LABEL_SLOTS,
)
from .forms import (
    AMOUNT,
    MOST,
    PORT,
    RESOURCES,
    UUID,
    WORD,
    Rule,
    Whole,
    a_line,
    a_text,
    an_address,
    fault,
    in_order,
    matching,
    whole,
)
from .names import check_owner, check_session_name

# A label that is longer is not the collection's.
_MOST_TEXT = 1 << 17
_NUMBER = matching("[0-9]{1,4}")


def flaw(labels: Mapping[str, str]) -> str:
    """The name of the first label that cannot be read; empty if all can. A label that is absent or empty has no flaw."""
    return next((name for name, check in _CHECKS.items() if labels.get(name) and not _passes(check, labels[name])), "")


def small_number(text: str | None) -> int:
    """A small number from a label; 0 for any other text."""
    return int(text) if text and _NUMBER(text) else 0


def _passes(check: Callable[[str], object], text: str) -> bool:
    try:
        return len(text) <= _MOST_TEXT and bool(check(text))
    except Exception:
        return False


def _json(rule: Rule) -> Callable[[str], bool]:
    return lambda text: fault(rule, json.loads(text)) is None


def _are_slots(text: str) -> bool:
    parts = json.loads(text)
    slots = [slot for part in parts for slot in part]
    return all(parts) and 0 < len(slots) == len(set(slots)) <= MOST and fault([whole(9999)], slots) is None


def _is_placement(text: str) -> bool:
    runs = json.loads(text)
    return fault([in_order(a_text, AMOUNT)], runs) is None and 0 < sum(count for _agent, count in runs) <= MOST


_CHECKS: Mapping[str, Callable[[str], object]] = {
    LABEL_SESSION: UUID,
    LABEL_SESSION + ".name": partial(check_session_name, "session_name"),
    LABEL_SESSION + ".owner": partial(check_owner, "session_owner"),
    LABEL_SESSION + ".group": WORD,
    LABEL_SESSION + ".mode": WORD,
    LABEL_SESSION + ".size": _NUMBER,
    LABEL_SESSION + ".placement": _is_placement,
    LABEL_SESSION + ".subnet": ipaddress.IPv4Network,
    LABEL_SESSION + ".request": WORD,
    LABEL_BEGAN: matching(r"[0-9]{1,10}(\.[0-9]{1,9})?"),
    LABEL_FOLDERS: _json([a_line]),
    LABEL_FABRIC: ipaddress.IPv4Network,
    LABEL_FIRST: matching("[0-9]{1,4}(,[0-9]{1,4})*"),
    LABEL_HOST_PORTS: matching("[0-9]{1,5},[0-9]{1,5}"),
    LABEL_SLOTS: _are_slots,
    LABEL_LAUNCH: WORD,
    LABEL_CONTAINER: UUID,
    LABEL_CONTAINER + ".role": WORD,
    LABEL_CONTAINER + ".index": _NUMBER,
    LABEL_CONTAINER + ".rank": _NUMBER,
    LABEL_CONTAINER + ".resources": _json(RESOURCES),
    LABEL_CONTAINER + ".ports": _json([Whole(name=a_text, host_ip=an_address, container_port=PORT, host_port=PORT)]),
    LABEL_CONTAINER + ".spec": WORD,
    LABEL_RELAY: WORD,
}
