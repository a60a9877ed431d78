# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checks of a single agent: each evaluates a report and returns a finding with a remedy. docs/check.md lists them."""

from __future__ import annotations

from typing import Callable, List, Tuple

from ...module_utils._agent.engine.payloads import ROTATING
from ...module_utils._agent.engine_settings import EFFECTS, NO_RULES
from ...module_utils._agent.guard import MISSING, PRESENT
from ...module_utils._shared.codec import Json
from ...module_utils._shared.constants import BRIDGE_PORTS
from ...module_utils._shared.documents.findings import (
    FAIL,
    OK,
    PROVISION,
    WARN,
    Finding,
    Requirements,
    Verdict,
    verdict,
)
from ...module_utils._shared.errors import ConflictError, shorten_list
from ...module_utils._shared.planning.addresses import choose_subnet
from ...module_utils._shared.planning.capacity import kernel_bounds, kernel_room, kernel_shortfall
from ...module_utils._shared.units import show_bytes
from .transports import check_fabric, check_nvlink, check_rdma

NOFILE_WARN = 65536
MEMLOCK_WARN = 64 << 20
# The kernel's own default.
NEIGHBOURS_WARN = 1024
INOTIFY_WARN = 1024
# GPUs that a finding names.
_SHOWN_GPUS = 8


def check_limits(report: Json, _required: Requirements) -> Verdict:
    nofile, memlock = report["nofile"], report["memlock"]
    if not nofile and not memlock:
        return OK, "the engine's own", ""
    found = f"nofile {_limit(nofile, str)}, memlock {_limit(memlock, show_bytes)}"
    is_low = 0 < nofile < NOFILE_WARN or 0 < memlock < MEMLOCK_WARN
    return verdict(found, is_low, "raise LimitNOFILE and LimitMEMLOCK of its engine, for large jobs and RDMA")


def check_neighbours(report: Json, _required: Requirements) -> Verdict:
    limit = report["kernel"].get("neighbours")
    if not limit:
        return OK, "not known", ""
    remedy = "raise net.ipv4.neigh.default.gc_thresh3 with sysctl to at least %d" % NEIGHBOURS_WARN
    return verdict("up to %d in all networks together" % limit, limit < NEIGHBOURS_WARN, remedy)


def check_size(report: Json, _required: Requirements) -> Verdict:
    """Return how many containers the agent can run, whatever CPUs and memory it has."""
    kernel = report["kernel"]
    room = kernel_room(kernel_bounds(kernel))
    found = "up to %d containers of a session" % room
    if room < BRIDGE_PORTS:
        found += f": one more {kernel_shortfall(kernel, room + 1)}"
    return verdict(found, room < BRIDGE_PORTS, "raise this limit for larger sessions")


def check_inotify(report: Json, _required: Requirements) -> Verdict:
    """With cgroups of version 2, containerd watches the memory of each container by an instance of root's."""
    limit = report["kernel"].get("inotify", 0)
    if not limit:
        return OK, "not known", ""
    is_low = report["cgroup_version"] == "2" and limit < INOTIFY_WARN
    found = "%d instances" % limit
    if is_low:
        found += ": of more running containers the engine does not see that memory ran out"
    return verdict(found, is_low, "raise fs.inotify.max_user_instances with sysctl to at least %d" % INOTIFY_WARN)


def _limit(amount: int, show: Callable[[int], str]) -> str:
    return "unlimited" if amount < 0 else show(amount)


OLDEST_ENGINE = (20, 10)
OLDEST_SDK = (5, 0)
CLOCK_WARN, CLOCK_FAIL = 2.0, 30.0
DISK_WARN, DISK_FAIL = 10 << 30, 2 << 30
# The storage drivers that can have a size for each container; XFS also needs the mount option pquota.
QUOTAS = ("overlay2 on xfs", "btrfs", "zfs")


Check = Tuple[str, Callable[[Json, Requirements], Verdict]]


