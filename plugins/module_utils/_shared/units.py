# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Conversion of amounts and times between what people write and read and the numbers of the documents; the
rules of amounts and ports."""

from __future__ import annotations

import re
import time
from decimal import Decimal
from typing import Any, Callable, Tuple

from .constants import MOST_AMOUNT
from .errors import InputError

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
# What follows computes with the digits, so there are few.
_BYTES = re.compile(r"([0-9]{1,19}(?:\.[0-9]{1,9})?) ?(?:([kmgt])(?:i?b)?|b)?", re.IGNORECASE)
LEAST_DISK = 16 << 20
_CPUS = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")


def parse_bytes(value: object, variable: str = "memory") -> int:
    """Bytes from ``512m``, ``16g``, ``1.5GiB`` or a plain number; units are binary, as Docker's are."""
    match = None if isinstance(value, bool) else _BYTES.fullmatch(str(value).strip())
    size = int(Decimal(match.group(1)) * _UNITS[(match.group(2) or "").lower()]) if match else -1
    if not 0 <= size <= MOST_AMOUNT:
        rule = "must be a number with an optional unit b, k, m, g or t, as in 512m or 16g, and at most 1048576t"
        raise InputError(variable, value, rule)
    return size


def parse_cpus(value: object, variable: str = "cpus") -> int:
    """Thousandths of a CPU from ``4``, ``0.5`` or ``1.25``."""
    text = "" if isinstance(value, bool) else str(value).strip()
    millicpus = Decimal(text) * 1000 if _CPUS.fullmatch(text) else Decimal("0.5")
    if millicpus != int(millicpus):
        raise InputError(variable, value, "must be a number with at most three decimals, as in 4 or 0.5")
    return int(millicpus)


def show_bytes(amount: int) -> str:
    """An amount with one decimal at most: ``16g``, ``512m``, ``1.5g``. It is rounded down, so that free memory is never overstated."""
    for unit in ("t", "g", "m", "k"):
        if amount >= _UNITS[unit]:
            return _plain(Decimal(amount * 10 // _UNITS[unit]) / 10) + unit
    return "%db" % amount


def show_cpus(millicpus: int) -> str:
    """CPUs with as many decimals as they need: ``1.5``."""
    return _plain(Decimal(millicpus) / 1000)


def show_time(seconds: float) -> str:
    """A time, in seconds since the epoch, in the reader's time zone, to the minute."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def show_seconds(seconds: float) -> str:
    """A time span in its two largest units.

    >>> show_seconds(93784), show_seconds(3600), show_seconds(59.9)
    ('1 d 2 h', '1 h', '59 s')
    """
    left, parts = int(seconds), []
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        parts.append((left // size, unit))
        left %= size
    first = next((place for place, (count, _unit) in enumerate(parts) if count), len(parts) - 1)
    return " ".join("%d %s" % part for part in parts[first : first + 2] if part[0] or first == len(parts) - 1)


def bytes_from(least: int) -> Callable[[str, Any], int]:
    """The rule of an amount of bytes."""

    def check(variable: str, value: Any) -> int:
        size = parse_bytes(value, variable)
        if size < least:
            rule = f"must be at least {show_bytes(least)}" if least > 1 else "must be greater than 0"
            raise InputError(variable, value, rule)
        return size

    return check


check_shm = bytes_from(1)
check_log_size = bytes_from(64 << 10)


def check_disk(variable: str, value: Any) -> int:
    size = parse_bytes(value, variable)
    if 0 < size < LEAST_DISK:
        raise InputError(variable, value, f"must be 0 for no limit, or at least {show_bytes(LEAST_DISK)}")
    return size


# https://docs.docker.com/engine/containers/resource_constraints/ : the engine refuses less than 6 MiB.
check_memory = bytes_from(6 << 20)


def check_cpus(variable: str, value: Any) -> int:
    millicpus = parse_cpus(value, variable)
    # The engine refuses less than 0.01 CPU.
    if millicpus < 10:
        raise InputError(variable, value, "must be at least 0.01")
    return millicpus


def check_gpus(variable: str, value: Any) -> float:
    rule = "must be a whole number, or a fraction below 1 where the agents declare shares"
    try:
        gpus = float(value)
    except (TypeError, ValueError):
        raise InputError(variable, value, rule) from None
    if isinstance(value, bool) or not 0 <= gpus <= 1024 or (gpus > 1 and gpus != int(gpus)):
        raise InputError(variable, value, rule)
    return gpus


def _plain(number: Decimal) -> str:
    """A number without trailing zeros and without an exponent."""
    return f"{number.normalize():f}"


def parse_port_range(text: object, variable: str = "session_port_range") -> Tuple[int, int]:
    """The first and the last port of a text such as ``30000-31000``."""
    match = re.fullmatch(r"([0-9]{4,5})-([0-9]{4,5})", str(text))
    first, last = (int(match.group(1)), int(match.group(2))) if match else (0, 0)
    if 1024 <= first <= last <= 65535:
        return first, last
    raise InputError(variable, text, "must be FIRST-LAST with ports from 1024 to 65535")


_READY = re.compile(r"([0-9]{1,5})(/[A-Za-z0-9._~/?=&%+,@-]{0,500})?")


def ready_port(text: str) -> Tuple[int, str]:
    """The port and the path that a text names; port 0 for a command.

    >>> ready_port("8080/health"), ready_port("8080"), ready_port("true")
    ((8080, '/health'), (8080, ''), (0, ''))
    """
    found = _READY.fullmatch(text)
    return (int(found.group(1)), found.group(2) or "") if found else (0, "")
