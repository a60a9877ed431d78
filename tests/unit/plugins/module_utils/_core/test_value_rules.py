# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of plain values."""

from __future__ import annotations

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._core.errors import InputError
from ansible_collections.cluster.compute.plugins.module_utils._core.value_rules import within


@pytest.mark.parametrize(("value", "count"), [(1, 1), ("100", 100)])
def test_a_count(value: object, count: int) -> None:
    assert within(1, 100)("session_count", value) == count


@pytest.mark.parametrize("value", [0, -1, 101, "many", None, 1.5])
def test_other_counts_are_refused(value: object) -> None:
    with pytest.raises(InputError, match=r"^session_count: .*must be a whole number from 1 to 100\.$"):
        within(1, 100)("session_count", value)
