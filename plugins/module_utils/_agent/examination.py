# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The examination of an agent: properties of its engine and its kernel, and a test of encrypted networks."""

from __future__ import annotations

import json
import os
import platform
import re
import secrets
import time
from contextlib import suppress
from dataclasses import asdict
from typing import Any, List, Sequence

from .._shared import label
from .._shared.codec import Json
from .._shared.constants import REFERENCE_IMAGE
from .._shared.documents.plan import Gpu
from .._shared.errors import ComputeError, EngineError, LibraryError
from .._shared.waiting import deadline_in, wait_until
from . import guard, host
from .devices import all_gpus, divided, gid_types, rdma_ports
from .engine.client import Engine, load_sdk
from .engine.data_folders import silent_folders
from .engine.device_nodes import amd_gpus
from .engine.images import free_below, image_folder
from .engine.reports import architecture, engine_identity, network_entry, session_of
from .engine.runtime import find_runtime
from .engine_settings import engine_settings
from .gpu_health import gpu_health
from .nvidia import look, nvlinks, output_of, toolkit_version

# Seconds after which a container of a check certainly belongs to a check that was killed.
OLD = 600
# Seconds that the test of encrypted networks may take, and until a container that answers others listens.
ESP_TIMEOUT, START = 20, 45
# Lines that such a container writes.
LISTENING, FAILED = "listening", "failed"
# What an encrypted overlay network requests from the kernel, in a network namespace that ends with the container:
# https://github.com/moby/moby/blob/master/daemon/libnetwork/drivers/overlay/encryption.go
ESP = (
    "ip xfrm state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 1 mode transport "
    "aead 'rfc4106(gcm(aes))' 0x%s 64 && echo taken" % ("01" * 20)
)

_OPEN = re.compile(r"API is accessible on (\S+) without (?:encryption|TLS client verification)")


