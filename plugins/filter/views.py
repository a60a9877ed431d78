# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filters for summaries and tables, implemented in module_utils/_views.py."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Sequence

from ansible_collections.cluster.compute.plugins.module_utils import _views as views
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._core.units import show_bytes
from ansible_collections.cluster.compute.plugins.module_utils._page.page import sessions_page
from ansible_collections.cluster.compute.plugins.module_utils._planning.provisioning import needed_environment


def findings_table(findings: Sequence[Json]) -> List[str]:
    """A line for every finding."""
    columns = ("status", "check", "where", "found", "remedy")
    return views.table(columns, [[finding[column] for column in columns] for finding in findings])


def avoided_agents(unfit: Mapping[str, str], age: float) -> List[str]:
    """A line for each agent that a launch avoids; ``age`` is in seconds, 0 for a check of this launch.

    >>> avoided_agents({"agent3": "swarm on agent3: in no Swarm"}, 720)
    ['agent3 is avoided (checked 12 min ago): swarm on agent3: in no Swarm']
    """
    when = " (checked %s ago)" % views.show_seconds(age) if age else ""
    return ["%s is avoided%s: %s" % (name, when, reason) for name, reason in sorted(unfit.items())]


def overlay_matrix(pairs: Sequence[Json]) -> List[str]:
    """A row for each agent that sends, and a column for each agent that receives."""
    names = sorted({name for pair in pairs for name in (pair["from"], pair["to"])})
    cells = {(pair["from"], pair["to"]): pair for pair in pairs}
    rows = [[name] + [_link(cells.get((name, other))) for other in names] for name in names]
    return views.table(["Mbit/s, ms", *names], rows)


def _link(pair: Json | None) -> str:
    """Throughput and latency, with a dash for what was not measured."""
    if pair is None:
        return "-"
    shown = (("%.0f", pair["mbits"]), ("%.2f", pair["milliseconds"]))
    return ", ".join("-" if value is None else text % value for text, value in shown)


def environments_table(environments: Sequence[Json], images: Sequence[Json]) -> List[str]:
    """A line for every version of every environment: its apps, the size of its image, and the agents that have it.

    ``images`` are the results of the module ``image_info``, of all agents and environments.
    """
    found = [result["image"] for result in images if (result.get("image") or {}).get("present")]
    rows = []
    for entry in environments:
        own = [image for image in found if image["reference"] == entry["image"]]
        size = show_bytes(max(image["size"] for image in own) >> 20 << 20) if own else "-"
        agents = ", ".join(image["agent"] for image in own) or "-"
        rows.append(
            (entry["name"], entry["version"], ", ".join(entry["apps"]) or "-", size, agents, entry["description"])
        )
    return views.table(("environment", "version", "apps", "size", "agents", "description"), rows)


def environment_to_build(hostvars: Mapping[str, Json], hosts: Sequence[str]) -> str:
    """The environment that no host has, by the report that each host of the launch has registered; empty for none."""
    return needed_environment([hostvars[host]["__session_report"] for host in hosts])


class FilterModule:
    """The collection's filters."""

    def filters(self) -> Dict[str, Callable[..., Any]]:
        return {
            "names_matching": views.names_matching,
            "match_summary": views.match_summary,
            "what_happened": views.what_happened,
            "show_time": views.show_time,
            "sessions_to_end": views.finished_sessions,
            "logs_view": views.logs_view,
            "sessions_page": sessions_page,
            "avoided_agents": avoided_agents,
            "needed_environment": environment_to_build,
            "environments_table": environments_table,
            "findings_table": findings_table,
            "overlay_matrix": overlay_matrix,
        }
