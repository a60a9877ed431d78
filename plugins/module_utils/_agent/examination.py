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
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple, Union

from .._shared import label
from .._shared.codec import Json
from .._shared.constants import REFERENCE_IMAGE
from .._shared.documents.examination import (
    CPU_QUOTA,
    CPUSET,
    MEMORY_LIMIT,
    PIDS_LIMIT,
    SWAP_LIMIT,
    Examination,
    ExaminedEngine,
    ExaminedFabric,
    ExaminedGpus,
    ExaminedNetwork,
    ExaminedRdmaPort,
    InOverlay,
    Unreached,
)
from .._shared.documents.plan import Gpu
from .._shared.errors import ComputeError, EngineError, LibraryError
from .._shared.waiting import deadline_in, wait_until
from . import guard, host
from .devices import all_gpus, divided, gid_types, rdma_ports
from .engine.client import Engine, load_sdk
from .engine.data_folders import silent_folders
from .engine.device_nodes import amd_gpus
from .engine.images import free_below, image_folder
from .engine.reports import EngineInfo, architecture, engine_identity, network_entry, session_of
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

# What the engine says of its control groups.
_CGROUPS = {
    CPU_QUOTA: "CpuCfsQuota",
    MEMORY_LIMIT: "MemoryLimit",
    SWAP_LIMIT: "SwapLimit",
    CPUSET: "CPUSet",
    PIDS_LIMIT: "PidsLimit",
}
_OPEN = re.compile(r"API is accessible on (\S+) without (?:encryption|TLS client verification)")


@dataclass(frozen=True)
class ExaminedAgent:
    """An agent with what an examination needs to know of it: ``several`` others may reach it at ``addresses``."""

    name: str
    docker_host: str
    timeout: int
    edition: str
    fabric: str
    gpu_sharing: str
    mps_directory: str
    addresses: List[str]
    several: bool


def examine_agent(agent: ExaminedAgent) -> Union[Examination, Unreached]:
    try:
        return _examination(Engine(agent.docker_host, agent.timeout, agent.name), agent)
    except (EngineError, LibraryError) as error:
        return Unreached(agent.name, error.message)


def _examination(engine: Engine, agent: ExaminedAgent) -> Examination:
    read_at, info = time.time(), engine.info()
    swarm, networks = host.swarm_of_engine(info), engine.networks(everyone=True)
    found = _engine(engine, info, networks, agent)
    esp, esp_reason = _test_esp(engine) if found.image and agent.several else (None, "")
    return Examination(
        name=agent.name,
        time=read_at,
        python=platform.python_version(),
        architecture=architecture(info.architecture),
        kernel=host.kernel_limits(agent.docker_host),
        systemd=host.has_systemd(),
        nfs=any(os.path.exists(folder + "/mount.nfs") for folder in ("/sbin", "/usr/sbin")),
        silent_folders=tuple(sorted(silent_folders(engine.containers()))),
        engine=found,
        gpus=_gpus("nvidia" in info.runtimes, agent),
        network=_network(
            networks, swarm.address or host.own_address(agent.addresses), guard.session_guard(info), agent
        ),
        swarm=swarm,
        swarm_error=info.swarm_error,
        has_moved=agent.docker_host.startswith("unix://") and host.is_gone(swarm.address),
        esp=esp,
        esp_reason=esp_reason,
    )


def _engine(engine: Engine, info: EngineInfo, networks: Sequence[Json], agent: ExaminedAgent) -> ExaminedEngine:
    # Images, and volumes with logs.
    disk = min(image_folder(info), info.data_root, key=free_below)
    limits = host.engine_limits(agent.docker_host)
    return ExaminedEngine(
        version=info.version,
        identity=engine_identity(networks),
        sdk=load_sdk(agent.docker_host).__version__,
        runtime=bool(find_runtime(engine, agent.edition)),
        image=engine.image(REFERENCE_IMAGE) is not None,
        disk=disk,
        disk_free=free_below(disk),
        cgroups=tuple(limit for limit, flag in _CGROUPS.items() if flag in info.flags),
        cgroup_version=info.cgroup_version,
        cgroup_driver=info.cgroup_driver,
        nofile=limits.nofile,
        memlock=limits.memlock,
        log_driver=info.log_driver,
        storage=_storage(info),
        settings=tuple(engine_settings(info, host.engine_pid(agent.docker_host))),
        open_api=tuple(_open_api(info)),
    )


