# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which RDMA ports of an agent work in a container, and the variables that make libraries use them.

The address of a RoCE port belongs to the network interface of its card, which stays with the host: a container on a bridge or an
overlay has no valid entry in the port's table of addresses. An InfiniBand port needs no interface.
"""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Dict, Sequence, Tuple

from .._core.constants import RDMA_FOLDER
from .._core.reports import Agent

_ROCE = "Ethernet"


def usable_ports(agent: Agent) -> Tuple[str, ...]:
    """The ports through which a container can exchange data."""
    return tuple(port.name for port in agent.rdma_ports if port.active and port.link_layer != _ROCE)


def rdma_refusal(agent: Agent) -> str:
    """Why an agent can hold no container of a session with RDMA; empty if it can."""
    if agent.paths.get(RDMA_FOLDER) is False:
        return f"has no {RDMA_FOLDER} for session_rdma"
    if not agent.rdma_ports:
        return "has no RDMA device for session_rdma"
    if usable_ports(agent):
        return ""
    roce = [port.name for port in agent.rdma_ports if port.link_layer == _ROCE]
    down = [port.name for port in agent.rdma_ports if port.link_layer != _ROCE]
    reasons = [f"{', '.join(roce)} is RoCE, which does not work in a container"] if roce else []
    reasons += [f"{', '.join(down)} is not active"] if down else []
    return f"has no port for session_rdma: {', '.join(reasons)}"


def rdma_environment(ports: Sequence[str]) -> Dict[str, str]:
    """Without these, UCX would use TCP through the interface of the session, and NCCL would try RoCE ports, too.

    https://openucx.readthedocs.io/en/master/running.html
    https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html ("=" asks for the exact names)
    """
    return {"UCX_NET_DEVICES": ",".join(ports), "NCCL_IB_HCA": "=" + ",".join(ports)} if ports else {}
