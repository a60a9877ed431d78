# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A compact drawing of the containers of a session over their agents: a box for each container, a row for each agent."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Dict, List, Sequence

from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._page.markup import Html, element, joined
from ansible_collections.cluster.compute.plugins.module_utils._tables import in_use

# Boxes for each agent. Of more containers, those that do not run come first, and a number stands for the rest.
_BOXES = 32
_AGENTS = 12
_MAY_RUN = ("unknown", "created", "paused", "restarting", "waiting")


def drawing(containers: Sequence[Json]) -> Html | None:
    """None for a session without containers."""
    by_agent: Dict[str, List[Json]] = {}
    for container in containers:
        by_agent.setdefault(container["agent"], []).append(container)
    if not by_agent:
        return None
    rows = [_row(agent, held) for agent, held in list(by_agent.items())[:_AGENTS]]
    left = len(by_agent) - len(rows)
    more = element("span", "… and %d more agents" % left, class_="more") if left else None
    return element("span", joined(*rows), more, class_="drawing")


def _row(agent: str, containers: Sequence[Json]) -> Html:
    chosen = containers
    if len(containers) > _BOXES:
        chosen = sorted(containers, key=lambda container: container["state"] == "running")[:_BOXES]
    left = len(containers) - len(chosen)
    boxes = element("span", joined(*(_box(container) for container in chosen)), class_="boxes")
    more = element("span", "+%d" % left, class_="more") if left else None
    return element("span", element("span", agent, class_="where"), boxes, more, class_="row")


def _box(container: Json) -> Html:
    state = container["state"]
    kind = "ok" if state == "running" else "warn" if state in _MAY_RUN else "bad"
    use = in_use(container.get("measured"))
    title = "%s: %s%s" % (container["hostname"], state, ", %s" % use if use else "")
    main = " main" if container["hostname"] == "main1" else ""
    return element("i", title=title, class_="box %s%s" % (kind, main), role="img", aria_label=title)
