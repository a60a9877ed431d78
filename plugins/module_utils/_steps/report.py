# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The step that reports an agent: its resources, and the containers of sessions on it."""

from __future__ import annotations

from .._agents.report import report, warnings_of
from .._core.documents import Json
from .._head.presence import presence
from .step import Agent


def collect(agent: Agent, options: Json, store: str = "") -> Json:
    """The report of an agent as C(agent), with the options of M(cluster.compute.agent_info).

    With the directory of the session store, C(store) says what this host has of a head.
    """
    place = {"docker_host": agent.docker_host, "timeout": agent.timeout, "runtime_edition": agent.edition}
    found = report({**options, **place})
    return {"agent": found, "warnings": warnings_of(found), **({"store": presence(store)} if store else {})}
