# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Verify a session: log in to main1 as its user does, and reach every other container from there.

A session that lacks nothing is confirmed in the same way, with fewer logins, before a command says that there is nothing to do.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import List

from ...module_utils._agent.engine.logs import joined_lines
from ...module_utils._agent.ssh.config_files import ssh_port
from ...module_utils._shared.codec import Json
from ...module_utils._shared.documents.plan import Plan
from ...module_utils._shared.documents.step_documents import LogRequest, Logs
from ...module_utils._shared.errors import ComputeError
from .._client.identity import SessionIdentity
from .._client.proof import Proof, seconds_for
from .._client.session_dir import Artifacts
from .._client.ssh import SshEndpoint, reach
from .._hosts.conductor import Play
from .._hosts.steps import CONTAINERS_REFILLED, LOGS_READ

_MOST_OF_LOGS = 1 << 16
# Seconds for the logins: containers that run answer in less than one.
_PATIENCE = 30


def verify(play: Play, plan: Plan, seconds: int, proof: Proof | None = None) -> None:
    """Reach every container of a session by SSH, or those of a proof. Raises ComputeError for the first that does not answer."""
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
    wanted = proof or Proof.of(plan)
    with play.phase("confirm" if proof else "verify", plan):
        reach(endpoint, wanted, seconds_for(seconds, len(plan.containers)), lambda: _refuse_ended(play, plan))


def _refuse_ended(play: Play, plan: Plan) -> None:
    """Raise an error for a container of the plan that has ended: it will not answer."""
    read = LOGS_READ(wanted=LogRequest(plan.session.id, ended=True, total=_MOST_OF_LOGS, deadline=10))

    for agent, answer in play.answers(plan.agents, read).items():
        # The verification itself reports what does not answer.
        for log in answer.logs if isinstance(answer, Logs) else ():
            values = (log.hostname, agent, joined_lines(log.text).rstrip("."))
            message = "%s: on %s the container ended right after its start; its last lines: %s."
            raise ComputeError(message % values, log.hostname)


def confirm(play: Play, plan: Plan, seconds: int) -> Json:
    """Log in to C(main1), and from there to the first container of each group of the proof.

    If that fails, the files of the session are written again in the containers of that login, and the login is tried again. Returns
    C(refilled), the containers whose files are written again, or C(no_login), the last reason; nothing if all answer at once. A
    controller without the keys of the session cannot ask.
    """
    artifacts = Artifacts(play.artifacts, plan.session.name)
    if artifacts.session != plan.session.id:
        return {}
    first = _refusal(play, plan, seconds)
    if first is None:
        return {}
    names = [one.hostname for one in plan.containers if one.hostname in (plan.main.hostname, first.where)]
    with suppress(ComputeError):
        _refill(play, plan, names)
        second = _refusal(play, plan, seconds)
        if second is None:
            return {"refilled": names}
        first = second
    return {"no_login": f"no login to {first.where}: {first.message.rstrip('.')}"}


def _refusal(play: Play, plan: Plan, seconds: int) -> ComputeError | None:
    """Why a container takes no login; None if each does that is asked."""
    try:
        verify(play, plan, min(seconds, _PATIENCE), Proof.of(plan).heads())
    except ComputeError as error:
        return error
    return None


def _refill(play: Play, plan: Plan, names: List[str]) -> None:
    part = replace(plan, containers=tuple(one for one in plan.containers if one.hostname in names))
    own = SessionIdentity.of(plan, Artifacts(play.artifacts, plan.session.name), check=False)

    with play.phase("follow"):
        play.on_each(
            part.agents,
            lambda agent: CONTAINERS_REFILLED(plan=plan.part(agent), bundle=own.bundle(agent), hostnames=names),
        )
