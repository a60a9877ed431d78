# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An agent's examination: what its engine and kernel say, and what no list tells is tried. Nothing of it stays."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import os
import platform
import secrets
import time
from typing import Sequence

from ansible_collections.cluster.compute.plugins.module_utils._agents import host
from ansible_collections.cluster.compute.plugins.module_utils._core.constants import (
    LABEL_CHECK,
    LABEL_SESSION,
    RUNTIME_VOLUME,
)
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import (
    ComputeError,
    EngineError,
    LibraryError,
)
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._core.waiting import deadline_in
from ansible_collections.cluster.compute.plugins.module_utils._docker.client import Engine, load_sdk
from ansible_collections.cluster.compute.plugins.module_utils._docker.reports import engine_entry, network_entry

PAUSE = 0.1
# Longer than a check takes, in seconds.
OLD = 600
# What an encrypted overlay asks of the kernel, in a network namespace that is gone with the container:
# https://github.com/moby/moby/blob/master/daemon/libnetwork/drivers/overlay/encryption.go
ESP = (
    "ip xfrm state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 1 mode transport "
    "aead 'rfc4106(gcm(aes))' 0x%s 64 && echo taken" % ("01" * 20)
)


def examine(options: Json) -> Json:
    """Everything about one agent; an engine that cannot be asked is a report that says so."""
    known = {
        "name": options["name"],
        "reachable": True,
        "reason": "",
        "time": time.time(),
        "python": platform.python_version(),
        "address": host.own_address(options["addresses"]),
        "nfs": any(os.path.exists(folder + "/mount.nfs") for folder in ("/sbin", "/usr/sbin")),
        "routes": host.routes(),
    }
    try:
        engine = Engine(options["docker_host"], options["timeout"], options["name"])
        return {**known, **_asked(engine, options)}
    except (EngineError, LibraryError) as error:
        return {**known, "reachable": False, "reason": error.message}


def _asked(engine: Engine, options: Json) -> Json:
    info = engine.info()
    swarm = _swarm(info)
    address = swarm["address"] or host.own_address(options["addresses"])
    limits = host.engine_limits(options["docker_host"])
    root = info.get("DockerRootDir") or "/var/lib/docker"
    networks = [network_entry(one) for one in engine.networks(everyone=True) if not _ours(one)]
    image = engine.image(options["image"]) is not None
    return {
        "engine": info.get("ServerVersion", ""),
        "sdk": load_sdk(options["docker_host"]).__version__,
        "runtime": engine.volume(RUNTIME_VOLUME) is not None,
        "image": image,
        "disk": root,
        "disk_free": free_space(root),
        "cgroups": _cgroups(info),
        "cgroup_version": str(info.get("CgroupVersion") or 1),
        "nofile": limits.nofile,
        "memlock": limits.memlock,
        "networks": [subnet for one in networks for subnet in one["subnets"]],
        "swarm": swarm,
        "address": address,
        "mtu": host.underlay_mtu([address]) or 1500,
        **_try_esp(engine, options["image"] if image and options["several"] else ""),
    }


def free_space(folder: str) -> int:
    """Bytes that are free where a folder lies; -1 where it cannot be looked at."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return -1
    return found.f_bavail * found.f_frsize


def _ours(network: Json) -> bool:
    return LABEL_SESSION in (network.get("Labels") or {})


def _swarm(info: Json) -> Json:
    swarm = info.get("Swarm") or {}
    joined = swarm.get("LocalNodeState") == "active"
    cluster = host.swarm_cluster(info.get("DockerRootDir") or "/var/lib/docker") if joined else ""
    return {**engine_entry(info, "", cluster)["swarm"], "error": swarm.get("Error") or ""}


def _cgroups(info: Json) -> Json:
    names = {
        "CPU quota": "CpuCfsQuota",
        "memory limit": "MemoryLimit",
        "swap limit": "SwapLimit",
        "cpuset": "CPUSet",
        "pids limit": "PidsLimit",
    }
    return {name: bool(info.get(key)) for name, key in names.items()}


def _try_esp(engine: Engine, image: str) -> Json:
    if not image:
        return {"esp": None, "esp_reason": ""}
    body = check_body(image, ["sh", "-c", ESP], "none", "esp")
    body["HostConfig"]["CapAdd"] = ["NET_ADMIN"]
    try:
        said = run_once(engine, "cluster-compute-check-esp-" + secrets.token_hex(6), body, deadline_in(20))
    except ComputeError as error:
        return {"esp": None, "esp_reason": error.message}
    return {"esp": "taken" in said, "esp_reason": " ".join(said.split())[:120].rstrip(".")}


def check_body(image: str, command: Sequence[str], network: str, token: str) -> Json:
    """A container of a check: no more rights than its network needs, and no session's label."""
    return {
        "Image": image,
        "User": "0:0",
        "Entrypoint": list(command),
        "Cmd": [],
        "Labels": {LABEL_CHECK: token},
        "HostConfig": {"NetworkMode": network, "CapDrop": ["ALL"], "Memory": 64 << 20},
    }


def run_once(engine: Engine, name: str, body: Json, deadline: float) -> str:
    """What a container says that is run to its end, and removed."""
    identity = start_anew(engine, name, body)
    try:
        while ((engine.inspect(identity) or {}).get("State") or {}).get("Running") and time.monotonic() < deadline:
            time.sleep(PAUSE)
        return engine.logs(identity)
    finally:
        engine.remove(identity, name)


def start_anew(engine: Engine, name: str, body: Json) -> str:
    """Start a check's container; those that killed checks have left, and that have ended by themselves, go first."""
    for one in engine.containers(everyone=True):
        if LABEL_CHECK in (one.get("Labels") or {}) and one["State"] in ("created", "exited") and _old(one):
            engine.remove(one["Id"], name)
    identity = engine.create(name, body)
    try:
        engine.start(identity, name)
    except ComputeError:
        engine.remove(identity, name)
        raise
    return identity


def _old(listed: Json) -> bool:
    """Older than any check that still goes on."""
    return time.time() - float(listed.get("Created") or 0) > OLD
