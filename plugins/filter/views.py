# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filters for summaries and tables, implemented in module_utils/_text."""

from __future__ import annotations

from typing import Any, Callable, Dict

from ..module_utils._core.exits import what_happened
from ..module_utils._core.units import show_time
from ..module_utils._text import views


class FilterModule:
    """The collection's filters."""

    def filters(self) -> Dict[str, Callable[..., Any]]:
        return {
            "names_matching": views.names_matching,
            "match_summary": views.match_summary,
            "what_happened": what_happened,
            "show_time": show_time,
        }
