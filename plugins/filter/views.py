# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filters for summaries and tables, implemented in module_utils/_text."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence

from ..module_utils._core.documents import Json
from ..module_utils._core.exits import what_happened
from ..module_utils._core.units import show_time
from ..module_utils._text import views
from ..module_utils._text.table import table


def findings_table(findings: Sequence[Json]) -> List[str]:
    """A line for every finding."""
    columns = ("status", "check", "where", "found", "remedy")
    return table(columns, [[finding[column] for column in columns] for finding in findings])


def overlay_matrix(pairs: Sequence[Json]) -> List[str]:
    """A row for each agent that sends, and a column for each agent that receives."""
    names = sorted({name for pair in pairs for name in (pair["from"], pair["to"])})
    cells = {(pair["from"], pair["to"]): pair for pair in pairs}
    rows = [[name] + [_link(cells.get((name, other))) for other in names] for name in names]
    return table(["Mbit/s, ms", *names], rows)


def _link(pair: Json | None) -> str:
    """Throughput and latency, with a dash for what was not measured."""
    if pair is None:
        return "-"
    shown = (("%.0f", pair["mbits"]), ("%.2f", pair["milliseconds"]))
    return ", ".join("-" if value is None else text % value for text, value in shown)


class FilterModule:
    """The collection's filters."""

    def filters(self) -> Dict[str, Callable[..., Any]]:
        return {
            "names_matching": views.names_matching,
            "match_summary": views.match_summary,
            "what_happened": what_happened,
            "show_time": show_time,
            "findings_table": findings_table,
            "overlay_matrix": overlay_matrix,
        }
