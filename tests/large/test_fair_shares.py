# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A hundred queues of a thousand sessions, decided by the head: shares, waits, and the ledger."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import pytest
from queue_simulation import simulated

QUEUES, SESSIONS = int(os.environ.get("QUEUES", "100")), 1000


def test_shares_are_kept_and_no_owner_starves() -> None:
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        outcomes = []
        for outcome in processes.map(partial(simulated, sessions=SESSIONS), range(QUEUES)):
            outcomes.append(outcome)
            print(
                f"queue {len(outcomes)}: deviation {outcome.deviation():.2%}, longest wait {outcome.longest_wait:.1f} lengths",
                flush=True,
            )
    deviations = [outcome.deviation() for outcome in outcomes]
    waits = [outcome.longest_wait for outcome in outcomes]
    print(
        f"largest deviation {max(deviations):.2%}, mean {sum(deviations) / QUEUES:.2%}; longest wait {max(waits):.1f} lengths"
    )
    assert max(deviations) < 0.05
    assert max(waits) < 60
    for outcome in outcomes:
        assert outcome.ledger == pytest.approx(outcome.held, rel=1e-6)
