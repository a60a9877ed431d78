# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text of containers on a terminal."""

from __future__ import annotations

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._core.errors import EngineError, InputError
from ansible_collections.cluster.compute.plugins.module_utils._core.text import (
    LONGEST,
    LONGEST_LINE,
    Output,
    visible,
    visible_lines,
)


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


def test_lines_of_a_program_and_bytes_that_are_no_text() -> None:
    assert visible_lines(b"one\r\ntwo\n10 %\r20 %\n\xff\nend") == ["one", "two", "10 %", "20 %", r"\xff", "end"]
    assert visible_lines(b"") == []
    assert visible_lines(b"\n") == [""]


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", ""),
        ("\n \n", ""),
        ("one\ntwo\n\n", "two"),
        ("10 %\r20 %\rstopped\r\n", "stopped"),
        ("E: Unable to locate package x\nI: removing files\nE: failed to run\n", "E: Unable to locate package x"),
        (
            "ERROR: No matching distribution found for x\n\nnotice: update pip\n",
            "ERROR: No matching distribution found for x",
        ),
        (
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you have updated\n"
            "    x==1.0 from https://p.example.org/x-1.0.whl (from -r requirements.lock (line 1)):\n"
            "        Expected sha256 00\n             Got        11\n\n",
            "ERROR: x==1.0 at https://p.example.org/x-1.0.whl does not have the digest that the requirements name",
        ),
        ("a.c:3:1: error: expected ;\nmake: *** [all] Error 1\n", "a.c:3:1: error: expected ;"),
        ("error: long ago\n" + "line\n" * 30, "line"),
        ("\x1b[31mred\x1b[0m \x1b]0;title\x07", "red \\x1b]0;title\\x07"),
    ],
)
def test_the_cause(text: str, cause: str) -> None:
    output = Output()
    output.add(text)
    assert output.cause() == cause


def test_an_endless_line_is_bounded() -> None:
    output = Output()
    for _piece in range(100):
        output.add("x" * 1000)
    assert len(output._end) == LONGEST
    assert len(output.cause()) == LONGEST_LINE