def examine_agent(options: Json) -> Json:
    """The report on an agent; an engine that does not answer is a report that says so."""
    report = {
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
        return {**report, **_engine_report(engine, options)}
    except (EngineError, LibraryError) as error:
        return {**report, "reachable": False, "reason": error.message}


def _engine_report(engine: Engine, options: Json) -> Json:
    info = engine.info()
    swarm = _swarm(info, options["docker_host"])
    address = swarm["address"] or host.own_address(options["addresses"])
    # Images, and volumes with logs.
    root = min(image_folder(info), str(info.get("DockerRootDir") or "/var/lib/docker"), key=free_below)
    everyone, image = engine.networks(everyone=True), engine.image(REFERENCE_IMAGE) is not None
    networks = [network_entry(entry) for entry in everyone if not session_of(entry)]
    sessions = [network_entry(entry) for entry in everyone if session_of(entry)]
    return {
        **{"engine": info.get("ServerVersion", ""), "identity": engine_identity(everyone)},
        "architecture": architecture(info.get("Architecture", "")),
        "sdk": load_sdk(options["docker_host"]).__version__,
        "runtime": bool(find_runtime(engine, options["edition"])),
        "image": image,
        "disk": root,
        "disk_free": free_below(root),
        "cgroups": _cgroups(info),
        "cgroup_version": str(info.get("CgroupVersion") or 1),
        "cgroup_driver": str(info.get("CgroupDriver") or ""),
        "systemd": host.has_systemd(),
        "kernel": host.kernel_limits(options["docker_host"]),
        **{"bridge_filter": host.has_bridge_filter(), "session_guard": guard.session_guard(info)},
        "gpus": len(host.gpu_nodes()),
        "amd_gpus": len(amd_gpus()),
        **_gpus("nvidia" in (info.get("Runtimes") or {}), options),
        **_choices(info, options["docker_host"]),
        "open_api": _open_api(info),
        "silent_folders": sorted(silent_folders(engine.containers())),
        **asdict(host.engine_limits(options["docker_host"])),
        "networks": [subnet for network in networks for subnet in network["subnets"]],
        "session_networks": [subnet for network in sessions for subnet in network["subnets"]],
        "swarm": swarm,
        "address": address,
        "mtu": host.underlay_mtu([address]) or 1500,
        "fabric": {**host.fabric(options["fabric"], everyone), **host.link(options["fabric"])},
        "rdma": [{**port, "gids": gid_types(port["name"])} for port in rdma_ports(options["fabric"])],
        **(_test_esp(engine) if image and options["several"] else {"esp": None, "esp_reason": ""}),
    }


def _choices(info: Json, docker_host: str) -> Json:
    """Return what the site has configured: where the engine keeps logs and images, and settings that take something from sessions."""
    return {
        "log_driver": str(info.get("LoggingDriver") or ""),
        "storage": _storage(info),
        "settings": engine_settings(info, host.engine_pid(docker_host)),
    }


def _swarm(info: Json, docker_host: str) -> Json:
    """The engine's place in its Swarm, why that fails, and whether the Swarm has an address that this host has not."""
    place = host.swarm_place(info)
    is_gone = docker_host.startswith("unix://") and host.is_gone(place["address"])
    return {**place, "error": (info.get("Swarm") or {}).get("Error") or "", "is_gone": is_gone}


def _gpus(has_runtime: bool, options: Json) -> Json:
    """The health of the GPUs that containers can get, what limits parts of them, and the versions of what gives them to containers."""
    found = all_gpus(has_runtime)
    seen = look(found)
    gpus = [Gpu(device) for device in found]
    return {
        "gpu_sharing": divided(gpus, options["gpu_sharing"], options["mps_directory"], False, seen)[1],
        "gpu_runtime": has_runtime,
        "gpu_health": [gpu.to_json() for gpu in gpu_health(found, seen)],
        "gpu_driver": seen.log.driver if seen else "",
        "gpu_toolkit": toolkit_version() if has_runtime else "",
        "nvlink": nvlinks(output_of("topo", "-m")),
    }


def _storage(info: Json) -> str:
    """The storage driver and its file system, as ``overlay2 on xfs``."""
    status = {str(row[0]): str(row[1]) for row in info.get("DriverStatus") or [] if len(row) == 2}
    backing = status.get("Backing Filesystem", "")
    return str(info.get("Driver") or "") + (" on " + backing if backing else "")


def _open_api(info: Json) -> List[str]:
    """The TCP addresses at which the engine obeys everyone: it warns of them itself.

    >>> _open_api({"Warnings": ["WARNING: API is accessible on http://0.0.0.0:2375 without encryption.\\n  Access to …"]})
    ['http://0.0.0.0:2375']
    """
    return [address for text in info.get("Warnings") or [] for address in _OPEN.findall(str(text))]


def _cgroups(info: Json) -> Json:
    names = {
        "CPU quota": "CpuCfsQuota",
        "memory limit": "MemoryLimit",
        "swap limit": "SwapLimit",
        "cpuset": "CPUSet",
        "pids limit": "PidsLimit",
    }
    return {name: bool(info.get(key)) for name, key in names.items()}


def _test_esp(engine: Engine) -> Json:
    body = check_body(["sh", "-c", ESP], "none", "esp")
    body["HostConfig"]["CapAdd"] = ["NET_ADMIN"]
    try:
        output = run_to_end(engine, "cluster-compute-check-esp-" + secrets.token_hex(6), body, deadline_in(ESP_TIMEOUT))
    except ComputeError as error:
        return {"esp": None, "esp_reason": error.message}
    return {"esp": "taken" in output, "esp_reason": " ".join(output.split())[:120].rstrip(".")}


def check_body(command: Sequence[str], network: str, mark: str) -> Json:
    """The request for a container of a check: without capabilities and a session's label, with a log that can be read."""
    return {
        "Image": REFERENCE_IMAGE,
        "User": "0:0",
        "Entrypoint": list(command),
        "Cmd": [],
        "Labels": {label.CHECK: mark},
        "HostConfig": {
            "NetworkMode": network,
            "CapDrop": ["ALL"],
            "Memory": 64 << 20,
            "LogConfig": {"Type": "json-file"},
        },
    }


def lasting_body(program: str, arguments: Sequence[str], network: str, mark: str) -> Json:
    """The request that creates a container of a check which answers others. Its engine removes it at its end.

    A program that fails does not end the container at once, so that its output can be read. All of it is one stream: the log of an
    engine does not keep the order of two.
    """
    command = ["sh", "-c", 'exec 2>&1; python3 -c "$0" "$@" || { echo %s; sleep 60; }' % FAILED, program, *arguments]
    body = check_body(command, network, mark)
    body["HostConfig"]["AutoRemove"] = True
    return body


def start_lasting(engine: Engine, name: str, body: Json, failure: str) -> None:
    """Start such a container, and wait until it listens. Raises EngineError with C(failure), and removes it, if it does not."""
    identity = start_container(engine, name, body)

    def written() -> List[str]:
        return [line for line in engine.logs(identity).splitlines() if line in (LISTENING, FAILED)]

    if LISTENING in wait_until(written, deadline_in(START)):
        return
    output = " ".join(engine.logs(identity).split()) or "it wrote nothing"
    engine.remove(identity, name)
    message = "%s: %s: %s; check that the reference image works there."
    raise EngineError(message % (engine.agent, failure, output[-200:].rstrip(".")), engine.agent)


def stop_lasting(engine: Engine, name: str) -> str:
    """Remove such a container, and return its output; empty if there is none."""
    container = engine.inspect(name)
    if container is None:
        return ""
    try:
        return engine.logs(container["Id"])
    finally:
        engine.remove(container["Id"], name)


def json_lines(text: str) -> List[List[Any]]:
    """The lists in the output of a container of a check, one a line; other lines are left out.

    >>> json_lines('listening\\n["heard", "a"]\\n["cut')
    [['heard', 'a']]
    """
    found = []
    for line in text.splitlines():
        with suppress(ValueError, RecursionError):
            words = json.loads(line) if line.startswith("[") else None
            found += [words] if isinstance(words, list) else []
    return found


def read_overlay(text: str) -> Json:
    """Return what the container in the overlay network printed, as a dictionary of names, heard, latency, mbits and measured."""
    found: Json = {"names": {}, "heard": [], "latency": {}, "mbits": {}, "measured": False}
    for words in json_lines(text):
        if words == ["done"]:
            found["measured"] = True
        elif words[:1] == ["heard"] and len(words) == 3:
            found["heard"].append([str(words[1]), str(words[2])])
        elif len(words) == 3 and words[0] in ("latency", "mbits") and isinstance(words[2], (int, float, type(None))):
            found[words[0]][str(words[1])] = words[2]
        elif words[:1] == ["name"] and len(words) == 3:
            found["names"][str(words[1])] = str(words[2])
    return found


def run_to_end(engine: Engine, name: str, body: Json, deadline: float) -> str:
    """The output of a container at its end, or at the deadline. The container is removed."""
    identity = start_container(engine, name, body)

    def has_ended() -> bool:
        return not ((engine.inspect(identity) or {}).get("State") or {}).get("Running")

    try:
        wait_until(has_ended, deadline)
        return engine.logs(identity)
    finally:
        engine.remove(identity, name)


def start_container(engine: Engine, name: str, body: Json) -> str:
    """Start a container of a check. Ended containers of checks that were killed are removed first: no check that runs is so old."""
    for listed in engine.containers(everyone=True):
        is_old = time.time() - float(listed.get("Created") or 0) > OLD
        if is_old and (listed.get("Labels") or {}).get(label.CHECK) and listed["State"] in ("created", "exited"):
            engine.remove(listed["Id"], listed["Id"][:12])
    identity = engine.create(name, body)
    try:
        engine.start(identity, name)
    except ComputeError:
        engine.remove(identity, name)
        raise
    return identity
