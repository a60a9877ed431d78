# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that read logs of containers."""

from __future__ import annotations

from typing import Sequence

from .._agent.engine.client import Engine
from .._agent.engine.logs import LogRequest, read_logs
from .._shared.codec import Json
from .step import AgentHandle


def read(
    agent: AgentHandle,
    session: str,
    containers: Sequence[str] = (),
    ended: bool = False,
    tail: int | None = None,
    since: int = 0,
    timestamps: bool = False,
    total: int = 64 << 20,
    deadline: int = 60,
) -> Json:
    """The logs of a session's containers: C(logs) has C(hostname), C(name), C(state) and C(text) of each."""
    request = LogRequest(session, containers, tail, since, timestamps, total, deadline, ended)
    return {"logs": read_logs(agent.connect(Engine), request)}
