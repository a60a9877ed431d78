# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The step that reports an agent: its resources, and the containers of sessions on it."""

from __future__ import annotations

from .._agents.report import report, warnings_of
from .._core.documents import Json
from .step import Agent


def collect(agent: Agent, options: Json) -> Json:
    """The report of an agent as C(agent), with the options of M(cluster.compute.agent_info)."""
    place = {"docker_host": agent.docker_host, "timeout": agent.timeout, "runtime_edition": agent.edition}
    found = report({**options, **place})
    return {"agent": found, "warnings": warnings_of(found)}
