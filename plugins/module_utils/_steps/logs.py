# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that read logs of containers."""

from __future__ import annotations

from .._agent.engine.client import Engine
from .._agent.engine.logs import read_logs
from .._shared.documents.step_documents import LogRequest, Logs
from .step import AgentHandle


def read(agent: AgentHandle, wanted: LogRequest) -> Logs:
    """Read the logs of a session's containers."""
    return Logs(tuple(read_logs(agent.connect(Engine), wanted)))
