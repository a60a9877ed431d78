# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules for data that others write: an agent's report, and answers of the head.

A report that one agent has made up must not stop decisions about all others, so each part has its type, and a size that can exist.
"""

from __future__ import annotations

from typing import Any

from .schema import (
    AGENT,
    AMOUNT,
    GPUS,
    INTERFACE,
    MACHINE,
    MADE,
    MAKER,
    PORT,
    RESOURCES,
    SHORT_NAME,
    UUID,
    Required,
    a_flag,
    a_host_address,
    a_line,
    a_number,
    a_subnet,
    a_text,
    an_address,
    by_name,
    is_cpuset,
    matching,
    or_none,
    texts,
    whole,
)

_ID = matching(r"(?:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})?")
_EXIT_CODE = or_none(whole(65535, -65535))
_GPU_USE = [Required(id=a_line, percent=or_none(AMOUNT), memory=or_none(AMOUNT), capacity=or_none(AMOUNT))]
_NUMBERS = by_name(a_line, AMOUNT)
_GPU_HEALTH = [Required(id=a_line, state=matching("green|yellow|red"), reasons=[a_line])]
_GPU_SHARING = Required(kind=matching("none|mps|mig"), reason=a_line, may_pass=a_flag)


def _are_cpus(value: Any) -> bool:
    return value == "" or is_cpuset(value)


_CONTAINER = {
    "id": _ID,
    "session": UUID,
    "name": a_line,
    "owner": a_line,
    "group": a_line,
    "mode": a_line,
    "hostname": SHORT_NAME,
    "role": SHORT_NAME,
    "index": whole(9999),
    "rank": whole(9999),
    "launch": a_line,
    "spec": a_line,
    "engine_id": a_line,
    "engine_name": a_line,
    "image": a_line,
    "state": a_line,
    "exit_code": _EXIT_CODE,
    "oom_killed": a_flag,
    "created": a_number,
    "address": a_line,
    "network": a_line,
    "resources": RESOURCES,
    "ports": [PORT],
    "published": [PORT],
    "enforced": {"millicpus": AMOUNT, "memory": AMOUNT, "pids": AMOUNT, "cpuset": _are_cpus},
    "labels": texts,
    "batch": Required(exit_code=_EXIT_CODE, oom_killed=a_flag, reason=a_text, begun=a_flag),
    "apps": [Required(name=SHORT_NAME, state=a_line, exit_code=_EXIT_CODE)],
    "relays": [Required(name=SHORT_NAME, host_ip=a_line, port=PORT)],
    "measured": or_none(Required(millicpus=AMOUNT, memory=AMOUNT, gpus=_GPU_USE)),
}
_SWARM = {
    "cluster_id": a_line,
    "node_id": a_line,
    "state": a_line,
    "managers": [a_line],
    "manager": a_flag,
    "address": a_line,
    "data_path_port": PORT,
}
_RDMA_PORT = {"name": a_line, "link_layer": a_line, "active": a_flag, "fabric": a_flag, "host": a_flag}
REPORT = {
    "name": AGENT,
    "reachable": a_flag,
    "schedulable": a_flag,
    "may_return": a_flag,
    "reason": a_text,
    "avoid": a_text,
    "group": a_line,
    "architecture": MACHINE,
    "publish": an_address,
    "address": a_line,
    "capacity": {"millicpus": AMOUNT, "memory": AMOUNT, "gpus": GPUS, "cpu_ids": [whole(65535)]},
    "engine": {"version": a_line, "api": a_line, "rootless": a_flag, "swarm": _SWARM, "identity": a_line},
    "limits": {"nofile": a_number, "memlock": a_number},
    "paths": by_name(a_line, a_flag),
    "image": {
        "reference": a_text,
        "id": a_line,
        "architecture": MACHINE,
        "present": a_flag,
        "made": MADE,
        "owner": MAKER,
    },
    "runtime": {"volume": a_line, "present": a_flag},
    "kernel": _NUMBERS,
    "mtu": whole(65535),
    "routes": [a_subnet],
    "needed_addresses": [a_subnet],
    "overlay_guard": Required(state=a_line, port=PORT),
    "networks": [{"name": a_line, "driver": a_line, "subnets": [a_subnet], "session": a_line}],
    "ports": [PORT],
    "names": [a_line],
    "containers": [_CONTAINER],
    "ignored_containers": [Required(engine_name=a_line, label=a_line)],
    "silent_folders": [a_line],
    "gpu_use": _GPU_USE,
    "gpu_health": _GPU_HEALTH,
    "gpu_sharing": _GPU_SHARING,
    "fabric": {"interface": a_line, "reason": a_text},
    "host_network": {
        "address": lambda value: value == "" or a_host_address(value),
        "interface": lambda value: value == "" or INTERFACE(value),
        "reason": a_text,
    },
    "rdma_ports": [Required(**_RDMA_PORT)],
}

# What an agent has of a head.
STORE = Required(sessions=AMOUNT, policy=a_flag)
