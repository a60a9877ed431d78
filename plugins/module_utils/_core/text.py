# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Text that others wrote, made safe for a terminal, and the line of a failed program's output that names the cause.

A container can print sequences that move the cursor of a terminal or set its title.
"""
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


# Characters that are kept of an output, lines that are searched, and characters of a message.
LONGEST = 1 << 14
MOST_LINES = 20
LONGEST_LINE = 300

# As apt, pip, compilers and shells begin the line of a failure. Lines of programs that report the failure of another one follow.
_ERROR = re.compile(r"E: |error\b|fatal\b|.*: (?:fatal )?error: ", re.IGNORECASE)
# As pip names a file after a longer text: its package, its address, and lines with the two digests.
_OTHER_CONTENT = re.compile(r"(\S+==\S+) from (\S+)(?: \(from .*\))?: Expected sha256 ")


class Output:
    """The end of an output that arrives in pieces: the memory used does not depend on the program."""

    def __init__(self) -> None:
        self._end = ""

    def add(self, text: str) -> None:
        self._end = (self._end + text)[-LONGEST:]

    def clear(self) -> None:
        self._end = ""

    def cause(self) -> str:
        """The first of the last lines that reports an error, else the last line, without control characters; may be empty.

        >>> output = Output()
        >>> output.add("Reading…\\nE: Unable to locate package x\\nI: removing files…\\nE: failed to run\\n")
        >>> output.cause()
        'E: Unable to locate package x'
        """
        lines = [" ".join(line.split()) for line in visible(self._end).split("\n") if line.strip()][-MOST_LINES:]
        replaced = _OTHER_CONTENT.search(" ".join(lines))
        if replaced:
            lines = ["ERROR: {} at {} does not have the digest that the requirements name".format(*replaced.groups())]
        found = next((line for line in lines if _ERROR.match(line)), lines[-1] if lines else "")
        return found if len(found) <= LONGEST_LINE else found[: LONGEST_LINE - 1] + "…"