def check_agent(report: Json, required: Requirements, several: bool) -> List[Finding]:
    """The findings of an agent; ``several`` is whether there are other agents."""
    name = report["name"]
    if not report["reachable"]:
        remedy = "check that the host is up and its engine runs; " + PROVISION
        return [Finding("reachable", name, FAIL, report["reason"], remedy)]
    checks = _ALONE + (_AMONG_OTHERS if several else ())
    return [Finding(check, name, *judge(report, required)) for check, judge in checks]


def _engine(report: Json, _required: Requirements) -> Verdict:
    is_old = _numbers(report["engine"]) < OLDEST_ENGINE
    return verdict(report["engine"], is_old, "upgrade its Docker Engine to 20.10 or later", FAIL)


def _api(report: Json, _required: Requirements) -> Verdict:
    """Return whether the engine listens on TCP without checking who connects."""
    if not report["open_api"]:
        return OK, "no open TCP address", ""
    found = f"everyone who reaches {', '.join(report['open_api'])} is root on this host"
    return WARN, found, "remove this address from the hosts of its engine, or set tlsverify"


def _sdk(report: Json, _required: Requirements) -> Verdict:
    found = f"{report['sdk']}, Python {report['python']}"
    remedy = "upgrade the Docker SDK for Python to 5.0 or later: pip install --upgrade docker"
    return verdict(found, _numbers(report["sdk"]) < OLDEST_SDK, remedy, FAIL)


def _runtime(report: Json, _required: Requirements) -> Verdict:
    parts = {"SSH runtime": report["runtime"], "reference image": report["image"]}
    missing = [name for name, is_present in parts.items() if not is_present]
    found = f"no {' and no '.join(missing)}" if missing else " and ".join(parts)
    return verdict(found, missing, PROVISION, FAIL)


def _clock(report: Json, _required: Requirements) -> Verdict:
    offset = report["clock"]
    if abs(offset) < CLOCK_WARN:
        return OK, f"within {CLOCK_WARN:g} s of the controller's", ""
    found = f"{_duration(abs(offset))} {'ahead of' if offset > 0 else 'behind'} the controller's"
    status = FAIL if abs(offset) >= CLOCK_FAIL else WARN
    return status, found, "run a time service (chrony, systemd-timesyncd) on all hosts"


def _disk(report: Json, _required: Requirements) -> Verdict:
    free = report["disk_free"]
    if free < 0:
        return WARN, f"{report['disk']}: cannot be read", "check the free space on that host"
    found = f"{show_bytes(free)} free in {report['disk']}"
    remedy = "free some space, for example with docker system prune"
    return verdict(found, free < DISK_WARN, remedy, FAIL if free < DISK_FAIL else WARN)


def _cgroups(report: Json, _required: Requirements) -> Verdict:
    supported = report["cgroups"]
    lacking = [name for name in ("CPU quota", "memory limit") if not supported[name]]
    found = "version {}, {}".format(
        report["cgroup_version"],
        ", ".join(name for name, is_supported in supported.items() if is_supported),
    )
    if lacking:
        return FAIL, f"no {' and no '.join(lacking)}", "enable these cgroup controllers in its kernel"
    optional = [name for name in supported if not supported[name]]
    is_swap = optional == ["swap limit"]
    remedy = "boot with cgroup_enable=memory swapaccount=1" if is_swap else "enable these cgroup controllers"
    if optional:
        found += f"; no {' and no '.join(optional)}"
    return verdict(found, optional, remedy)


def _bounds(report: Json, _required: Requirements) -> Verdict:
    """Return what keeps a session from filling its agent."""
    driver, storage = report["log_driver"], report["storage"]
    found = "pids {}, logs {}, files {}".format(
        "bounded" if report["cgroups"]["pids limit"] else "not bounded",
        f"rotated ({driver})" if driver in ROTATING else "where %s sends them" % (driver or "its driver"),
        f"bounded by session_disk ({storage})" if storage in QUOTAS else f"not bounded ({storage})",
    )
    return verdict(found, driver not in ROTATING, "bound the logs where they are kept, or set its log-driver to local")


