# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._core.text import visible, visible_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("a\tb", "a\tb"),
        ("50 % grün ✓", "50 % grün ✓"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("a\rb", r"a\x0db"),
        ("\x9b2J", r"\x9b2J"),
        ("\u202eabc\u2028", r"\u202eabc\u2028"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_what_moves_a_cursor_or_hides_text_is_an_escape(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_lines_of_a_terminal_and_bytes_that_are_no_text() -> None:
    assert visible_lines(b"one\r\ntwo\n\xff\nend") == ["one", "two", r"\xff", "end"]
    assert visible_lines(b"") == []
    assert visible_lines(b"\n") == [""]
