# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Launches of containers on a real engine, for the tests of ``AgentContainers``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import docker
from engine_lab import AGENT, IMAGE, RUNTIME, make_image, make_runtime

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine import networks as _networks
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.client import Engine
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.containers import AgentContainers
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.removal import Removal
from ansible_collections.cluster.compute.plugins.module_utils._agent.host import engine_limits
from ansible_collections.cluster.compute.plugins.module_utils._shared import label
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Plan
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.step_documents import ContainerChanges
from ansible_collections.cluster.compute.plugins.module_utils._shared.waiting import deadline_in

Launcher = Callable[..., AgentContainers]


@contextlib.contextmanager
def engine_client(engine_host: str) -> Iterator[Any]:
    sdk = docker.APIClient(base_url=engine_host, version="auto")
    make_image(sdk)
    make_runtime(sdk)
    try:
        yield sdk
    finally:
        sdk.remove_volume(RUNTIME, force=True)


@contextlib.contextmanager
def launches(engine_host: str, client: Any) -> Iterator[Launcher]:
    """A function that prepares launches of plans, with their networks; everything is removed at the end."""
    engine = Engine(engine_host, 60, AGENT)
    plans: list[Plan] = []

    def launch(plan: Plan, **changes: Any) -> AgentContainers:
        plans.append(plan)
        if changes.pop("network", True):
            _networks.create_network(engine, plan, check=False)
        limits = engine_limits(engine_host)
        made = AgentContainers(engine, plan, AGENT, deadline=deadline_in(20), limits=limits, runtime=RUNTIME)
        return replace(made, **changes)

    try:
        yield launch
    finally:
        sessions = [plan.session.id for plan in plans]
        Removal(engine, sessions, "", 20).carry_out(check=False)
        _networks.remove_network(engine, sessions, deadline_in(20), check=False)


def ours(client: Any, plan: Plan) -> list[dict[str, Any]]:
    return list(client.containers(all=True, filters={"label": f"{label.SESSION}={plan.session.id}"}))


def inside(client: Any, plan: Plan, rank: int, command: str) -> str:
    made = client.exec_create(plan.containers[rank].name, ["/bin/sh", "-c", command], user="0")
    return str(client.exec_start(made["Id"]).decode().strip())


def actions(outcome: ContainerChanges) -> list[str]:
    return [action.action for action in outcome.actions]


@contextlib.contextmanager
def stranger(client: Any, name: str) -> Iterator[str]:
    """A running container that belongs to no session."""
    made = client.create_container(IMAGE, ["sleep", "600"], name=name, entrypoint=["/bin/busybox"])
    client.start(made["Id"])
    try:
        yield made["Id"]
    finally:
        client.remove_container(made["Id"], force=True)


def create_and_start(launch: AgentContainers) -> None:
    launch.created()
    launch.started()