def _settings(report: Json, _required: Requirements) -> Verdict:
    """The settings of the engine that take something from sessions. Most of them harden a host, and are the site's decision."""
    if not report["settings"]:
        return OK, "nothing that sessions lose by", ""
    found = "; ".join(f"{name}: {EFFECTS[name]}" for name in report["settings"] if name in EFFECTS)
    return verdict(found, NO_RULES in report["settings"], "let its engine write rules of iptables")


def _pool(report: Json, required: Requirements) -> Verdict:
    taken = [*report["routes"], *report["networks"]]
    pools = ", ".join(required.pools)
    try:
        choose_subnet(2, required.pools, taken)
    except ConflictError:
        found = f"{pools}: every subnet overlaps a route or network of the host"
        return FAIL, found, "set session_network_pool to a free network"
    return OK, f"{pools} has a free subnet", ""


def _drivers(report: Json, _required: Requirements) -> Verdict:
    """The engine's drivers that work badly with sessions on this host."""
    storage, driver, version = report["storage"], report["cgroup_driver"], report["cgroup_version"]
    found = f"storage {storage or 'not known'}, cgroups {driver or 'not known'}"
    if storage.startswith("vfs"):
        return WARN, found + ": every container gets a copy of its image", "set its storage-driver to overlay2"
    # systemd rewrites the devices of cgroups that it does not manage: https://github.com/NVIDIA/nvidia-container-toolkit/issues/48
    if driver == "cgroupfs" and version == "2" and report["systemd"]:
        remedy = (
            'set its exec-opts to ["native.cgroupdriver=systemd"], or containers lose their GPUs when systemd reloads'
        )
        return WARN, found + ", and systemd manages the host", remedy
    return OK, found, ""


def _gpus(report: Json, _required: Requirements) -> Verdict:
    count, amd = report["gpus"], report["amd_gpus"]
    if not count:
        return OK, "%d of AMD" % amd if amd else "none", ""
    if not report["gpu_runtime"]:
        remedy = "install the NVIDIA Container Toolkit and run nvidia-ctk runtime configure --runtime=docker there"
        return WARN, "%d, and the engine has no runtime nvidia" % count, remedy
    return OK, "%d, with the runtime nvidia" % count, ""


def _gpu_health(report: Json, _required: Requirements) -> Verdict:
    """Red GPUs get no session; yellow ones do."""
    sick = [gpu for level in ("red", "yellow") for gpu in report["gpu_health"] if gpu["state"] == level]
    if not report["gpu_health"]:
        return OK, "not checked: no GPU of NVIDIA, or no nvidia-smi", ""
    if not sick:
        return OK, "%d green" % len(report["gpu_health"]), ""
    found = shorten_list(
        [f"{gpu['id']} is {gpu['state']}: {', '.join(gpu['reasons'])}" for gpu in sick], _SHOWN_GPUS, "; "
    )
    remedy = f"see nvidia-smi -q -i {sick[0]['id']} and dmesg there, then reset or replace it"
    return WARN, found, remedy


def _gpu_sharing(report: Json, _required: Requirements) -> Verdict:
    """Without a limit, the parts of a GPU are bookkeeping."""
    kind, reason = report["gpu_sharing"]["kind"], report["gpu_sharing"]["reason"]
    if kind == "none" or not reason:
        return OK, {"none": "parts of a GPU are not limited"}.get(kind, f"by {kind.upper()}"), ""
    daemon = "CUDA_MPS_PIPE_DIRECTORY=<agent_mps_directory> nvidia-cuda-mps-control -d"
    mps, mig = f"as root there, if nvidia-smi -q works: {daemon}", "create MIG devices there with nvidia-smi mig"
    return WARN, f"the agent {reason}", mps if kind == "mps" else mig


