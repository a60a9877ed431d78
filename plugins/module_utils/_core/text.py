# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Text that others wrote, made safe for a terminal: a container can print sequences that move its cursor or set its title."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import re
from typing import List, Match

# Colours, as progress bars and loggers print them: without them the text is the same.
_COLOURS = re.compile(r"\x1b\[[0-9;:]*m")
# C0 without tab and newline, DEL, C1, lone surrogates, and what changes the direction of text.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """The text with its control characters escaped, except tabs and newlines. Colours are left out.

    >>> visible("a\\x1b[31mred\\x1b[0m \\x1b]0;title\\x07")
    'ared \\\\x1b]0;title\\\\x07'
    """
    plain = _COLOURS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return _UNSAFE.sub(_escaped, plain)


def visible_lines(content: bytes) -> List[str]:
    """The lines of a program's output; bytes that are not UTF-8 are escapes, too."""
    lines = visible(content.decode("utf-8", "backslashreplace")).split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _escaped(found: Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
