# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The step that reports an agent: its resources, and the containers of sessions on it."""

from __future__ import annotations

from .._agent.report import build_report, warnings_of
from .._head.presence import presence
from .._shared.codec import Json
from .step import AgentHandle


def collect(agent: AgentHandle, options: Json, store: str = "") -> Json:
    """The report of an agent as C(agent), with the options of M(cluster.compute.agent_info).

    With the directory of the session store, C(store) says what this host has of a head.
    """
    place = {"docker_host": agent.docker_host, "timeout": agent.timeout, "runtime_edition": agent.edition}
    found = build_report({**options, **place})
    return {"agent": found.to_json(), "warnings": warnings_of(found), **({"store": presence(store)} if store else {})}
