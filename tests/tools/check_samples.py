# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports and probes of agents without a fault, for unit tests of the doctor."""

from __future__ import annotations

from typing import Any

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.findings import FULL, GOSSIP, VXLAN
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import GpuSharing

GIB = 1 << 30
CONTROLLERS = ("CPU quota", "memory limit", "swap limit", "cpuset", "pids limit")


def swarm(number: int, cluster: str = "home", **changes: Any) -> dict[str, Any]:
    found = {
        "state": "active",
        "node_id": f"node{number}",
        "cluster_id": cluster,
        "manager": number <= 3,
        "managers": ["node1", "node2", "node3"],
        "address": f"192.0.2.{number}",
        "data_path_port": 0,
        "error": "",
        "is_gone": False,
    }
    return {**found, **changes}


def report(number: int, **changes: Any) -> dict[str, Any]:
    """An agent without a fault."""
    found = {
        "name": f"agent{number}",
        "reachable": True,
        "reason": "",
        "time": 1000.0,
        "address": f"192.0.2.{number}",
        "python": "3.11.2",
        "nfs": True,
        "routes": ["192.0.2.0/24"],
        **{"engine": "20.10.24+dfsg1", "identity": f"identity{number}"},
        "sdk": "5.0.3",
        "runtime": True,
        "image": True,
        "disk": "/var/lib/docker",
        "disk_free": 50 * GIB,
        "cgroups": dict.fromkeys(CONTROLLERS, True),
        "cgroup_version": "2",
        "cgroup_driver": "systemd",
        "systemd": True,
        "kernel": {"neighbours": 1024, "processes": 4194304, "inotify": 8192, "files": 1048576},
        **{"gpus": 0, "gpu_runtime": False, "amd_gpus": 0, "architecture": "x86_64"},
        **{"gpu_health": [], "gpu_driver": "", "gpu_toolkit": "", "nvlink": {"gpus": 0, "linked": 0}},
        "fabric": {"interface": "", "reason": "has no agent_fabric", "mtu": 0, "speed": 0},
        **{"rdma": [], "session_networks": [], "open_api": [], "settings": [], "gpu_sharing": GpuSharing().to_json()},
        "nofile": 1048576,
        "memlock": -1,
        "networks": ["172.17.0.0/16"],
        "log_driver": "json-file",
        "storage": "overlay2 on extfs",
        "mtu": 1500,
        **{"bridge_filter": True, "session_guard": "present"},
        "esp": True,
        "esp_reason": "taken",
        "silent_folders": [],
        "clock": 0.0,
        "swarm": swarm(number),
    }
    return {**found, **changes}


def probes(*names: str, closed: tuple[str, str, str] = ("", "", "")) -> dict[str, Any]:
    """All agents receive the datagrams of all others, except for one pair and channel."""
    channels = (VXLAN, GOSSIP, FULL)
    pairs = [(one, other) for one in names for other in names if one != other]
    received = {name: [] for name in names}
    connected: dict[str, Any] = {name: {} for name in names}
    for one, other in pairs:
        received[other] += [[one, channel] for channel in channels if (one, other, channel) != closed]
        ports = {"7946": "open", "2377": "open"}
        if closed[:2] == (one, other) and closed[2] in ports:
            ports[closed[2]] = "silent"
        connected[one][other] = ports
    return {
        name: {
            "listened": True,
            "sent": True,
            "contained": True,
            "received": received[name],
            "connected": connected[name],
        }
        for name in names
    }


def overlay(own: str, *names: str, mbits: dict[str, float] | None = None) -> dict[str, Any]:
    """What the container of an agent finds without a fault, in the plan's addresses of these agents."""
    others = [name for name in names if name != own]
    return {
        "names": {name: f"10.201.192.{number}" for number, name in enumerate(names, 2) if name != own},
        "heard": [[name, size] for name in others for size in ("small", "full")],
        "latency": dict.fromkeys(others, 0.2),
        "mbits": mbits or {},
        "measured": True,
    }


NAMES = ("agent1", "agent2", "agent3")
THREE = [report(number) for number in (1, 2, 3)]
