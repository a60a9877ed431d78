# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What owners have used, as a table and as CSV."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import csv
import io
from typing import List, Sequence

from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json

COLUMNS = ("month", "kind", "name", "sessions", "cpu_hours", "memory_gib_hours", "gpu_hours")


def lines(usage: Sequence[Json]) -> List[str]:
    """
    >>> lines([])
    ['No session has held anything.']
    """
    if not usage:
        return ["No session has held anything."]
    rows = [[column.replace("_", " ") for column in COLUMNS]]
    rows += [[_shown(entry[column]) for column in COLUMNS] for entry in usage]
    widths = [max(len(row[place]) for row in rows) for place in range(len(COLUMNS))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


def csv_text(usage: Sequence[Json]) -> str:
    """A header and a line for each entry. Names of owners begin with a letter or a digit, so no cell is a formula."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(usage)
    return text.getvalue()


def _shown(value: object) -> str:
    return "%.1f" % value if isinstance(value, float) else str(value)
