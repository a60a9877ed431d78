# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The agent report: everything that the scheduler needs to know about a host, from a few requests to its engine."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any, Callable, Collection, Dict, List, Sequence, Tuple, TypeVar

from .._shared import label
from .._shared.codec import Json
from .._shared.documents.plan import Gpu
from .._shared.documents.report import (
    AgentReport,
    BatchState,
    Capacity,
    EngineState,
    GpuSharing,
    GpuUse,
    ObservedContainer,
    Runtime,
)
from .._shared.errors import ConflictError, EngineError, InputError, LibraryError
from .._shared.exits import WAITING
from .._shared.parallel import run_all
from .._shared.subprocess_call import unresponsive_mount
from .._shared.units import parse_bytes, parse_cpus
from . import guard, host
from .devices import MIG, NO_LIMIT, all_gpus, divided, gpu_use, rdma_ports, use_of_gpu
from .engine.apps import read_statuses
from .engine.batch import read_state
from .engine.client import Engine, LateError, UnreachableError, container_entries, waits_for_secrets
from .engine.control_groups import enforced
from .engine.data_folders import folders_of, silent_folders
from .engine.device_nodes import MPS_DIRECTORY
from .engine.reports import (
    EngineInfo,
    architecture,
    engine_identity,
    engine_name,
    has_apps,
    ignored_entries,
    image_entry,
    is_member,
    is_relay,
    network_entry,
    published,
    relays_by_session,
)
from .engine.runtime import find_runtime
from .gpu_health import gpu_health
from .measuring import Groups, measure_containers
from .nvidia import look

Found = TypeVar("Found")
_IGNORED = "On %s the container %s is ignored, because its label %s cannot be read: remove that container."


@dataclass(frozen=True)
class Overrides:
    """The inventory's settings of an agent's capacity: amounts that replace the engine's own, and reserved amounts."""

    millicpus: int | None = None
    memory: int | None = None
    gpus: Sequence[Gpu] | None = None
    sharing: str = NO_LIMIT
    mps_directory: str = ""
    reserved_millicpus: int = 0
    reserved_memory: int = 0

    @classmethod
    def from_options(cls, options: Json) -> Overrides:
        """Parse amounts such as ``0.5`` CPUs or ``2g``; an InputError names the option."""
        cpus, memory, gpus = options.get("cpus"), options.get("memory"), options.get("gpus")
        sharing = options.get("gpu_sharing") or NO_LIMIT
        return cls(
            millicpus=None if cpus in (None, "") else parse_cpus(cpus, "cpus"),
            memory=None if memory in (None, "") else parse_bytes(memory, "memory"),
            gpus=None if gpus is None else [_gpu(gpu, sharing) for gpu in gpus],
            sharing=sharing,
            mps_directory=options.get("mps_directory") or MPS_DIRECTORY,
            reserved_millicpus=parse_cpus(options.get("reserved_cpus") or 0, "reserved_cpus"),
            reserved_memory=parse_bytes(options.get("reserved_memory") or 0, "reserved_memory"),
        )

    def capacity(self, info: EngineInfo, found_gpus: Sequence[str]) -> Capacity:
        """The engine's own amounts with the overrides, without the reserved amounts."""
        millicpus = info.cpus * 1000 if self.millicpus is None else self.millicpus
        memory = info.memory if self.memory is None else self.memory
        gpus = [Gpu(identity) for identity in found_gpus] if self.gpus is None else self.gpus
        return Capacity(
            millicpus=max(0, millicpus - self.reserved_millicpus),
            memory=max(0, memory - self.reserved_memory),
            gpus=tuple(gpus),
            cpu_ids=tuple(host.cpu_ids(info.cpus)),
        )


def build_report(options: Json) -> AgentReport:
    """The complete report; an engine that does not answer is a report that says so."""
    overrides = Overrides.from_options(options)
    found = _host_report(options)
    try:
        engine = Engine(options["docker_host"], options["timeout"], options["name"])
        return replace(found, **_engine_report(engine, options, overrides))
    except (EngineError, LibraryError) as error:
        return replace(found, reachable=False, reason=error.message, may_return=isinstance(error, LateError))


def warnings_of(found: AgentReport) -> List[str]:
    """Return what a report leaves out, for people."""
    return [
        *[_IGNORED % (found.name, each.engine_name, each.label) for each in found.ignored_containers],
        *[unresponsive_mount(folder, found.name) for folder in found.silent_folders],
    ]


