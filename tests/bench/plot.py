# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plot of seconds over the number of containers, as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Points = Sequence[tuple[float, float]]

WIDTH, HEIGHT, MARGIN, LEGEND = 640, 400, 56, 18
COLOURS = ("#1f6feb", "#57606a", "#d1242f", "#1a7f37", "#9a6700", "#8250df")
TICKS = 5


def svg(title: str, lines: Mapping[str, Points]) -> str:
    """The lines by their name, each as points of containers and seconds; both axes begin at zero."""
    points = [point for line in lines.values() for point in line]
    right = max((x for x, _y in points), default=1.0) or 1.0
    top = max((y for _x, y in points), default=1.0) * 1.05 or 1.0

    def place(x: float, y: float) -> tuple[float, float]:
        across = MARGIN + x / right * (WIDTH - 2 * MARGIN)
        return round(across, 1), round(HEIGHT - MARGIN - y / top * (HEIGHT - 2 * MARGIN), 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        _text(WIDTH / 2, 24, title, "middle", 14),
        _text(WIDTH / 2, HEIGHT - 12, "containers", "middle"),
        _text(8, MARGIN - 14, "seconds", "start"),
    ]
    for number in range(TICKS + 1):
        x, y = right * number / TICKS, top * number / TICKS
        (across, bottom), (left, height) = place(x, 0), place(0, y)
        parts.append(f'<line x1="{left}" y1="{height}" x2="{WIDTH - MARGIN}" y2="{height}" stroke="#d0d7de"/>')
        parts.append(_text(left - 6, height + 4, f"{y:.0f}", "end"))
        parts.append(_text(across, bottom + 16, f"{x:.0f}", "middle"))
    for index, (name, line) in enumerate(lines.items()):
        colour = COLOURS[index % len(COLOURS)]
        path = " ".join(f"{x},{y}" for x, y in (place(*point) for point in sorted(line)))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in (place(*point) for point in line)]
        parts.append(_text(MARGIN + 12, MARGIN + LEGEND * index, name, "start", 12, colour))
    return "\n".join([*parts, "</svg>", ""])


def _text(x: float, y: float, text: str, anchor: str, size: int = 12, colour: str = "#24292f") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}" fill="{colour}">{_escaped(text)}</text>'


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
