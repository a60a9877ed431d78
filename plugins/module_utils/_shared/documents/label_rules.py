# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules for the labels of a session's container.

Every user of an engine can write labels, so each is checked before anything reads it.
"""

from __future__ import annotations

import ipaddress
import json
from functools import partial
from typing import Callable, Mapping

from .. import label
from ..names import check_owner, check_session_name
from .schema import (
    AMOUNT,
    MOST,
    PORT,
    RESOURCES,
    UUID,
    WORD,
    Required,
    Rule,
    a_line,
    a_text,
    an_address,
    fault,
    in_order,
    matching,
    whole,
)

# A label that is longer is not the collection's.
_MOST_TEXT = 1 << 17
_SMALL_NUMBER = matching("[0-9]{1,4}")


def invalid_labels(labels: Mapping[str, str]) -> str:
    """The name of the first label that cannot be read; empty if all can. A label that is absent or empty has no flaw."""
    return next(
        (name for name, check in _BY_LABEL.items() if labels.get(name) and not _is_readable(check, labels[name])), ""
    )


def small_number(text: str | None) -> int:
    """A small number from a label; 0 for any other text."""
    return int(text) if text and _SMALL_NUMBER(text) else 0


def _is_readable(check: Callable[[str], object], text: str) -> bool:
    try:
        return len(text) <= _MOST_TEXT and bool(check(text))
    except Exception:
        return False


def _as_json(rule: Rule) -> Callable[[str], bool]:
    return lambda text: fault(rule, json.loads(text)) is None


def _are_slots(text: str) -> bool:
    parts = json.loads(text)
    slots = [slot for part in parts for slot in part]
    return all(parts) and 0 < len(slots) == len(set(slots)) <= MOST and fault([whole(9999)], slots) is None


def _is_placement(text: str) -> bool:
    runs = json.loads(text)
    return fault([in_order(a_text, AMOUNT)], runs) is None and 0 < sum(count for _agent, count in runs) <= MOST


_BY_LABEL: Mapping[str, Callable[[str], object]] = {
    label.SESSION: UUID,
    label.NAME: partial(check_session_name, "session_name"),
    label.OWNER: partial(check_owner, "session_owner"),
    label.GROUP: WORD,
    label.MODE: WORD,
    label.SIZE: _SMALL_NUMBER,
    label.PLACEMENT: _is_placement,
    label.SUBNET: ipaddress.IPv4Network,
    label.REQUEST: WORD,
    label.BEGAN: matching(r"[0-9]{1,10}(\.[0-9]{1,9})?"),
    label.FOLDERS: _as_json([a_line]),
    label.FABRIC: ipaddress.IPv4Network,
    label.FIRST: matching("[0-9]{1,4}(,[0-9]{1,4})*"),
    label.HOST_PORTS: matching("[0-9]{1,5},[0-9]{1,5}"),
    label.SLOTS: _are_slots,
    label.LAUNCH: WORD,
    label.CONTAINER: UUID,
    label.ROLE: WORD,
    label.INDEX: _SMALL_NUMBER,
    label.RANK: _SMALL_NUMBER,
    label.RESOURCES: _as_json(RESOURCES),
    label.PORTS: _as_json([Required(name=a_text, host_ip=an_address, container_port=PORT, host_port=PORT)]),
    label.SPEC: WORD,
    label.RELAY: WORD,
}
