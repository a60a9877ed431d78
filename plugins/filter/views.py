# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What people see: summaries and tables. The text is made in module_utils/views.py."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence

from ansible_collections.cluster.compute.plugins.module_utils import _views as views
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._planning.batch_result import batch_result


def findings_table(findings: Sequence[Json]) -> List[str]:
    """A line for every finding."""
    columns = ("status", "check", "where", "found", "remedy")
    return views.table(columns, [[one[column] for column in columns] for one in findings])


def session_result(statuses: Sequence[Json], on_failure: str) -> Json:
    """The result of a batch session, from what its agents answer."""
    return batch_result(statuses, on_failure).to_json()


class FilterModule:
    """The collection's filters."""

    def filters(self) -> Dict[str, Callable[..., Any]]:
        return {
            "session_summary": views.summary,
            "session_end": views.ending,
            "sessions_table": views.sessions_table,
            "session_result": session_result,
            "what_happened": views.what_happened,
            "show_time": views.show_time,
            "sessions_to_end": views.to_end,
            "logs_view": views.logs_view,
            "agents_table": views.agents_table,
            "findings_table": findings_table,
        }
