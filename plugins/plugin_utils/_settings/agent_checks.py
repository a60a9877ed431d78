# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The check of the agents as a launch knows it: the result of another task, or what the controller has kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping, Sequence

from ...module_utils._shared.errors import InputError


@dataclass(frozen=True)
class AgentChecks:
    """The reason for each agent that gets no container, the agents whose containers reach overlays, and the age of a kept result."""

    unfit: Mapping[str, str] = field(default_factory=dict)
    unguarded: Sequence[str] = ()
    age: str = ""


def check_checks(variable: str, value: Any) -> AgentChecks:
    """The result of C(agent_check_info), of which other parts do not count."""
    unfit = value.get("unfit", {}) if isinstance(value, Mapping) else None
    if not isinstance(unfit, Mapping):
        rule = "must be the result of a check of agents, with the reason for each agent in unfit"
        raise InputError(variable, value, rule)
    reasons = {str(agent): str(reason) for agent, reason in unfit.items()}
    unguarded = [str(agent) for agent in value.get("unguarded") or ()]
    return AgentChecks(reasons, unguarded, str(value.get("age") or ""))
