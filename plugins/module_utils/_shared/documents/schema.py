# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Forms of values in the documents of others: a rule says whether a value has its form, and C(fault) finds the first that has not."""

from __future__ import annotations

import ipaddress
import re
from collections import abc
from dataclasses import MISSING, field, fields
from typing import Any, Callable, Dict, Iterable, Mapping, Tuple

from ..constants import MOST_AMOUNT, ROLE_NAME
from ..errors import ComputeError, escape_control

# A rule of a value, the rules of a mapping's values, or a list with the rule of its elements.
Rule = Any
MOST = 1000
# Containers that an engine may have, and entries of any other list of a report.
_MOST_ENTRIES = 100_000
_MOST_TEXT = 1 << 20
_MOST_CPUS = 4096


class Required(Dict[str, Rule]):
    """Rules of a mapping of which no part may be absent."""

    @property
    def needed(self) -> Iterable[str]:
        return self


class RulesOf(Required):
    """The rules of a document's fields. Only a field without a default is ``needed``."""

    def __init__(self, rules: Mapping[str, Rule], needed: Iterable[str]) -> None:
        super().__init__(rules)
        self._needed = tuple(needed)

    @property
    def needed(self) -> Iterable[str]:
        return self._needed


# The key of a field's metadata that holds its rule.
_RULE = "rule"


def ruled(rule: Rule, default: Any = MISSING) -> Any:
    """A field of a document with the rule of its value. A ``default`` that can be called makes the default."""
    metadata = {_RULE: rule}
    if callable(default):
        return field(default_factory=default, metadata=metadata)  # pylint: disable=invalid-field-call
    return field(default=default, metadata=metadata)  # pylint: disable=invalid-field-call


def rules_of(kind: type) -> RulesOf:
    """The rules of a document from its fields, in their order.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Size:
    ...     number: int = ruled(whole(9))
    ...     unit: str = ruled(a_line, "m")
    >>> [fault(rules_of(Size), value) for value in ({"number": 1}, {"number": 10}, {"unit": "m"})]
    [None, (('number',), 10), (('number',), None)]
    """
    own = [one for one in fields(kind) if _RULE in one.metadata]
    needed = [one.name for one in own if one.default is MISSING and one.default_factory is MISSING]
    return RulesOf({one.name: one.metadata[_RULE] for one in own}, needed)


def fault(rule: Rule, value: object) -> Tuple[Tuple[Any, ...], object] | None:
    """The place and the value of the first part that breaks its rule; None if there is none. An absent part breaks none."""
    if isinstance(rule, dict):
        if not isinstance(value, abc.Mapping):
            return (), value
        absent = [name for name in rule.needed if name not in value] if isinstance(rule, Required) else []
        if absent:
            return (absent[0],), None
        parts = ((name, part, value[name]) for name, part in rule.items() if name in value)
    elif isinstance(rule, list):
        if not isinstance(value, (list, tuple)) or len(value) > _MOST_ENTRIES:
            return (), value
        parts = ((number, rule[0], entry) for number, entry in enumerate(value))
    else:
        return None if rule(value) else ((), value)
    for name, part, inner in parts:
        found = fault(part, inner)
        if found is not None:
            return (name, *found[0]), found[1]
    return None


def a_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _MOST_TEXT


def a_line(value: object) -> bool:
    """A text on one line that no terminal and no file of a line for each value takes for anything else."""
    return isinstance(value, str) and len(value) <= 4096 and "\n" not in value and escape_control(value) == value


def is_number(text: str) -> bool:
    """Return whether C(int) reads a text as a small number. C(isdigit) is true for superscripts, too, which C(int) does not read.

    >>> is_number("30"), is_number(""), is_number("\\u00b2"), is_number("-1")
    (True, False, False, False)
    """
    return text.isascii() and text.isdigit() and len(text) < 19


def matching(pattern: str) -> Callable[[object], bool]:
    compiled = re.compile(pattern, re.ASCII)
    return lambda value: isinstance(value, str) and compiled.fullmatch(value) is not None


def by_rule(check: Callable[..., Any], *given: str) -> Callable[[object], bool]:
    """A rule of a variable: it holds for its own normal form."""

    def holds(value: object) -> bool:
        try:
            return bool(check(*given, value) == value)
        except ComputeError:
            return False

    return holds


