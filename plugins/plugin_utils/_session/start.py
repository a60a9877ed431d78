# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Create and start the containers of a session, with their keys and secrets."""

from __future__ import annotations

from typing import Dict, List, Sequence, Tuple

from ...module_utils._agent.engine.secrets import SecretFiles
from ...module_utils._agent.ssh.container_files import ID_CONTAINER
from ...module_utils._shared.codec import Json
from ...module_utils._shared.documents.plan import Plan
from ...module_utils._shared.documents.session_json import SessionDocument
from ...module_utils._shared.documents.step_documents import Change
from ...module_utils._shared.documents.topology import kept_apps, waves
from ...module_utils._shared.planning.request import Request
from ...module_utils._shared.planning.secret_rules import SECRETS
from ...module_utils._shared.text.summaries import session_apps
from .._client import shared_config
from .._client.identity import SessionIdentity
from .._client.secret_values import delivered as delivered_secrets
from .._client.session_dir import DOCUMENT, Artifacts
from .._hosts.call import Call
from .._hosts.conductor import Play, StepError
from .._hosts.steps import (
    APPS_READY,
    CONTAINERS_BEGUN,
    CONTAINERS_CREATED,
    CONTAINERS_STARTED,
    CONTAINERS_STOPPED,
    NETWORK_PRESENT,
)
from .record import kept_document

# The files that a controller needs of a session that runs. All but the secret can be written again.
_NEEDED = (ID_CONTAINER, "known_hosts", DOCUMENT, "ssh_config")
_NO_KEYS = (
    "Session %s runs, but %s does not have its keys: copy that directory from the controller that launched the session, or terminate "
    "the session and launch it again."
)


def create_containers(play: Play, plan: Plan, network_host: str, made: Plan) -> None:
    """Create the network, on its host before the containers there, and the containers in ``made``, which the session lacks."""
    is_apart = network_host not in plan.agents
    if is_apart:
        with play.phase("network"):
            play.on(network_host, NETWORK_PRESENT(plan=plan))
    with play.phase("create", made):
        created = play.on_each(
            _busy(plan, made), lambda agent: CONTAINERS_CREATED(plan=plan.part(agent), network=agent == network_host)
        )
    if not is_apart:
        play.timings["network"] = max((one.network_duration for one in created.values()), default=0.0)


def start_containers(play: Play, plan: Plan, request: Request, made: Plan) -> None:
    """Start the containers, install SSH and secrets in them, and write the files of the user."""
    artifacts = Artifacts(play.artifacts, plan.session.name)
    own = SessionIdentity.of(plan, artifacts, check=False)
    given = play.value(SECRETS) if plan.session.secrets else None
    secrets = delivered_secrets(plan.session, given, play.action._loader, play.artifacts)

    with play.phase("start", made):
        try:
            _start_in_order(play, plan, own, request, secrets, _busy(plan, made))
        except StepError:
            own.forget()
            raise
        own.keep({}, play.route_to(plan.main.agent), check=False, diff=False)


def _busy(plan: Plan, made: Plan) -> Sequence[str]:
    """The agents on which containers are created or started. Those of roles, with secrets or a fabric may wait although they run."""
    may_wait = plan.session.roles or plan.session.secrets or plan.network.fabric
    return plan.agents if may_wait else made.agents


def _start_in_order(
    play: Play, plan: Plan, own: SessionIdentity, request: Request, secrets: SecretFiles | None, agents: Sequence[str]
) -> None:
    """Start the roles whose containers wait for none first, and wait until they are ready. Without roles, all start together."""
    for roles in waves(plan.session.roles) or [()]:
        part = plan.of_roles(roles) if roles else plan

        def call(agent: str, part: Plan = part) -> Call[Change]:
            return CONTAINERS_STARTED(
                plan=part.part(agent),
                bundle=own.bundle(agent),
                secrets=secrets,
                bootstrap_timeout=request.bootstrap_timeout,
            )

        play.on_each([agent for agent in part.agents if agent in agents], call)
        busy = [role.name for role in plan.session.roles if role.name in roles and (role.command or role.ready)]
        begun = plan.of_roles(busy)
        more = {
            agent: CONTAINERS_BEGUN(plan=begun.part(agent), deadline=request.apps_timeout) for agent in begun.agents
        }
        if busy:
            play.on_each(begun.agents, more.__getitem__)


def stop_containers(play: Play, plan: Plan) -> None:
    """Stop the containers of a plan, all at the same time: TERM, and KILL after the grace of the session. Their files stay."""
    with play.phase("stop", plan):
        play.on_each(plan.agents, lambda agent: CONTAINERS_STOPPED(plan=plan.part(agent)))


def await_apps(play: Play, plan: Plan, seconds: int) -> None:
    """Wait until the apps of each container answer: they have started together."""
    names: Dict[Tuple[str, str], List[str]] = {}
    for container, app in kept_apps(plan):
        names.setdefault((container.agent, container.hostname), []).append(app.name)
    if not names:
        return
    with play.phase("apps"):
        for (agent, hostname), apps in names.items():
            play.on(agent, APPS_READY(session=plan.session.id, names=apps, deadline=seconds, hostname=hostname))


def restore_files(play: Play, plan: Plan, session: Json) -> List[str]:
    """Write the files of a running session that the controller has lost; returns their names. Lost keys are a warning."""
    artifacts = Artifacts(play.artifacts, plan.session.name)
    if artifacts.session != plan.session.id:
        play.warn(_NO_KEYS % (plan.session.name, artifacts.folder))
        return []
    missing = [name for name in _NEEDED if not (kept_document(artifacts) if name == DOCUMENT else artifacts.read(name))]
    if missing and not play.check:
        route = play.route_to(plan.main.agent)
        SessionIdentity.of(plan, artifacts, check=False).keep({}, route, check=False, diff=False)
        if DOCUMENT in missing:
            address = play.address_of(plan.main.agent)
            document = SessionDocument.of_plan(plan, session, session_apps(plan, address, artifacts.folder))
            artifacts.write_json(DOCUMENT, document.to_json())
        play.warn(shared_config.update(artifacts.base))
    return missing
