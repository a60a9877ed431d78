# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The line of an output that names the cause of a failure."""

from __future__ import annotations

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._core.failed_output import LONGEST, LONGEST_LINE, Output


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