def whole(most: int, least: int = 0) -> Callable[[object], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def a_number(value: object) -> bool:
    """A number that can be computed with: neither infinite nor larger than any amount."""
    return isinstance(value, (int, float)) and -MOST_AMOUNT <= value <= MOST_AMOUNT


def a_flag(value: object) -> bool:
    return isinstance(value, bool)


def _parsed_by(parse: Callable[[str], object]) -> Callable[[object], bool]:
    """A rule for a text of addresses. One with a zone names an interface of its own host."""

    def holds(value: object) -> bool:
        try:
            return isinstance(value, str) and "%" not in value and bool(parse(value))
        except ValueError:
            return False

    return holds


def _of_host(text: str) -> bool:
    address = ipaddress.IPv4Address(text)
    return not (address.is_loopback or address.is_multicast or address.is_unspecified)


an_address, a_subnet = _parsed_by(ipaddress.ip_address), _parsed_by(ipaddress.ip_network)
an_ipv4_subnet = _parsed_by(ipaddress.IPv4Network)
# An IPv4 address at which other hosts can reach one host or container.
a_host_address = _parsed_by(_of_host)


def or_none(rule: Rule) -> Callable[[object], bool]:
    """A rule for a value that may be null."""
    return lambda value: value is None or fault(rule, value) is None


def in_order(*rules: Rule) -> Callable[[object], bool]:
    """A rule for a list with one value for each of these rules."""

    def holds(value: object) -> bool:
        is_whole = isinstance(value, (list, tuple)) and len(value) == len(rules)
        return is_whole and all(fault(rule, part) is None for rule, part in zip(rules, value))  # type: ignore[call-overload]

    return holds


def by_name(name: Callable[[object], bool], rule: Rule) -> Callable[[object], bool]:
    """A rule for a mapping whose names and values each have a form."""
    return lambda value: (
        isinstance(value, abc.Mapping) and all(name(key) and fault(rule, part) is None for key, part in value.items())
    )


def texts(value: object) -> bool:
    """Texts by name. The texts may be of any kind, such as the value of an environment variable."""
    if not isinstance(value, abc.Mapping) or len(value) > _MOST_ENTRIES:
        return False
    return all(isinstance(name, str) and name.isprintable() and isinstance(text, str) for name, text in value.items())


def is_cpuset(text: object) -> bool:
    """Return whether these are CPUs of a possible machine, such as ``0-2,5``. A long list or range takes the time of every user."""
    parts = text.split(",") if isinstance(text, str) and text else []
    if (
        not isinstance(text, str)
        or len(parts) > _MOST_CPUS
        or not all(re.fullmatch(r"[0-9]{1,4}(-[0-9]{1,4})?", part, re.ASCII) for part in parts)
    ):
        return False
    ends = [[int(end) for end in part.split("-")] for part in parts]
    # A range that falls must not hide a long range.
    return sum(max(0, end[-1] - end[0] + 1) for end in ends) <= _MOST_CPUS


UUID = matching(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
WORD = matching(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
SHORT_NAME = matching(r"[A-Za-z0-9._-]{0,132}")
VARIABLE = matching("([A-Za-z_][A-Za-z0-9_]*)?")
ROLE = matching(ROLE_NAME)
HOSTNAME = matching(ROLE_NAME + "[1-9][0-9]{0,3}")
# The name of a host in an inventory. It becomes a word of messages and a key of the inventory, and never a path.
AGENT = matching(r"[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,254}")
INTERFACE = matching(r"[A-Za-z0-9_.:@-]{1,15}")
# When an image was made of a container, and of whose: empty for other images.
MADE = matching(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})?)?")
MAKER = matching(r"([A-Za-z0-9][A-Za-z0-9_-]{0,31})?")
# What a kernel calls its architecture.
MACHINE = matching(r"[\w.-]{0,32}")
LOGIN = matching(r"[a-z_][a-z0-9_-]{0,31}")
HOME = matching(r"/[A-Za-z0-9._/-]{0,255}")
DRIVER = matching("bridge|overlay|host")
ID = whole(2**31 - 1)
AMOUNT, PORT = whole(MOST_AMOUNT), whole(65535)
_GPU = Required(id=a_line, shares=lambda value: a_number(value) and 0 < value <= MOST)
GPUS = [lambda value: fault(_GPU, value) is None and fault({"memory": AMOUNT}, value) is None]
RESOURCES = {"millicpus": AMOUNT, "memory": AMOUNT, "shm": AMOUNT, "gpus": GPUS, "cpuset": is_cpuset, "fabric": a_flag}