def _nfs(report: Json, _required: Requirements) -> Verdict:
    absent = "no client: mounts of type nfs do not work on this agent, everything else does"
    return OK, "client found" if report["nfs"] else absent, ""


def _folders(report: Json, _required: Requirements) -> Verdict:
    """The folders of this host that its sessions mount."""
    silent = report["silent_folders"]
    found = f"no answer from {', '.join(silent)}" if silent else "all data directories in use respond"
    return verdict(found, silent, "check the file server, and mount the directory there again")


def _mtu(report: Json, _required: Requirements) -> Verdict:
    if not report["address"]:
        found = "no IPv4 address, which networks of sessions over several agents need"
        return WARN, found, "give it one, and run provision_agents.yml, or launch sessions on this agent alone"
    return OK, "%d at %s" % (report["mtu"], report["address"]), ""


def _esp(report: Json, required: Requirements) -> Verdict:
    if report["esp"] is None:
        return WARN, "not tested: no reference image", PROVISION
    if report["esp"]:
        return OK, "the kernel supports ESP", ""
    remedy = "use a kernel with ESP (modules esp4, gcm), or do not set session_network_encrypted"
    found = f"encrypted sessions cannot run on this agent: {report['esp_reason']}"
    return FAIL if required.encrypted else WARN, found, remedy


def _bridge_filter(report: Json, _required: Requirements) -> Verdict:
    """On docker_gwbridge, where containers of overlays reach the outside, rules of iptables keep them apart."""
    if report["bridge_filter"]:
        return OK, "iptables sees bridged packets", ""
    return (
        WARN,
        "iptables does not see bridged packets: containers of different sessions reach each other on docker_gwbridge",
        "load the module br_netfilter and set net.bridge.bridge-nf-call-iptables=1 with sysctl, now and at each start",
    )


def _guard(report: Json, _required: Requirements) -> Verdict:
    """The rules beside those of Docker, which lets in this host and, before release 28, hosts with a route through it."""
    if report["session_guard"] == MISSING:
        found = "accounts of this host, and hosts with a route through it, reach all ports of sessions on it"
        return WARN, found, PROVISION + " as a user who can become root"
    if report["session_guard"] == PRESENT:
        return OK, "only published ports of sessions on this host alone are open to its accounts and to other hosts", ""
    return OK, "nothing to see: the engine is rootless, or only root sees the rules", ""


_ALONE: Tuple[Check, ...] = (
    ("engine", _engine),
    ("api", _api),
    ("sdk", _sdk),
    ("runtime", _runtime),
    ("clock", _clock),
    ("disk", _disk),
    ("cgroups", _cgroups),
    ("limits", check_limits),
    ("bounds", _bounds),
    ("drivers", _drivers),
    ("settings", _settings),
    ("neighbours", check_neighbours),
    ("size", check_size),
    ("inotify", check_inotify),
    ("gpus", _gpus),
    ("gpu health", _gpu_health),
    ("gpu sharing", _gpu_sharing),
    ("nvlink", check_nvlink),
    ("fabric", check_fabric),
    ("rdma", check_rdma),
    ("guard", _guard),
    ("pool", _pool),
    ("nfs", _nfs),
    ("folders", _folders),
)
_AMONG_OTHERS: Tuple[Check, ...] = (("mtu", _mtu), ("bridge filter", _bridge_filter), ("encryption", _esp))


def _numbers(version: str) -> Tuple[int, ...]:
    """
    >>> _numbers("20.10.24+dfsg1")
    (20, 10)
    """
    parts = (version or "0").split(".")[:2]
    return tuple(int("".join(filter(str.isdecimal, part)) or 0) for part in parts)


def _duration(seconds: float) -> str:
    """
    >>> _duration(3600.4), _duration(4.26)
    ('1.0 h', '4.3 s')
    """
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"
