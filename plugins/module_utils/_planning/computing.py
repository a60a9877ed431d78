# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The containers that compute together: their ranks, and the cluster of TensorFlow."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import json
from functools import lru_cache
from typing import Dict, Mapping, Sequence, Tuple

from .._core.constants import MASTER_PORT
from .._core.model import Container, Session
from .._core.topology import MAIN

PS, WORKER, EVALUATOR = "ps", "worker", "evaluator"
_CHIEF = "chief"


def computing_ranks(session: Session, containers: Sequence[Container]) -> Mapping[str, int]:
    """The rank of each container that computes, by its hostname. Without roles, all of them compute."""
    if not session.roles:
        return _ranks(tuple(container.hostname for container in containers))
    return _ranks(tuple(container.hostname for container in containers if session.computes(container)))


@lru_cache(maxsize=4)
def _ranks(hostnames: Tuple[str, ...]) -> Mapping[str, int]:
    return {hostname: rank for rank, hostname in enumerate(hostnames)}


def ranks_of(session: Session, containers: Sequence[Container], container: Container) -> Dict[str, str]:
    """The place of a container among those that compute. The others have no rank: with one, they would join the training."""
    ranks = computing_ranks(session, containers)
    if not session.computes(container):
        return {"MASTER_ADDR": next(iter(ranks)), "MASTER_PORT": str(MASTER_PORT)}
    rank = str(ranks[container.hostname])
    before = [other for other in containers[: container.rank] if other.agent == container.agent]
    local_rank = sum(other.hostname in ranks for other in before) if session.roles else container.local_rank
    return {
        "WORLD_SIZE": str(len(ranks)),
        "WORLD_RANK": rank,
        "RANK": rank,
        "LOCAL_RANK": str(local_rank),
        "MASTER_ADDR": next(iter(ranks)),
        "MASTER_PORT": str(MASTER_PORT),
        # Read by Lightning, and by launchers that start one process for each container.
        "NODE_RANK": rank,
    }


def tf_config(session: Session, containers: Sequence[Container], container: Container) -> Dict[str, str]:
    """The variable TF_CONFIG: https://www.tensorflow.org/guide/distributed_training#TF_CONFIG

    With a role C(ps), C(worker) or C(evaluator), C(main1) is the chief, and containers of other roles have no part. Otherwise all that
    compute are workers.
    """
    roles = {role.name for role in session.roles}
    if not roles & {PS, WORKER, EVALUATOR}:
        ranks = computing_ranks(session, containers)
        if container.hostname not in ranks:
            return {}
        return _variable('{"worker": %s}' % _addresses(tuple(ranks)), WORKER, ranks[container.hostname])
    # An evaluator is no part of the cluster that the others connect to.
    tasks = {PS: PS, WORKER: WORKER}
    # In a training without parameter servers the chief computes, too: https://www.tensorflow.org/guide/migrate/multi_worker_cpu_gpu_training
    if PS in roles or session.computes(containers[0]):
        tasks = {MAIN: _CHIEF, **tasks}
    kind = EVALUATOR if container.role == EVALUATOR else tasks.get(container.role)
    if kind is None:
        return {}
    hostnames = {name: tuple(one.hostname for one in containers if one.role == role) for role, name in tasks.items()}
    parts = ['"%s": %s' % (name, _addresses(found)) for name, found in hostnames.items() if found]
    return _variable("{%s}" % ", ".join(parts), kind, container.index - 1)


def _variable(cluster: str, kind: str, index: int) -> Dict[str, str]:
    return {"TF_CONFIG": '{"cluster": %s, "task": {"type": "%s", "index": %d}}' % (cluster, kind, index)}


@lru_cache(maxsize=8)
def _addresses(hostnames: Tuple[str, ...]) -> str:
    """The list that all containers have: making it for each of a thousand takes a second."""
    return json.dumps(["%s:%d" % (hostname, MASTER_PORT) for hostname in hostnames])
