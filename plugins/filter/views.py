# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filters for summaries and tables, implemented in module_utils/_views.py."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence

from ansible_collections.cluster.compute.plugins.module_utils import _tables as tables
from ansible_collections.cluster.compute.plugins.module_utils import _views as views
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._page.page import sessions_page
from ansible_collections.cluster.compute.plugins.module_utils._planning.provisioning import needs_provisioning


def findings_table(findings: Sequence[Json]) -> List[str]:
    """A line for every finding."""
    columns = ("status", "check", "where", "found", "remedy")
    return views.table(columns, [[finding[column] for column in columns] for finding in findings])


class FilterModule:
    """The collection's filters."""

    def filters(self) -> Dict[str, Callable[..., Any]]:
        return {
            "session_summary": views.summary,
            "session_end": views.termination_summary,
            "sessions_table": tables.sessions_table,
            "names_matching": views.names_matching,
            "match_summary": views.match_summary,
            "what_happened": views.what_happened,
            "show_time": views.show_time,
            "sessions_to_end": views.finished_sessions,
            "logs_view": views.logs_view,
            "needs_provisioning": needs_provisioning,
            "agents_table": tables.agents_table,
            "owners_table": tables.owners_table,
            "sessions_page": sessions_page,
            "findings_table": findings_table,
        }
