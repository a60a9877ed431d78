# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bounded threads: order, bound, and the first failure."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._shared.parallel import map_bounded, values_of


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_results_keep_the_order_of_the_items(limit: int) -> None:
    outcomes = map_bounded(lambda number: number * number, range(20), limit)
    assert values_of(outcomes) == [number * number for number in range(20)]


def test_never_more_at_once_than_the_limit() -> None:
    now, most, lock = 0, 0, threading.Lock()

    def work(_item: int) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.005)
        with lock:
            now -= 1

    map_bounded(work, range(24), 4)
    assert 1 <= most <= 4


def fail_at_two(number: int) -> int:
    if number == 2:
        raise ValueError("two")
    return number


def test_a_failure_stops_feeding_the_rest() -> None:
    outcomes = map_bounded(fail_at_two, range(5), 1)
    assert [one.value for one in outcomes] == [0, 1, None, None, None]
    with pytest.raises(ValueError, match="two"):
        values_of(outcomes)
    assert outcomes[3].error is None


def test_what_has_begun_ends() -> None:
    both, ended = threading.Barrier(2, timeout=10), threading.Event()

    def work(number: int) -> None:
        both.wait()
        if number == 10:
            raise ValueError
        time.sleep(0.05)
        ended.set()

    map_bounded(work, range(2), 2)
    assert ended.is_set()


@pytest.mark.parametrize("limit", [1, 3])
def test_keep_going(limit: int) -> None:
    outcomes = map_bounded(fail_at_two, range(5), limit, keep_going=True)
    assert [one.value for one in outcomes] == [0, 1, None, 3, 4]


def test_nothing_to_do() -> None:
    assert map_bounded(fail_at_two, [], 4) == []


@pytest.fixture
def interrupted() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, also where it was ignored, as in a background job of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupted")
def test_an_interrupt_lets_nothing_else_begin() -> None:
    begun, go_on = [], threading.Event()

    def work(number: int) -> None:
        begun.append(number)
        if number == 10:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        go_on.wait(0.01)

    with pytest.raises(KeyboardInterrupt):
        map_bounded(work, range(400), 2, keep_going=True)
    assert len(begun) < 100
