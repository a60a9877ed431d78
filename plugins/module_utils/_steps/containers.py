# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that create, start, change, stop and remove the containers of sessions."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, ContextManager, Dict, Optional, Sequence

from .._agent.engine import fabric
from .._agent.engine.client import Engine
from .._agent.engine.commit import CommitEngine, sweep
from .._agent.engine.connection import naming_image
from .._agent.engine.containers import AgentContainers
from .._agent.engine.data_folders import check_folders_answer
from .._agent.engine.networks import check_host_ports, create_network, without_networks
from .._agent.engine.payloads import writable_folders
from .._agent.engine.removal import Removal
from .._agent.engine.removal import stopped as stop_containers
from .._agent.engine.roles import RoleContainers
from .._agent.engine.secrets import SecretFiles
from .._agent.engine_settings import check_publishing
from .._agent.host import engine_limits, engine_pid, listening_ports
from .._agent.ssh.container_files import SshFiles
from .._agent.ssh.installer import FileInstaller
from .._agent.ssh.member_files import MemberFiles
from .._shared.documents.plan import Plan
from .._shared.documents.step_documents import Begun, ContainerChanges, Followed, InstalledFiles, LogRequest
from .._shared.waiting import deadline_in
from .step import AgentHandle


def created(
    agent: AgentHandle,
    plan: Plan,
    network: bool = False,
    bundle: Optional[SshFiles] = None,
    deadline: int = 60,
    runtime_volume: str = "",
) -> ContainerChanges:
    """Create the containers of a part of a plan; with C(network), the network first; with C(bundle), the engine unpacks files."""
    launch = _launch(agent, plan, deadline, runtime=runtime_volume)
    check_publishing(launch.plan, agent.name, engine_pid(agent.docker_host))
    with _naming_images(launch.plan):
        if launch.plan.network.fabric:
            fabric.create_fabric(launch.engine, launch.plan, agent.fabric, check=launch.check)
        if launch.plan.network.is_of_host:
            check_host_ports(launch.engine, launch.plan, listening_ports())
        begun = time.monotonic()
        made = create_network(launch.engine, launch.plan, launch.check) if network else None
        seconds = round(time.monotonic() - begun, 3)
        result = launch.created()
        if bundle:
            installer = FileInstaller(launch.engine, launch.plan, launch.agent, bundle)
            result = result.with_files(installer.install((), launch.check))
        if made is None:
            return result
        changed, diff = made.changed or result.changed, (*made.diff, *result.diff)
        return replace(result, changed=changed, diff=diff, network=made.network, network_duration=seconds)


def started(
    agent: AgentHandle,
    plan: Plan,
    bundle: Optional[SshFiles] = None,
    secrets: Optional[SecretFiles] = None,
    deadline: int = 60,
    bootstrap_timeout: int = 300,
    runtime_volume: str = "",
) -> ContainerChanges:
    """Start the containers, with the files of C(bundle) and the secrets of the session.

    PID 1 of each container without files gets them. They are made while the first containers start, which takes the engine longer.
    """
    settings = {"runtime": runtime_volume, "bootstrap_timeout": bootstrap_timeout}
    launch = _launch(agent, plan, deadline, delivery=secrets, **settings)
    with _naming_images(launch.plan):
        if bundle is None:
            return launch.started()
        # The engine reads files of the containers, for which it needs the folders that they mount.
        check_folders_answer(launch.plan.session, launch.agent)
        installer = FileInstaller(launch.engine, launch.plan, launch.agent, bundle)
        targets, absent = installer.lacking()
        folders = writable_folders(launch.plan.session)

        def archive(name: str) -> bytes:
            return prepared.result().archive(name, folders)

        with ThreadPoolExecutor(1) as pool:
            prepared = pool.submit(installer.installation, targets, absent)
            names = [target.container.hostname for target in targets]
            result = replace(launch, files={name: partial(archive, name) for name in names}).started()
        return result.with_files(prepared.result().changes())


def begun(agent: AgentHandle, plan: Plan, deadline: int = 120) -> Begun:
    """Begin the commands of the roles of the agent's part of a plan, and wait until each of its containers is ready."""
    engine = agent.connect(Engine)
    return RoleContainers(engine, plan, agent.name).begun(deadline)


def limited(agent: AgentHandle, plan: Plan) -> ContainerChanges:
    """Write the limits of the session into its running containers."""
    return _launch(agent, plan).limited()


def followed(agent: AgentHandle, plan: Plan, bundle: SshFiles) -> Followed:
    """Write the files of running containers that name the members of their session, if the members are others now."""
    engine = agent.connect(Engine)
    return MemberFiles(engine, plan, agent.name, bundle).follow(check=agent.check)


def refilled(agent: AgentHandle, plan: Plan, bundle: SshFiles, hostnames: Sequence[str]) -> InstalledFiles:
    """Write all files of the session again into those of these containers that run here, and let sshd read them."""
    engine = agent.connect(Engine)
    return FileInstaller(engine, plan, agent.name, bundle).refill(hostnames, agent.check)


def stopped(
    agent: AgentHandle,
    plan: Optional[Plan] = None,
    sessions: Sequence[str] = (),
) -> ContainerChanges:
    """Stop the containers of a plan, or of sessions."""
    if plan is not None:
        return _launch(agent, plan).stopped()
    return stop_containers(agent.connect(Engine), sessions, check=agent.check)


def absent(
    agent: AgentHandle,
    sessions: Sequence[str],
    launch: str = "",
    keep: Sequence[str] = (),
    network: bool = False,
    logs: Optional[LogRequest] = None,
    deadline: int = 60,
    over: Sequence[str] = (),
    grace: Optional[Dict[str, int]] = None,
) -> ContainerChanges:
    """Remove the containers of sessions, or of one launch, except the IDs in C(keep); with C(network), their networks, too.

    Programs of the sessions in C(over), which have ended before, get no further time, and those of other sessions at most C(grace).
    """
    engine = agent.connect(Engine)
    removal = Removal(engine, sessions, launch, deadline, logs, frozenset(keep), frozenset(over), grace or {})
    result = removal.carry_out(check=agent.check)
    if not agent.check:
        sweep(agent.connect(CommitEngine), sessions=sessions)
    if result.failure is not None:
        return result
    if not network:
        return result.with_removed(() if agent.check else fabric.remove_fabric(engine, sessions))
    networks, left = without_networks(engine, sessions, deadline, agent.check)
    changed, diff = result.changed or networks.changed, (*result.diff, *networks.diff)
    result = replace(result, changed=changed, diff=diff, left_networks=tuple(left), warnings=networks.warnings)
    return result.with_removed(networks.removed)


def _launch(agent: AgentHandle, plan: Plan, deadline: int = 60, **settings: Any) -> AgentContainers:
    """The containers of the agent. ``settings`` are what only some steps need of them."""
    return AgentContainers(
        engine=agent.connect(Engine),
        plan=plan,
        agent=agent.name,
        deadline=deadline_in(deadline),
        limits=engine_limits(agent.docker_host),
        edition=agent.edition,
        mps=agent.mps,
        check=agent.check,
        **settings,
    )


def _naming_images(plan: Plan) -> ContextManager[None]:
    return naming_image(", ".join(plan.images) or plan.session.image)
