# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bounds for expressions that users write: a sandbox forbids access, but not a loop without end or a text of many gigabytes.

The expressions of a waiting session are evaluated by the operator who schedules it, who may be another user.
"""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import resource
import signal
import threading
from contextlib import contextmanager
from typing import Any, Iterator

from jinja2.sandbox import ImmutableSandboxedEnvironment

SECONDS = 10
MEMORY = 256 << 20
LONGEST_NUMBER = 1 << 16  # bits


class BoundsError(ValueError):
    """An expression takes too long, or its result is too large."""


class BoundedSandbox(ImmutableSandboxedEnvironment):
    """A sandbox whose numbers stay so small that no single operation on them takes long."""

    intercepted_binops = frozenset(("*", "**"))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if isinstance(left, int) and isinstance(right, int):
            bits = left.bit_length() * (abs(right) if operator == "**" else 1) + right.bit_length()
            if bits > LONGEST_NUMBER:
                raise BoundsError("a number is too large")
        return super().call_binop(context, operator, left, right)


@contextmanager
def bounded() -> Iterator[None]:
    """Raise BoundsError or MemoryError in the block when it takes longer than SECONDS or more than MEMORY more bytes."""
    with _bounded_memory(), _bounded_time():
        yield


@contextmanager
def _bounded_time() -> Iterator[None]:
    """Only the main thread has signals; a timer that runs already is the one of a task with C(timeout)."""
    if threading.current_thread() is not threading.main_thread() or signal.getitimer(signal.ITIMER_REAL)[0]:
        yield
        return

    def stop(_number: int, _frame: Any) -> None:
        raise BoundsError("it takes longer than %d s" % SECONDS)

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _bounded_memory() -> Iterator[None]:
    """Without /proc, memory has no bound here."""
    used = _used_memory()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = used + MEMORY
    if not used or 0 <= soft < wanted or 0 <= hard < wanted:
        yield
        return
    resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _used_memory() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as status:
            return int(status.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 0
