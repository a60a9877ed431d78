# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What people see: summaries and tables. The text is made in module_utils/_document.py."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence

from ansible_collections.cluster.compute.plugins.module_utils import _document
from ansible_collections.cluster.compute.plugins.module_utils._model import Json


def findings_table(findings: Sequence[Json]) -> List[str]:
    """A line for every finding."""
    columns = ("status", "check", "where", "found", "remedy")
    return _document.table(columns, [[one[column] for column in columns] for one in findings])


class FilterModule:
    """The collection's filters."""

    def filters(self) -> Dict[str, Callable[..., Any]]:
        return {
            "session_summary": _document.summary,
            "session_end": _document.ending,
            "sessions_table": _document.sessions_table,
            "session_result": _document.result,
            "what_happened": _document.what_happened,
            "show_time": _document.show_time,
            "sessions_to_end": _document.to_end,
            "logs_view": _document.logs_view,
            "agents_table": _document.agents_table,
            "findings_table": findings_table,
        }
