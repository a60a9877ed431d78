# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What makes a ``torchrun`` without options train over the whole session.

torchrun reads the default of each of its options from a variable ``PET_…``. The variables are set on request only: with
PET_NNODES, ``torchrun --standalone`` waits for other containers. https://docs.pytorch.org/docs/stable/elastic/run.html
"""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Dict

from .._core.errors import InputError
from .._core.model import Container, Session
from .computing import computing_ranks

NONE, STATIC, ELASTIC = MODES = ("none", "static", "elastic")


@dataclass(frozen=True)
class Torchrun:
    """``nodes`` is MIN:MAX, empty for all containers; ``restarts`` is how often torchrun starts the processes again."""

    mode: str = NONE
    nodes: str = ""
    restarts: int = 3


def check_nodes(variable: str, value: Any) -> str:
    """``MIN:MAX``.

    >>> check_nodes("session_torchrun_nodes", "2:4")
    '2:4'
    """
    found = re.fullmatch(r"([1-9][0-9]{0,3}):([1-9][0-9]{0,3})", value) if isinstance(value, str) else None
    if value != "" and (found is None or int(found.group(1)) > int(found.group(2))):
        raise InputError(variable, value, "must be MIN:MAX, as in 1:3, with MIN at least 1 and at most MAX")
    return str(value)


def check_torchrun(torchrun: Torchrun, size: int) -> None:
    """The rules between the variables of torchrun and the size of the session. Raises InputError."""
    if torchrun.nodes and torchrun.mode != ELASTIC:
        raise InputError("session_torchrun_nodes", torchrun.nodes, "needs session_torchrun elastic")
    if torchrun.nodes and int(torchrun.nodes.partition(":")[2]) != size:
        rule = "must end with session_cluster_size, which is %d: torchrun runs in every container" % size
        raise InputError("session_torchrun_nodes", torchrun.nodes, rule)


def torchrun_environment(torchrun: Torchrun, session: Session, container: Container, port: int) -> Dict[str, str]:
    """The variables of one container: as many processes as it has GPUs, else one; none if it does not compute."""
    ranks = computing_ranks(session)
    if container.hostname not in ranks:
        return {}
    main = next(iter(ranks))
    processes = str(len(container.resources.devices) or 1)
    if torchrun.mode == STATIC:
        return {
            "PET_NNODES": str(len(ranks)),
            "PET_NODE_RANK": str(ranks[container.hostname]),
            "PET_NPROC_PER_NODE": processes,
            "PET_MASTER_ADDR": main,
            "PET_MASTER_PORT": str(port),
        }
    if torchrun.mode == ELASTIC:
        return {
            "PET_NNODES": torchrun.nodes or "1:%d" % len(ranks),
            "PET_NPROC_PER_NODE": processes,
            "PET_RDZV_BACKEND": "c10d",
            "PET_RDZV_ENDPOINT": "%s:%d" % (main, port),
            "PET_RDZV_ID": session.id,
            "PET_MAX_RESTARTS": str(torchrun.restarts),
            # The processes need a store of their own: a shared one keeps keys of the processes before a restart, and the
            # container that rejoins ends the whole training with DistStoreError.
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        }
    return {}
