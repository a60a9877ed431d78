# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A short queue that is never empty, decided by the head; tests/large/test_fair_shares.py has a hundred long ones."""

from __future__ import annotations

import pytest
from queue_simulation import simulated


def test_a_queue_keeps_shares_starves_no_owner_and_the_ledger_has_what_was_held() -> None:
    outcome = simulated(seed=1, sessions=120)
    assert outcome.deviation() < 0.1
    assert outcome.longest_wait < 30
    assert outcome.ledger == pytest.approx(outcome.held, rel=1e-6)
