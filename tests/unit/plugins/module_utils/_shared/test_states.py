# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from itertools import product

import pytest
from samples import exactly

from ansible_collections.cluster.compute.plugins.module_utils._shared import states
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import StateError

ALLOWED = {
    ("", "PENDING"),
    ("", "RUNNING"),
    ("PENDING", "SCHEDULED"),
    ("PENDING", "CANCELLED"),
    ("PENDING", "ERROR"),
    ("SCHEDULED", "PREPARING"),
    ("SCHEDULED", "TERMINATING"),
    ("SCHEDULED", "ERROR"),
    ("PREPARING", "RUNNING"),
    ("PREPARING", "TERMINATING"),
    ("PREPARING", "PENDING"),
    ("PREPARING", "ERROR"),
    ("RUNNING", "TERMINATING"),
    ("TERMINATING", "TERMINATED"),
}


@pytest.mark.parametrize(("before", "after"), sorted(product(states.FOLLOWS, repeat=2)))
def test_every_change_is_allowed_or_refused(before: str, after: str) -> None:
    if (before, after) in ALLOWED:
        states.check_change("train", before, after)
        return
    with pytest.raises(
        StateError, match=exactly("Session train is %s and cannot become %s." % (before or "new", after))
    ):
        states.check_change("train", before, after)


def test_every_state_leads_to_an_end() -> None:
    for state in states.FOLLOWS:
        reached, new = {state}, {state}
        while new:
            new = {after for one in new for after in states.FOLLOWS[one]} - reached
            reached |= new
        assert reached & states.ENDED


def test_groups_of_states() -> None:
    assert {"TERMINATED", "ERROR", "CANCELLED"} == states.ENDED
    assert set(states.FOLLOWS) - states.ENDED - {"", "PENDING"} == states.HOLDING
    assert states.LAUNCHING < states.HOLDING
