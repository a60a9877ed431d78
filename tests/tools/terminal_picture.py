# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A picture of lines of a terminal, as SVG."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.sax.saxutils import escape

WIDTH, HEIGHT, MARGIN = 8.4, 18, 14  # of a character; around the text
NORMAL = "#d8dee9"
COLORS = dict(zip("01234567", "#4c566a #e06c75 #98c379 #e5c07b #61afef #c678dd #56b6c2 #d8dee9".split(), strict=True))
ESCAPE = re.compile(r"\x1b\[([\d;?]*)([a-zA-Z])|\x1b\][^\x07]*\x07")
NOTICE = "<!-- Copyright: (c) 2026, the cluster.compute authors -->\n<!-- SPDX-License-Identifier: GPL-3.0-or-later -->"


def svg(text: str, columns: int) -> str:
    """The lines as they stand at the end, in their colors: a line that is written again after a return shows its last form."""
    lines = [line.rstrip("\r ").rpartition("\r")[2] for line in text.rstrip().split("\n")]
    width, height = columns * WIDTH + 2 * MARGIN, len(lines) * HEIGHT + 2 * MARGIN
    rows = [
        f'<text x="{MARGIN}" y="{MARGIN + number * HEIGHT + 13}">{"".join(_pieces(line))}</text>'
        for number, line in enumerate(lines)
    ]
    return "\n".join(
        [
            NOTICE,
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}">',
            f'<rect width="100%" height="100%" rx="8" fill="#20242c"/><g fill="{NORMAL}" '
            f'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14">',
            *rows,
            "</g></svg>\n",
        ]
    )


def _pieces(line: str) -> Iterator[str]:
    """The parts of a line, each in its color."""
    color, place = NORMAL, 0
    for found in (*ESCAPE.finditer(line), None):
        # Viewers differ in what they do with spaces in a row.
        part = line[place : found.start() if found else len(line)].replace(" ", "\u00a0")
        if part:
            yield escape(part) if color == NORMAL else f'<tspan fill="{color}">{escape(part)}</tspan>'
        if found and found[2] == "m":
            codes = found[1].split(";")
            color = next((COLORS[code[1]] for code in codes if re.fullmatch("[39][0-7]", code)), NORMAL)
        place = found.end() if found else place
