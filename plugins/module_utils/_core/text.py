# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text of a container, made safe for a terminal."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import unicodedata
from typing import List

# Control characters, characters that reorder or hide text, and separators of lines and paragraphs.
_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))


def visible(text: str) -> str:
    r"""The text with every control character as an escape; a tab stays.

    >>> visible("a\x1b[2Jb\tc")
    'a\\x1b[2Jb\tc'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(letter) for letter in text)


def visible_lines(content: bytes) -> List[str]:
    """The lines of a program's output; bytes that are not UTF-8 are escapes, too."""
    text = content.decode("utf-8", "backslashreplace").replace("\r\n", "\n")
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [visible(line) for line in lines]


def _shown(letter: str) -> str:
    if letter == "\t" or unicodedata.category(letter) not in _HIDDEN:
        return letter
    code = ord(letter)
    if code < 0x100:
        return "\\x%02x" % code
    return "\\u%04x" % code if code < 0x10000 else "\\U%08x" % code
