# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Verify a session: log in to main1 as its user does, and reach every other container from there."""

from __future__ import annotations

from ...module_utils._core.errors import ComputeError
from ...module_utils._core.model import Plan
from ...module_utils._docker.logs import LAST_LINES, joined_lines
from ...module_utils._ssh.config_files import ssh_port
from .._artifacts import Artifacts
from .._proof import Proof, seconds_for
from .._ssh_reachability import SshEndpoint, reach
from .play import Play

_MOST_OF_LOGS = 1 << 16


def verify(play: Play, plan: Plan, seconds: int) -> None:
    """Reach every container of a session by SSH. Raises ComputeError for the first that does not answer."""
    artifacts = Artifacts(play.artifacts, plan.session.name)
    identity = artifacts.known_identity(plan.session.id, plan.session.name)
    route = play.route_to(plan.main.agent)
    endpoint = SshEndpoint(
        host=route.address,
        port=ssh_port(plan).host_port,
        user=plan.session.user.name,
        key_file=artifacts.folder + "/id_container",
        host_key=identity.host(plan.main.hostname).public,
        name=plan.main.hostname,
        proxy=route.proxy,
    )
    with play.phase("verify", plan):
        reach(endpoint, Proof.of(plan), seconds_for(seconds, len(plan.containers)), lambda: _refuse_ended(play, plan))


def _refuse_ended(play: Play, plan: Plan) -> None:
    """Raise an error for a container of the plan that has ended: it will not answer."""
    options = {"session": plan.session.id, "ended": True, "tail": LAST_LINES, "total": _MOST_OF_LOGS, "deadline": 10}

    for agent, answer in play.logs(plan.agents, lambda _agent: options).items():
        # The verification itself reports what does not answer.
        for log in answer.get("logs") or ():
            values = (log["hostname"], agent, joined_lines(log["text"]).rstrip("."))
            message = "%s: on %s the container ended right after its start; its last lines: %s."
            raise ComputeError(message % values, str(log["hostname"]))
