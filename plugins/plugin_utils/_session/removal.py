# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The removal of containers, of which an agent may do a part."""

from __future__ import annotations

from typing import Sequence

from ...module_utils._shared.documents.step_documents import RemovedContainers, RemovedNetworks
from ...module_utils._shared.errors import Failure
from .._hosts.conductor import Asked, Play, StepError
from .._hosts.results import joint_failure


def failure_in(answer: RemovedContainers | RemovedNetworks | Failure) -> Failure | None:
    """Why an agent has not removed all of it; None if it has."""
    return answer.failure if isinstance(answer, RemovedContainers) else answer if isinstance(answer, Failure) else None


def remove_containers(play: Play, agents: Sequence[str], call: Asked[RemovedContainers]) -> None:
    """Remove containers on these agents. Raises StepError if anything stays."""
    failures = [failure_in(answer) for answer in play.try_on_each(agents, call).values()]
    if any(failures):
        raise StepError(joint_failure([failure for failure in failures if failure]))