def _host_report(options: Json) -> AgentReport:
    """Return what does not depend on the engine, whose answers replace some of it."""
    return AgentReport(
        name=options["name"],
        group=",".join(dict.fromkeys(options["group"])),
        schedulable=options["schedulable"],
        architecture=os.uname().machine,
        publish=options["publish"] or host.all_addresses(options["address"]),
        address=options["address"],
        paths=host.existing_paths(options["paths"]),
        image=image_entry(options["image"], None),
        mtu=host.underlay_mtu([options["address"]]) or AgentReport.mtu,
        routes=tuple(host.routes()),
        needed_addresses=tuple(host.needed_addresses()),
        ports=tuple(sorted(host.listening_ports())),
        gpu_sharing=GpuSharing(options["gpu_sharing"]),
        rdma_ports=tuple(rdma_ports(options["fabric"])),
        fabric=host.fabric(options["fabric"], ()),
        host_network=host.host_network([options["address"]], EngineInfo()),
    )


def _engine_report(engine: Engine, options: Json, overrides: Overrides) -> Dict[str, Any]:
    """The fields of the report that the engine answers."""
    info = engine.info()
    everyone = engine.containers(everyone=True)
    ours = [listed for listed in everyone if engine.is_own(listed) and not is_relay(listed)]
    runtime = find_runtime(engine, options["runtime_edition"])
    silent, networks = silent_folders(ours), engine.networks(everyone=True)
    place, devices = host.swarm_of_engine(info), _devices(info, overrides, is_measured=options["measure"])
    containers = _with_relays(observed(engine.with_one_deadline(), ours, options, silent), everyone)
    mtu = host.underlay_mtu([place.address, options["address"]])
    return {
        **devices,
        **({"mtu": mtu} if mtu else {}),
        "architecture": architecture(info.architecture),
        "engine": EngineState(
            version=info.version,
            api=engine.api(),
            rootless=info.is_rootless,
            swarm=place,
            identity=engine_identity(networks),
        ),
        "limits": host.engine_limits(options["docker_host"]),
        "image": image_entry(options["image"], engine.image(options["image"]) if options["image"] else None),
        "runtime": Runtime(runtime, bool(runtime)),
        "kernel": host.kernel_limits(options["docker_host"]),
        "networks": tuple(map(network_entry, networks)),
        "fabric": host.fabric(options["fabric"], networks),
        "host_network": host.host_network([place.address, options["address"]], info),
        "ports": tuple(sorted(host.listening_ports().union(*map(published, everyone)))),
        "names": tuple(sorted(filter(None, {engine_name(listed) for listed in everyone if not is_member(listed)}))),
        "containers": measured_use(engine, containers, devices["gpu_use"]) if options["measure"] else containers,
        "ignored_containers": tuple(ignored_entries(everyone)),
        "silent_folders": tuple(sorted(silent)),
        "overlay_guard": guard.overlay_guard(options["fabric"]) if place.state == "active" else guard.NOT_SEEN,
    }


def _devices(info: EngineInfo, overrides: Overrides, *, is_measured: bool) -> Dict[str, Any]:
    """Return what the agent has, with the parts of its GPUs, their health and their use."""
    capacity = overrides.capacity(info, all_gpus("nvidia" in info.runtimes))
    seen = look([gpu.id for gpu in capacity.gpus])
    is_declared = overrides.gpus is not None
    parts, sharing = divided(capacity.gpus, overrides.sharing, overrides.mps_directory, is_declared, seen)
    return {
        "capacity": replace(capacity, gpus=tuple(parts)),
        "gpu_health": tuple(gpu_health([gpu.id for gpu in parts], seen)),
        "gpu_sharing": sharing,
        "gpu_use": tuple(gpu_use()) if is_measured and parts else (),
    }


def observed(engine: Engine, ours: Sequence[Json], options: Json, silent: Collection[str]) -> List[ObservedContainer]:
    """The containers of sessions, with the state of their command and of their apps.

    No file is read of a container that mounts a folder of a lost file server: the engine would wait for it.
    """
    waiting = {listed["Id"]: sorted(folders_of(listed).intersection(silent)) for listed in ours}

    def complete(entry: ObservedContainer) -> ObservedContainer:
        if waiting[entry.engine_id]:
            return unread(entry, unresponsive_mount(waiting[entry.engine_id][0], engine.agent))
        return with_apps(engine, with_batch(engine, with_wait(engine, entry)), options["measure"], options["apps_of"])

    entries = container_entries(engine, ours)
    limits = enforced([one.engine_id for one in entries if one.state == "running"])
    entries = [replace(one, enforced=limits.get(one.engine_id)) for one in entries]
    ranked = sorted(entries, key=lambda entry: (entry.session, entry.rank))
    return run_all(complete, ranked)


