# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bounded threads: one function for many items, results in order; the first failure stops the rest."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Callable, Generic, Iterable, List, Optional, Sequence, TypeVar, cast

Item = TypeVar("Item")
Value = TypeVar("Value")

# Requests to an engine at once. They wait for the kernel, which moves one network interface at a time, and for the engine's database
# (https://github.com/moby/moby/blob/v20.10.24/libnetwork/datastore/datastore.go), whatever the number of CPUs. With four, processors
# are idle; sixteen are no faster than eight.
AT_ONCE = 8


@dataclass
class Outcome(Generic[Item, Value]):
    """The outcome of an item: a value, an error, or neither if another item failed before its turn."""

    item: Item
    value: Optional[Value] = None
    error: Optional[Exception] = None


def map_bounded(
    function: Callable[[Item], Value], items: Iterable[Item], limit: int = AT_ONCE, keep_going: bool = False
) -> List[Outcome[Item, Value]]:
    """Call the function on every item, ``limit`` at a time; what has begun always ends before this returns.

    An interrupt of the calling thread lets no other item begin.
    """
    outcomes: List[Outcome[Item, Value]] = [Outcome(item) for item in items]
    waiting = iter(outcomes)
    stopped = threading.Event()
    turn = threading.Lock()

    def work() -> None:
        while not stopped.is_set():
            with turn:
                outcome = next(waiting, None)
            if outcome is None:
                return
            try:
                outcome.value = function(outcome.item)
            except Exception as error:  # handed to the caller, who raises it from its own thread
                outcome.error = error
                if not keep_going:
                    stopped.set()

    workers = min(limit, len(outcomes))
    if workers <= 1:
        work()
        return outcomes
    with ThreadPoolExecutor(max_workers=workers) as pool:
        try:
            for done in [pool.submit(work) for _worker in range(workers)]:
                done.result()
        except BaseException:  # an interrupt
            stopped.set()
            raise
    return outcomes


def run_all(
    function: Callable[[Item], Value], items: Iterable[Item], limit: int = AT_ONCE, keep_going: bool = False
) -> List[Value]:
    """The function's value for every item, in order; raises the error of the first item that has one."""
    return values_of(map_bounded(function, items, limit, keep_going))


def values_of(outcomes: Sequence[Outcome[Item, Value]]) -> List[Value]:
    """The values of all items, in order; raises the error of the first item that has one."""
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error
    return [cast(Value, outcome.value) for outcome in outcomes]
