# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``agent_check_info``: it checks the agents, and keeps the result for launches with a preflight."""

from __future__ import annotations

from typing import Any, Mapping

from ..module_utils._shared.codec import ModuleResult
from ..module_utils._shared.documents.findings import Requirements
from ..module_utils._shared.planning.rules import check_network_pool, seconds_up_to
from ..module_utils._shared.planning.variable import CHECK
from ..module_utils._shared.text.table import check_lines
from ..plugin_utils._client import last_check
from ..plugin_utils._doctor.run import check_agents
from ..plugin_utils._hosts.conducted_action import ConductorAction
from ..plugin_utils._hosts.conductor import Play
from ..plugin_utils._hosts.files import nice, write
from ..plugin_utils._variables.request_variables import checked_settings

_LONGEST = 60


class ActionModule(ConductorAction):
    """The steps are in _doctor.run."""

    def conduct(self, play: Play, options: Mapping[str, Any]) -> ModuleResult:
        seconds = seconds_up_to(_LONGEST)("seconds (agent_check_seconds)", options["seconds"])
        pools = check_network_pool("pools", options["pools"])
        settings = checked_settings(self, CHECK)
        result = check_agents(play, Requirements(pools, options["encrypted"], play.head), seconds)
        if not play.check:
            addresses = {host: play.address_of(host) for host in play.names}
            base = options["artifacts"] or play.artifacts
            play.warn(last_check.write_last_check(base, addresses, result.unfit, result.unguarded))
        document, file = nice(result.to_json()), settings.check_file
        has_changed = bool(file) and write(file, document + "\n", 0o644, check=play.check)
        is_json = settings.check_format == "json"
        lines = document.splitlines() if is_json else check_lines(result.findings, result.overlay)
        kept = {"unfit": dict(result.unfit), "unguarded": list(result.unguarded), "message": result.message}
        return {"changed": has_changed, **result.to_json(), **kept, "lines": lines}
