# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps of a batch command in C(main1)."""

from __future__ import annotations

from .._agent.engine.batch import Batch
from .._agent.engine.client import Engine
from .._shared.documents.container_view import BatchStatus
from .._shared.documents.plan import Plan
from .._shared.documents.step_documents import StartedCommand
from .step import AgentHandle


def start(agent: AgentHandle, plan: Plan, again: bool = False) -> StartedCommand:
    """Start the command, unless it has been started. With C(again), also if it has ended."""
    return _batch(agent, plan).start(check=agent.check, again=again)


def wait(agent: AgentHandle, plan: Plan, seconds: float = 0) -> BatchStatus:
    """The state of the command when it has ended, or after so many seconds."""
    return _batch(agent, plan).wait(seconds)


def _batch(agent: AgentHandle, plan: Plan) -> Batch:
    return Batch(agent.connect(Engine), plan, agent.name)
