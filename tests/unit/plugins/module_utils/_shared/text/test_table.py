# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables for a terminal."""

from __future__ import annotations

import doctest

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.cluster.compute.plugins.module_utils._shared.text import table as tables
from ansible_collections.cluster.compute.plugins.module_utils._shared.text.table import table


@given(st.lists(st.tuples(st.text("ab ", max_size=6), st.integers(0, 10**6)), max_size=5))
def test_columns_of_a_table_stand_under_each_other(rows: list[tuple[str, int]]) -> None:
    lines = table(("first", "second"), rows)
    assert len(lines) == len(rows) + 1
    start = lines[0].index("SECOND")
    assert all(line[start:] == str(number) for line, (_text, number) in zip(lines[1:], rows, strict=True))


def test_examples() -> None:
    assert doctest.testmod(tables).failed == 0
