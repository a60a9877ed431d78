# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Expressions of users end, whatever they compute."""

from __future__ import annotations

import resource
import signal

import pytest

from ansible_collections.cluster.compute.plugins.plugin_utils import _bounded as limits
from ansible_collections.cluster.compute.plugins.plugin_utils._bounded import BoundedSandbox, BoundsError, bounded


@pytest.mark.parametrize("expression", ["9**(9**9)", "2**(10**9)", "(2**60000)*(2**60000)"])
def test_a_number_that_takes_long_to_compute_is_refused(expression: str) -> None:
    with pytest.raises(BoundsError, match="too large"):
        BoundedSandbox().from_string("{{ %s }}" % expression).render()


@pytest.mark.parametrize(
    ("expression", "text"), [("2**10", "1024"), ("3 * 4", "12"), ("'a' * 3", "aaa"), ("0**0", "1")]
)
def test_other_numbers_are_computed(expression: str, text: str) -> None:
    assert BoundedSandbox().from_string("{{ %s }}" % expression).render() == text


@pytest.mark.parametrize(
    "expression", ["'x' * 10**10", "[0] * 10**10", "'x'.ljust(10**10)", "'{:>9999999999}'.format(1)"]
)
def test_a_result_of_gigabytes_is_refused(expression: str) -> None:
    with pytest.raises(MemoryError), bounded():
        BoundedSandbox().from_string("{{ %s }}" % expression).render()


def test_a_loop_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECONDS", 0.1)
    loops = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    with pytest.raises(BoundsError, match="takes longer"), bounded():
        BoundedSandbox().from_string(loops).render()


def test_the_bounds_end_with_the_block() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS), signal.getsignal(signal.SIGALRM)
    with bounded():
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
    assert (resource.getrlimit(resource.RLIMIT_AS), signal.getsignal(signal.SIGALRM)) == before
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_the_timer_of_a_task_stays() -> None:
    signal.setitimer(signal.ITIMER_REAL, 1000)
    try:
        with bounded():
            assert signal.getitimer(signal.ITIMER_REAL)[0] > 100
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
