# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from itertools import product

import pytest
from samples import exactly

from ansible_collections.cluster.compute.plugins.module_utils import _states
from ansible_collections.cluster.compute.plugins.module_utils._errors import StateError

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
    ("PREPARING", "ERROR"),
    ("RUNNING", "TERMINATING"),
    ("TERMINATING", "TERMINATED"),
}


@pytest.mark.parametrize(("before", "after"), sorted(product(_states.FOLLOWS, repeat=2)))
def test_every_change_is_allowed_or_refused(before: str, after: str) -> None:
    if (before, after) in ALLOWED:
        _states.check_change("train", before, after)
        return
    with pytest.raises(
        StateError, match=exactly("Session train is %s and cannot become %s." % (before or "new", after))
    ):
        _states.check_change("train", before, after)


def test_every_state_leads_to_an_end() -> None:
    for state in _states.FOLLOWS:
        reached, new = {state}, {state}
        while new:
            new = {after for one in new for after in _states.FOLLOWS[one]} - reached
            reached |= new
        assert reached & _states.ENDED


def test_groups_of_states() -> None:
    assert {"TERMINATED", "ERROR", "CANCELLED"} == _states.ENDED
    assert set(_states.FOLLOWS) - _states.ENDED - {"", "PENDING"} == _states.HOLDING
    assert _states.LAUNCHING < _states.HOLDING
