# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Resize a running session: the steps that a launch makes beside the steps of a repair."""

from __future__ import annotations

from typing import Collection, Tuple

from ...module_utils._shared.codec import Json
from ...module_utils._shared.documents.plan import Plan
from ...module_utils._shared.documents.step_documents import Change, RemovedContainers
from ...module_utils._shared.errors import StateError
from ...module_utils._shared.planning.plan import with_user_environment
from ...module_utils._shared.planning.request import Request
from ...module_utils._shared.planning.request_checks import check_together
from ...module_utils._shared.planning.resizing import resized, without
from .._client.identity import SessionIdentity
from .._client.request_cache import KeptRequests
from .._client.session_dir import Artifacts
from .._hosts.call import Call
from .._hosts.conductor import Play
from .._hosts.steps import CONTAINERS_ABSENT, CONTAINERS_FOLLOWED
from .._variables.templates import render_environment
from .launch_spec import Launch
from .removal import remove_containers
from .session_file import running_session


def asked_again(play: Play, name: str, size: int) -> Tuple[Request, str]:
    """The request of a session that runs, in another size, and the ID of the session. Raises InputError without such a session.

    A StateError for a session with roles: one number does not name the role.
    """
    found = running_session(play)
    request = found.request
    KeptRequests(play.artifacts).check(found.id, request, play.head)
    if request.roles:
        message = "Session %s has roles: set the size of a role in its session file, and run cluster-compute up with it again."
        raise StateError(message % name, name)
    wanted = request.with_sizes([size])
    check_together(wanted)
    return wanted, found.id


def remove_strangers(play: Play, placed: Launch, plan: Plan) -> None:
    """Remove the containers of the session that its plan does not have any more."""
    agents = {agent for _hostname, agent in placed.decision.removed}
    found = [agent for agent in play.names if agent in agents]
    with play.phase("remove"):
        remove_containers(play, found, lambda agent: _all_but(plan, placed.decision.removed, agent))


def update_members(play: Play, plan: Plan) -> None:
    """Write the names of the members into the files of the controller and of the containers that run, where they differ."""
    own = SessionIdentity.of(plan, Artifacts(play.artifacts, plan.session.name), check=False)
    with play.phase("follow"):
        play.on_each(plan.agents, lambda agent: _followed(plan, own, agent))
    own.keep({}, play.route_to(plan.main.agent), check=False, diff=False)


def undo(play: Play, placed: Launch, plan: Plan) -> None:
    """After a growth that has failed: the session as it was before. What cannot be undone now is undone by the next command."""
    request = without(placed.asked.request, placed.decision.added)
    former = resized(plan, request, launch=plan.session.launch)
    former = with_user_environment(former, render_environment(request, former))
    artifacts, kept = Artifacts(play.artifacts, plan.session.name), KeptRequests(play.artifacts)
    play.try_on_each(plan.agents, lambda _agent: _all_but(former))
    if artifacts.identity(plan.session.id, create=False) is not None:
        own = SessionIdentity.of(former, artifacts, check=False)
        play.try_on_each(former.agents, lambda agent: _followed(former, own, agent))
        own.keep({}, play.route_to(plan.main.agent), check=False, diff=False)
    kept.keep(plan.session.id, request, kept.files(plan.session.id))


def size_change(placed: Launch, plan: Plan) -> Json:
    """The containers before and after, as a diff shows them."""
    after = {one.hostname: one.agent for one in plan.containers}
    before = {one.hostname: one.agent for one in plan.containers if one.hostname not in placed.decision.added}
    before.update(placed.decision.removed)
    return {"before": before, "after": after, "before_header": "containers", "after_header": "containers"}


def _all_but(plan: Plan, gone: Collection[Tuple[str, str]] = (), agent: str = "") -> Call[RemovedContainers]:
    """Return what removes all containers of the session on an agent but those of the plan that are not among those to go there."""
    keep = [one.id for one in plan.containers if (one.hostname, agent) not in gone]
    return CONTAINERS_ABSENT(sessions=[plan.session.id], keep=keep)


def _followed(plan: Plan, own: SessionIdentity, agent: str) -> Call[Change]:
    return CONTAINERS_FOLLOWED(plan=plan.part(agent), bundle=own.bundle(agent))
