# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The containers that compute together: their ranks, and the cluster of TensorFlow."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import json
from functools import lru_cache
from typing import Dict, Mapping, Sequence, Tuple

from .._core.model import Container, Role, Session
from .._core.topology import MAIN, members

CHIEF, PS, WORKER, EVALUATOR = "chief", "ps", "worker", "evaluator"


def computing_ranks(session: Session) -> Mapping[str, int]:
    """The rank of each container that computes, by its hostname. Without roles, all of them compute."""
    return _ranks(session.size, tuple((role.name, role.size, role.compute) for role in session.roles))


@lru_cache(maxsize=4)
def _ranks(size: int, roles: Tuple[Tuple[str, int, bool], ...]) -> Mapping[str, int]:
    everyone = members(size, [Role(name, count) for name, count, _computes in roles])
    idle = {name for name, _count, computes in roles if not computes}
    computing = [member.hostname for member in everyone if member.role not in idle]
    return {hostname: rank for rank, hostname in enumerate(computing)}


def ranks_of(session: Session, containers: Sequence[Container], container: Container, port: int) -> Dict[str, str]:
    """The place of a container among those that compute. The others have no rank: with one, they would join the training."""
    ranks = computing_ranks(session)
    master = {"MASTER_ADDR": next(iter(ranks)), "MASTER_PORT": str(port)}
    if container.hostname not in ranks:
        return master
    rank, local_rank = str(ranks[container.hostname]), container.local_rank
    if session.roles:
        before = containers[: container.rank]
        local_rank = sum(other.agent == container.agent and other.hostname in ranks for other in before)
    return {
        "WORLD_SIZE": str(len(ranks)),
        "WORLD_RANK": rank,
        "RANK": rank,
        "LOCAL_RANK": str(local_rank),
        **master,
        # Read by Lightning, and by launchers that start one process for each container.
        "NODE_RANK": rank,
    }


def tf_config(session: Session, container: Container, port: int) -> Dict[str, str]:
    """The variable TF_CONFIG: https://www.tensorflow.org/guide/distributed_training#TF_CONFIG

    With a role C(ps), C(worker) or C(evaluator), C(main1) is the chief, and containers of other roles have no part. Otherwise all that
    compute are workers.
    """
    sizes = {role.name: role.size for role in session.roles}
    if not {PS, WORKER, EVALUATOR} & set(sizes):
        ranks = computing_ranks(session)
        if container.hostname not in ranks:
            return {}
        return _variable('{"worker": %s}' % _addresses(tuple(ranks), port), WORKER, ranks[container.hostname])
    # Without parameter servers, the chief computes, too.
    has_chief = PS in sizes or "main1" in computing_ranks(session)
    tasks = {**({MAIN: CHIEF} if has_chief else {}), PS: PS, WORKER: WORKER}
    # An evaluator is no part of the cluster that the others connect to.
    kind = {**tasks, EVALUATOR: EVALUATOR}.get(container.role)
    if kind is None:
        return {}
    hostnames = {
        task: tuple("%s%d" % (role, index + 1) for index in range(sizes.get(role, 0))) for role, task in tasks.items()
    }
    parts = ['"%s": %s' % (task, _addresses(found, port)) for task, found in hostnames.items() if found]
    return _variable("{%s}" % ", ".join(parts), kind, container.index - 1)


def _variable(cluster: str, kind: str, index: int) -> Dict[str, str]:
    return {"TF_CONFIG": '{"cluster": %s, "task": {"type": "%s", "index": %d}}' % (cluster, kind, index)}


@lru_cache(maxsize=8)
def _addresses(hostnames: Tuple[str, ...], port: int) -> str:
    """The list that all containers have: making it for each of a thousand takes a second."""
    return json.dumps(["%s:%d" % (hostname, port) for hostname in hostnames])
