# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plot of the benchmark is well-formed, and higher values are higher."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

PLOT = Path(__file__).resolve().parents[1] / "bench/plot.py"


def plot() -> Any:
    spec = importlib.util.spec_from_file_location("plot", PLOT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_plot_has_a_line_for_each_name() -> None:
    text = plot().svg("Launch", {"floor <SDK>": [(4, 1.0), (32, 5.0)], "ours": [(32, 12.0), (4, 4.0)]})
    root = ElementTree.fromstring(text)
    space = "{http://www.w3.org/2000/svg}"
    lines = [line.attrib["points"].split() for line in root.iter(space + "polyline")]
    assert [len(line) for line in lines] == [2, 2]
    heights = [[float(point.split(",")[1]) for point in line] for line in lines]
    assert heights[0][1] > heights[1][1], "the axis of an SVG points down: 5 s is below 12 s"
    assert {"floor <SDK>", "ours", "Launch"} <= {label.text for label in root.iter(space + "text")}


def test_a_plot_of_nothing_is_an_image() -> None:
    assert ElementTree.fromstring(plot().svg("Nothing", {})).tag.endswith("svg")
