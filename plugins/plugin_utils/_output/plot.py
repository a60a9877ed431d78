# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Use over time as lines of a plot: what was allocated, and what was in use, as parts of the capacity at that time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Callable, List, Sequence, Tuple

from ...module_utils._shared.codec import Json
from ...module_utils._shared.documents.usage import Sample
from ...module_utils._shared.units import show_time

# The lines have coordinates of their own, which the page stretches to its width.
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
    percent: Callable[[Sample], float | None]


def _part(amount: float, whole: float) -> float | None:
    return min(100.0, 100.0 * amount / whole) if whole > 0 else None


LINES = (
    Line("cpus", "CPUs allocated", lambda sample: _part(sample.used.millicpus, sample.capacity.millicpus)),
    Line("memory", "memory allocated", lambda sample: _part(sample.used.memory, sample.capacity.memory)),
    Line("gpus", "GPUs allocated", lambda sample: _part(sample.used.gpus, sample.capacity.gpus)),
    Line("cpus used", "CPUs in use", lambda sample: _part(sample.measured.millicpus, sample.capacity.millicpus)),
    Line("memory used", "memory in use", lambda sample: _part(sample.measured.memory, sample.capacity.memory)),
    Line("gpus used", "GPUs in use", lambda sample: sample.measured.gpu_percent),
)


def plot(samples: Sequence[Sample], start: float, end: float) -> Json:
    """The samples of a span of time as ``lines``, each with its strokes, and the ``times`` below them."""
    inside = [sample for sample in samples if start <= sample.time <= end]
    # The last sample of each of these equal parts of the time.
    kept = {int(_POINTS * (sample.time - start) / (end - start)): sample for sample in inside}
    chosen = [kept[part] for part in sorted(kept)]
    drawn = [(line, _strokes(line, chosen, start, end)) for line in LINES]
    return {
        "is_empty": not inside,
        "label": f"Use from {show_time(start)} to {show_time(end)}",
        "lines": [{"style": line.style, "name": line.name, "strokes": strokes} for line, strokes in drawn if strokes],
        "times": _times(start, end),
    }


def _strokes(line: Line, samples: Sequence[Sample], start: float, end: float) -> List[str]:
    """The line, in one piece for each time without a gap."""
    values = [(sample.time, line.percent(sample)) for sample in samples]
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
    return [_stroke(piece) for piece in pieces]


def _longest_gap(moments: Sequence[float]) -> float:
    distances = sorted(after - before for before, after in zip(moments, moments[1:]))
    return max(_GAP, 3 * distances[len(distances) // 2]) if distances else _GAP


def _stroke(piece: Sequence[Tuple[float, float]]) -> str:
    """The points of steps from each sample to the next; a sample alone is a short dash."""
    points = [piece[0]]
    for x, y in piece[1:]:
        points += [(x, points[-1][1]), (x, y)]
    if len(points) == 1:
        points.append((points[0][0] + 3, points[0][1]))
    return " ".join("{:.1f},{:.1f}".format(*point) for point in points)


def _times(start: float, end: float) -> List[Json]:
    """The times below the plot. The first and the last one stay inside of it."""
    labels, form = [], "%H:%M" if end - start <= 2 * 86400 else "%d %b"
    for number in range(_TICKS):
        part = number / (_TICKS - 1)
        anchor = "first" if number == 0 else "last" if number == _TICKS - 1 else "middle"
        text = time.strftime(form, time.localtime(start + part * (end - start)))
        labels.append({"text": text, "anchor": anchor, "x": "%g%%" % (100 * part)})
    return labels