def _with_relays(entries: Sequence[ObservedContainer], everyone: Sequence[Json]) -> Tuple[ObservedContainer, ...]:
    relays = relays_by_session(everyone)
    has_relays = [entry.id == entry.session and entry.session in relays for entry in entries]
    return tuple(
        replace(one, relays=tuple(relays[one.session])) if has else one for one, has in zip(entries, has_relays)
    )


def measured_use(
    engine: Engine, entries: Sequence[ObservedContainer], gpus: Sequence[GpuUse]
) -> Tuple[ObservedContainer, ...]:
    running = [entry.engine_id for entry in entries if entry.state == "running"]
    found = measure_containers(engine, running, Groups(running))

    def complete(entry: ObservedContainer) -> ObservedContainer:
        used = found.get(entry.engine_id)
        own = use_of_gpu(entry.resources.gpus, gpus)
        return replace(entry, measured=replace(used, gpus=own)) if used else entry

    return tuple(map(complete, entries))


def with_wait(engine: Engine, entry: ObservedContainer) -> ObservedContainer:
    """The entry with the state ``waiting`` if the container runs, and has no sshd before its secrets have come.

    If the engine does not answer for a container, its listed state stays. With any other state, the head could restart or end the
    session because of a late answer.
    """
    if entry.state != "running" or not entry.label(label.SECRETS):
        return entry
    waits, _reason = _tried(waits_for_secrets, engine, entry)
    return replace(entry, state=WAITING) if waits else entry


def with_batch(engine: Engine, entry: ObservedContainer) -> ObservedContainer:
    """The entry of a container that runs a command with the state of that command. An unreadable state does not fail the report."""
    if not entry.label(label.BATCH):
        return entry
    state, reason = _tried(read_state, engine, entry)
    return replace(entry, batch=state) if state else unread(entry, reason)


def unread(entry: ObservedContainer, reason: str) -> ObservedContainer:
    """The entry of a container whose files cannot be read."""
    return replace(entry, batch=BatchState(reason=reason)) if entry.label(label.BATCH) else entry


def with_apps(
    engine: Engine, entry: ObservedContainer, has_time: bool, apps_of: Collection[str] | None
) -> ObservedContainer:
    """The entry of a container that runs with the state of its apps. What cannot be read does not fail the report.

    Each file is a request, for which Docker Engine 20.10 starts a process. Apps that came after the launch are on main1, and in no
    label: only a report that has time looks for them.
    """
    may_have = has_apps(entry.labels) or (has_time and entry.id == entry.session)
    is_asked = apps_of is None or entry.name in apps_of
    if entry.state != "running" or not may_have or not is_asked:
        return entry
    found, _reason = _tried(read_statuses, engine, entry)
    # An app of the launch that is not among them was removed.
    is_known = found or (found is not None and has_apps(entry.labels))
    return replace(entry, apps=tuple(found or ())) if is_known else entry


def _tried(
    read: Callable[[Engine, str, str, str], Found], engine: Engine, entry: ObservedContainer
) -> Tuple[Found | None, str]:
    """Return what a function reads of a container, or why this container cannot be read."""
    try:
        return read(engine, entry.engine_id, entry.id, entry.hostname), ""
    except LateError as error:
        engine.check_answers()
        return None, error.message
    except UnreachableError:
        raise
    except (ConflictError, EngineError) as error:
        return None, error.message


def _gpu(data: Dict[str, Any], sharing: str) -> Gpu:
    try:
        gpu = replace(Gpu.from_json(data), memory=0)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError("gpus", data, "each is a dictionary with an id and, where it is shared, shares") from error
    if gpu.shares < 1:
        raise InputError("gpus", data, "shares must be at least 1")
    if gpu.shares != 1 and sharing == MIG:
        raise InputError("gpus", data, "has no shares with agent_gpu_sharing: mig, which gives MIG devices as parts")
    return gpu