def _gpus(has_runtime: bool, agent: ExaminedAgent) -> ExaminedGpus:
    """The GPUs, the health of those that containers can get, what limits parts of them, and what gives them to containers."""
    found = all_gpus(has_runtime)
    seen = look(found)
    return ExaminedGpus(
        nvidia=len(host.gpu_nodes()),
        amd=len(amd_gpus()),
        has_runtime=has_runtime,
        driver=seen.log.driver if seen else "",
        toolkit=toolkit_version() if has_runtime else "",
        health=tuple(gpu_health(found, seen)),
        sharing=divided([Gpu(device) for device in found], agent.gpu_sharing, agent.mps_directory, False, seen)[1],
        nvlink=nvlinks(output_of("topo", "-m")),
    )


def _network(networks: Sequence[Json], address: str, session_guard: str, agent: ExaminedAgent) -> ExaminedNetwork:
    mtu, speed = host.link(agent.fabric)
    ports = rdma_ports(agent.fabric)
    return ExaminedNetwork(
        address=address,
        mtu=host.underlay_mtu([address]) or 1500,
        routes=tuple(host.routes()),
        subnets=_subnets(network for network in networks if not session_of(network)),
        session_subnets=_subnets(network for network in networks if session_of(network)),
        fabric=ExaminedFabric(**vars(host.fabric(agent.fabric, networks)), mtu=mtu, speed=speed),
        rdma=tuple(ExaminedRdmaPort(**vars(port), gids=tuple(gid_types(port.name))) for port in ports),
        bridge_filter=host.has_bridge_filter(),
        session_guard=session_guard,
    )


def _subnets(networks: Iterable[Json]) -> Tuple[str, ...]:
    return tuple(subnet for network in networks for subnet in network_entry(network).subnets)


def _storage(info: EngineInfo) -> str:
    """The storage driver and its file system, as ``overlay2 on xfs``."""
    status = {str(row[0]): str(row[1]) for row in info.storage_status if len(row) == 2}
    backing = status.get("Backing Filesystem", "")
    return info.storage + (" on " + backing if backing else "")


def _open_api(info: EngineInfo) -> List[str]:
    """The TCP addresses at which the engine obeys everyone: it warns of them itself.

    >>> _open_api(EngineInfo(warnings=("WARNING: API is accessible on http://0.0.0.0:2375 without encryption.\\n  Access to …",)))
    ['http://0.0.0.0:2375']
    """
    return [address for text in info.warnings for address in _OPEN.findall(text)]


def _test_esp(engine: Engine) -> Tuple[Optional[bool], str]:
    """Return whether the kernel supports encrypted networks, None if a test is not possible, and why."""
    body = check_body(["sh", "-c", ESP], "none", "esp")
    body["HostConfig"]["CapAdd"] = ["NET_ADMIN"]
    try:
        output = run_to_end(engine, "cluster-compute-check-esp-" + secrets.token_hex(6), body, deadline_in(ESP_TIMEOUT))
    except ComputeError as error:
        return None, error.message
    return "taken" in output, " ".join(output.split())[:120].rstrip(".")


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


def read_overlay(text: str) -> InOverlay:
    """Return what the container in the overlay network printed."""
    names: Dict[str, str] = {}
    heard: List[Tuple[str, ...]] = []
    amounts: Dict[str, Dict[str, Optional[float]]] = {"latency": {}, "mbits": {}}
    lines = json_lines(text)
    for words in lines:
        if words[:1] == ["heard"] and len(words) == 3:
            heard.append((str(words[1]), str(words[2])))
        elif len(words) == 3 and words[0] in amounts and isinstance(words[2], (int, float, type(None))):
            amounts[words[0]][str(words[1])] = words[2]
        elif words[:1] == ["name"] and len(words) == 3:
            names[str(words[1])] = str(words[2])
    return InOverlay(names, tuple(heard), **amounts, measured=["done"] in lines)


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
