# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The end of a failed program's output, and the line of it that names the cause."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import re

from .text import visible

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
