# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A bar of what is taken of a capacity, in parts of owners, and a thin one below of what is really in use.

Widths are attributes of SVG: the page forbids styles in elements.
"""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Dict, List, Mapping, Sequence, Tuple

from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._page.markup import Html, element, joined

# The owners with the most have a colour each; the rest share the last one.
COLOURS = 8
_REST = COLOURS - 1


class Colours:
    """The colour of each owner, by how much the owner has: the same on the whole page."""

    def __init__(self, owners: Sequence[Json], capacity: Mapping[str, float]) -> None:
        def weight(owner: Json) -> float:
            return float(sum(owner["used"][name] / capacity[name] for name in owner["used"] if capacity.get(name)))

        ranked = sorted(owners, key=lambda owner: (-weight(owner), owner["owner"]))
        self.order: List[str] = [owner["owner"] for owner in ranked]
        self._numbers: Dict[str, int] = {name: min(number, _REST) for number, name in enumerate(self.order)}

    def of(self, owner: str) -> str:
        """The class of an owner's colour."""
        return "c%d" % self._numbers.get(owner, _REST)


def amount_bar(parts: Sequence[Tuple[str, float]], capacity: float, label: str, measured: float | None = None) -> Html:
    """``parts`` are classes and amounts. ``label`` is what the bar is read out as."""
    rectangles, start = [], 0.0
    for colour, amount in parts:
        width = _percent(amount, capacity)
        rectangles.append(element("rect", class_=colour, x=_text(start), width=_text(width), height=10))
        start += width
    used = None
    if measured is not None:
        used = element("rect", class_="inuse", x="0%", y=12, width=_text(_percent(measured, capacity)), height=3)
    ground = element("rect", class_="ground", width="100%", height=10)
    title = element("title", label)
    return element("svg", title, ground, joined(*rectangles), used, class_="bar", role="img", aria_label=label)


def _percent(amount: float, capacity: float) -> float:
    return min(100.0, 100.0 * amount / capacity) if capacity > 0 else 0.0


def _text(percent: float) -> str:
    return "%.4g%%" % percent
