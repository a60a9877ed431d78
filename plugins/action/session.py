# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``session``: it launches, repairs, restarts or ends sessions on the hosts of the play."""

from __future__ import annotations

from typing import Any, Mapping

from ..module_utils._shared.codec import ModuleResult
from ..plugin_utils._hosts.conducted_action import ConductorAction
from ..plugin_utils._hosts.conductor import Play
from ..plugin_utils._session.queue import follow_up
from ..plugin_utils._session.session import launch_session, restart, terminate_session
from ..plugin_utils._settings.options import OPTIONS


class ActionModule(ConductorAction):
    """The steps are in _session: session, place and launch, or terminate."""

    OPTIONS = OPTIONS["session"]

    def conduct(self, play: Play, options: Mapping[str, Any]) -> ModuleResult:
        if options["state"] == "restarted":
            return restart(play)
        try:
            if options["state"] == "absent":
                return terminate_session(play)
            return launch_session(play, prepares=not options["prepared"], checks=options["checks"])
        finally:
            # What an end has freed is for the sessions that wait.
            if play.waiting and not play.check:
                follow_up(play)
