# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Examinations and probes of agents without a fault, for unit tests of the doctor."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.examination import (
    CONTROLLERS,
    Examination,
    ExaminedEngine,
    ExaminedFabric,
    ExaminedGpus,
    ExaminedNetwork,
    InOverlay,
    NvLinks,
    Probe,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.findings import FULL, GOSSIP, VXLAN
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import GpuSharing, SwarmPlace

GIB = 1 << 30
ENGINE = ExaminedEngine(
    version="20.10.24+dfsg1",
    identity="",
    sdk="5.0.3",
    runtime=True,
    image=True,
    disk="/var/lib/docker",
    disk_free=50 * GIB,
    cgroups=CONTROLLERS,
    cgroup_version="2",
    cgroup_driver="systemd",
    nofile=1048576,
    memlock=-1,
    log_driver="json-file",
    storage="overlay2 on extfs",
    settings=(),
    open_api=(),
)
NO_GPUS = ExaminedGpus(0, 0, False, "", "", (), GpuSharing(), NvLinks())
NETWORK = ExaminedNetwork(
    address="",
    mtu=1500,
    routes=("192.0.2.0/24",),
    subnets=("172.17.0.0/16",),
    session_subnets=(),
    fabric=ExaminedFabric(),
    rdma=(),
    bridge_filter=True,
    session_guard="present",
)


def swarm(number: int, cluster: str = "home", **changes: Any) -> SwarmPlace:
    found = SwarmPlace(
        state="active",
        node_id=f"node{number}",
        cluster_id=cluster,
        manager=number <= 3,
        managers=("node1", "node2", "node3"),
        address=f"192.0.2.{number}",
    )
    return replace(found, **changes)


def report(number: int, **changes: Any) -> Examination:
    """An agent without a fault. Each change is a field of the examination or of a part of it."""

    def part(found: Any) -> Any:
        return replace(found, **{one.name: changes.pop(one.name) for one in fields(found) if one.name in changes})

    found = Examination(
        name=f"agent{number}",
        time=1000.0,
        python="3.11.2",
        architecture="x86_64",
        kernel={"neighbours": 1024, "processes": 4194304, "inotify": 8192, "files": 1048576},
        systemd=True,
        nfs=True,
        silent_folders=(),
        engine=part(replace(ENGINE, identity=f"identity{number}")),
        gpus=part(NO_GPUS),
        network=part(replace(NETWORK, address=f"192.0.2.{number}")),
        swarm=swarm(number),
        esp=True,
        esp_reason="taken",
    )
    return replace(found, **changes)


def probes(*names: str, closed: tuple[str, str, str] = ("", "", "")) -> dict[str, Probe]:
    """All agents receive the datagrams of all others, except for one pair and channel."""
    channels = (VXLAN, GOSSIP, FULL)
    pairs = [(one, other) for one in names for other in names if one != other]
    received: dict[str, list[tuple[str, str]]] = {name: [] for name in names}
    connected: dict[str, Any] = {name: {} for name in names}
    for one, other in pairs:
        received[other] += [(one, channel) for channel in channels if (one, other, channel) != closed]
        ports = {"7946": "open", "2377": "open"}
        if closed[:2] == (one, other) and closed[2] in ports:
            ports[closed[2]] = "silent"
        connected[one][other] = ports
    return {
        name: Probe(listened=True, sent=True, contained=True, received=tuple(received[name]), connected=connected[name])
        for name in names
    }


def overlay(own: str, *names: str, mbits: dict[str, float | None] | None = None) -> InOverlay:
    """What the container of an agent finds without a fault, in the plan's addresses of these agents."""
    others = [name for name in names if name != own]
    return InOverlay(
        names={name: f"10.201.192.{number}" for number, name in enumerate(names, 2) if name != own},
        heard=tuple((name, size) for name in others for size in ("small", "full")),
        latency=dict.fromkeys(others, 0.2),
        mbits=mbits or {},
        measured=True,
    )


NAMES = ("agent1", "agent2", "agent3")
THREE = [report(number) for number in (1, 2, 3)]
