# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that create and remove the networks of sessions."""

from __future__ import annotations

from typing import Sequence

from .._agent.engine import networks
from .._agent.engine.client import Engine
from .._shared.documents.plan import Plan
from .._shared.documents.step_documents import NetworkChanges
from .._shared.waiting import deadline_in
from .step import AgentHandle


def present(agent: AgentHandle, plan: Plan) -> NetworkChanges:
    """Create the network of a plan."""
    where = networks.network_place(plan) if plan.network.driver == "bridge" else ""
    return networks.create_network(Engine(agent.docker_host, agent.timeout, where), plan, agent.check)


def absent(agent: AgentHandle, sessions: Sequence[str], deadline: float = 30) -> NetworkChanges:
    """Remove the networks of sessions."""
    return networks.remove_network(
        Engine(agent.docker_host, agent.timeout, ""), sessions, deadline_in(deadline), agent.check
    )
