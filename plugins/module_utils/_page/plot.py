# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Use over time as a plot: what was allocated, and what was in use, as parts of the capacity at that time."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Callable, List, Sequence, Tuple

from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._page.markup import Html, element, joined

# The plot has coordinates of its own, which are stretched to the width of the page.
_WIDTH, _HEIGHT = 1000.0, 100.0
# More points are narrower than a pixel.
_POINTS = 400
_TICKS = 5
# A line breaks where no sample was taken for so long: the longer of seconds, and of three times the usual distance.
_GAP = 1800.0


@dataclass(frozen=True)
class Line:
    """A line of the plot: its class, its name, and the percentage that it shows of a sample, or None."""

    style: str
    name: str
    percent: Callable[[Json], float | None]


def _allocated(name: str) -> Callable[[Json], float | None]:
    return lambda sample: _share(sample["used"][name], sample["capacity"][name])


def _measured(name: str) -> Callable[[Json], float | None]:
    return lambda sample: _share(sample["measured"][name], sample["capacity"][name])


LINES = (
    Line("cpus", "CPUs allocated", _allocated("millicpus")),
    Line("memory", "memory allocated", _allocated("memory")),
    Line("gpus", "GPUs allocated", _allocated("gpus")),
    Line("cpus used", "CPUs in use", _measured("millicpus")),
    Line("memory used", "memory in use", _measured("memory")),
    Line("gpus used", "GPUs in use", lambda sample: sample["measured"]["gpu_percent"]),
)


def plot(samples: Sequence[Json], start: float, end: float) -> Html:
    """The samples of a span of time, with a legend of the lines that it has."""
    inside = [sample for sample in samples if start <= sample["time"] <= end]
    if not inside:
        return element("p", "No samples of this time. Each pass of schedule.yml takes one.", class_="empty")
    chosen = _thinned(inside, start, end)
    drawn = [(line, _strokes(line, chosen, start, end)) for line in LINES]
    shown = [(line, strokes) for line, strokes in drawn if strokes]
    strokes = joined(*(joined(*parts) for _line, parts in shown))
    box = "0 0 %g %g" % (_WIDTH, _HEIGHT)
    lines = element("svg", _rules(), strokes, viewBox=box, preserveAspectRatio="none", y=8, width="100%", height=150)
    label = "Use from %s to %s" % (_moment(start), _moment(end))
    picture = element(
        "svg", element("title", label), lines, _scale(), _times(start, end), class_="plot", role="img", aria_label=label
    )
    return joined(element("div", picture, class_="plotbox"), _legend([line for line, _parts in shown]))


def _share(part: float, whole: float) -> float | None:
    return min(100.0, 100.0 * part / whole) if whole > 0 else None


def _thinned(samples: Sequence[Json], start: float, end: float) -> List[Json]:
    """The last sample of each of ``_POINTS`` equal parts of the time."""
    kept = {int(_POINTS * (sample["time"] - start) / (end - start)): sample for sample in samples}
    return [kept[part] for part in sorted(kept)]


def _strokes(line: Line, samples: Sequence[Json], start: float, end: float) -> List[Html]:
    """The line, in one piece for each time without a gap."""
    values = [(sample["time"], line.percent(sample)) for sample in samples]
    pieces: List[List[Tuple[float, float]]] = []
    longest, last = _longest_gap([moment for moment, _value in values]), None
    for moment, value in values:
        if value is None:
            last = None
            continue
        if last is None or moment - last > longest:
            pieces.append([])
        pieces[-1].append((_WIDTH * (moment - start) / (end - start), _HEIGHT - value))
        last = moment
    return [_stroke(line.style, piece) for piece in pieces]


def _longest_gap(moments: Sequence[float]) -> float:
    distances = sorted(after - before for before, after in zip(moments, moments[1:]))
    return max(_GAP, 3 * distances[len(distances) // 2]) if distances else _GAP


def _stroke(style: str, piece: Sequence[Tuple[float, float]]) -> Html:
    """A step from each sample to the next; a sample alone is a short dash."""
    points = [piece[0]]
    for x, y in piece[1:]:
        points += [(x, points[-1][1]), (x, y)]
    if len(points) == 1:
        points.append((points[0][0] + 3, points[0][1]))
    text = " ".join("%.1f,%.1f" % point for point in points)
    return element("polyline", class_="line %s" % style, points=text)


def _rules() -> Html:
    heights = [_HEIGHT * part / 4 for part in range(5)]
    return joined(*(element("line", class_="rule", x1=0, x2=_WIDTH, y1="%g" % y, y2="%g" % y) for y in heights))


def _scale() -> Html:
    texts = [(8 + 150 * part / 4, "%d%%" % (100 - 25 * part)) for part in range(5)]
    return joined(*(element("text", text, class_="scale", x=-6, y="%g" % (y + 4)) for y, text in texts))


def _times(start: float, end: float) -> Html:
    """The times below the plot. The first and the last one stay inside of it."""
    labels = []
    for number in range(_TICKS):
        part = number / (_TICKS - 1)
        anchor = "first" if number == 0 else "last" if number == _TICKS - 1 else "middle"
        text = _tick(start + part * (end - start), end - start)
        labels.append(element("text", text, class_="time %s" % anchor, x="%g%%" % (100 * part), y=176))
    return joined(*labels)


def _tick(moment: float, span: float) -> str:
    return time.strftime("%H:%M" if span <= 2 * 86400 else "%d %b", time.localtime(moment))


def _moment(moment: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))


def _legend(lines: Sequence[Line]) -> Html:
    entries = [
        element(
            "li", element("svg", element("line", class_="line %s" % line.style, x1=0, x2=22, y1=6, y2=6)), line.name
        )
        for line in lines
    ]
    return element("ul", joined(*entries), class_="legend")
