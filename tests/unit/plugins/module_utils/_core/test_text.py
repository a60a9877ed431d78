# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text of containers on a terminal."""

from __future__ import annotations

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._core.errors import EngineError, InputError
from ansible_collections.cluster.compute.plugins.module_utils._core.text import visible


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("gr\xf6\xdfe \u5bb9\u5668", "gr\xf6\xdfe \u5bb9\u5668"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[1;1H", r"\x1b[2J\x1b[1;1H"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x9b2J", r"\x9b2J"),
        ("50 %\r100 %\r\n", "50 %\n100 %\n"),
        ("a\x00b\x08c", r"a\x00b\x08c"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("lone \ud800", r"lone \ud800"),
    ],
)
def test_control_characters_are_visible(written: str, shown: str) -> None:
    assert visible(written) == shown


def test_an_error_shows_them() -> None:
    assert EngineError("sub1: its last lines: \x1b]52;c;x\x07.").message == r"sub1: its last lines: \x1b]52;c;x\x07."
    assert str(InputError("a", ["\x9b"], "must be b")) == r"a: ['\x9b']: must be b."
