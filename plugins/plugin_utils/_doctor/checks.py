# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checks of a single agent: each evaluates an examination and returns a finding with a remedy. docs/check.md lists them."""

from __future__ import annotations

from typing import Callable, List, Tuple, Union

from ...module_utils._agent.engine.payloads import ROTATING
from ...module_utils._agent.engine_settings import EFFECTS, NO_RULES
from ...module_utils._agent.guard import MISSING, PRESENT
from ...module_utils._shared.constants import BRIDGE_PORTS
from ...module_utils._shared.documents.examination import (
    CONTROLLERS,
    CPU_QUOTA,
    MEMORY_LIMIT,
    PIDS_LIMIT,
    SWAP_LIMIT,
    Examination,
    Unreached,
)
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


def check_limits(one: Examination, _required: Requirements) -> Verdict:
    nofile, memlock = one.engine.nofile, one.engine.memlock
    if not nofile and not memlock:
        return OK, "the engine's own", ""
    found = f"nofile {_limit(nofile, str)}, memlock {_limit(memlock, show_bytes)}"
    is_low = 0 < nofile < NOFILE_WARN or 0 < memlock < MEMLOCK_WARN
    return verdict(found, is_low, "raise LimitNOFILE and LimitMEMLOCK of its engine, for large jobs and RDMA")


def check_neighbours(one: Examination, _required: Requirements) -> Verdict:
    limit = one.kernel.get("neighbours")
    if not limit:
        return OK, "not known", ""
    remedy = "raise net.ipv4.neigh.default.gc_thresh3 with sysctl to at least %d" % NEIGHBOURS_WARN
    return verdict("up to %d in all networks together" % limit, limit < NEIGHBOURS_WARN, remedy)


def check_size(one: Examination, _required: Requirements) -> Verdict:
    """Return how many containers the agent can run, whatever CPUs and memory it has."""
    kernel = one.kernel
    room = kernel_room(kernel_bounds(kernel))
    found = "up to %d containers of a session" % room
    if room < BRIDGE_PORTS:
        found += f": one more {kernel_shortfall(kernel, room + 1)}"
    return verdict(found, room < BRIDGE_PORTS, "raise this limit for larger sessions")


def check_inotify(one: Examination, _required: Requirements) -> Verdict:
    """With cgroups of version 2, containerd watches the memory of each container by an instance of root's."""
    limit = one.kernel.get("inotify", 0)
    if not limit:
        return OK, "not known", ""
    is_low = one.engine.cgroup_version == "2" and limit < INOTIFY_WARN
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


# An agent as the doctor knows it.
Agent = Union[Examination, Unreached]
Check = Tuple[str, Callable[[Examination, Requirements], Verdict]]


def check_agent(one: Agent, required: Requirements, several: bool) -> List[Finding]:
    """The findings of an agent; ``several`` is whether there are other agents."""
    if isinstance(one, Unreached):
        remedy = "check that the host is up and its engine runs; " + PROVISION
        return [Finding("reachable", one.name, FAIL, one.reason, remedy)]
    checks = _ALONE + (_AMONG_OTHERS if several else ())
    return [Finding(check, one.name, *judge(one, required)) for check, judge in checks]


def _engine(one: Examination, _required: Requirements) -> Verdict:
    is_old = _numbers(one.engine.version) < OLDEST_ENGINE
    return verdict(one.engine.version, is_old, "upgrade its Docker Engine to 20.10 or later", FAIL)


def _api(one: Examination, _required: Requirements) -> Verdict:
    """Return whether the engine listens on TCP without checking who connects."""
    if not one.engine.open_api:
        return OK, "no open TCP address", ""
    found = f"everyone who reaches {', '.join(one.engine.open_api)} is root on this host"
    return WARN, found, "remove this address from the hosts of its engine, or set tlsverify"


def _sdk(one: Examination, _required: Requirements) -> Verdict:
    found = f"{one.engine.sdk}, Python {one.python}"
    remedy = "upgrade the Docker SDK for Python to 5.0 or later: pip install --upgrade docker"
    return verdict(found, _numbers(one.engine.sdk) < OLDEST_SDK, remedy, FAIL)


def _runtime(one: Examination, _required: Requirements) -> Verdict:
    parts = {"SSH runtime": one.engine.runtime, "reference image": one.engine.image}
    missing = [name for name, is_present in parts.items() if not is_present]
    found = f"no {' and no '.join(missing)}" if missing else " and ".join(parts)
    return verdict(found, missing, PROVISION, FAIL)


def _clock(one: Examination, _required: Requirements) -> Verdict:
    offset = one.clock
    if abs(offset) < CLOCK_WARN:
        return OK, f"within {CLOCK_WARN:g} s of the controller's", ""
    found = f"{_duration(abs(offset))} {'ahead of' if offset > 0 else 'behind'} the controller's"
    status = FAIL if abs(offset) >= CLOCK_FAIL else WARN
    return status, found, "run a time service (chrony, systemd-timesyncd) on all hosts"


def _disk(one: Examination, _required: Requirements) -> Verdict:
    free = one.engine.disk_free
    if free < 0:
        return WARN, f"{one.engine.disk}: cannot be read", "check the free space on that host"
    found = f"{show_bytes(free)} free in {one.engine.disk}"
    remedy = "free some space, for example with docker system prune"
    return verdict(found, free < DISK_WARN, remedy, FAIL if free < DISK_FAIL else WARN)


def _cgroups(one: Examination, _required: Requirements) -> Verdict:
    absent = [name for name in CONTROLLERS if name not in one.engine.cgroups]
    lacking = [name for name in absent if name in (CPU_QUOTA, MEMORY_LIMIT)]
    found = f"version {one.engine.cgroup_version}, {', '.join(one.engine.cgroups)}"
    if lacking:
        return FAIL, f"no {' and no '.join(lacking)}", "enable these cgroup controllers in its kernel"
    is_swap = absent == [SWAP_LIMIT]
    remedy = "boot with cgroup_enable=memory swapaccount=1" if is_swap else "enable these cgroup controllers"
    if absent:
        found += f"; no {' and no '.join(absent)}"
    return verdict(found, absent, remedy)


def _bounds(one: Examination, _required: Requirements) -> Verdict:
    """Return what keeps a session from filling its agent."""
    driver, storage = one.engine.log_driver, one.engine.storage
    found = "pids {}, logs {}, files {}".format(
        "bounded" if PIDS_LIMIT in one.engine.cgroups else "not bounded",
        f"rotated ({driver})" if driver in ROTATING else "where %s sends them" % (driver or "its driver"),
        f"bounded by session_disk ({storage})" if storage in QUOTAS else f"not bounded ({storage})",
    )
    return verdict(found, driver not in ROTATING, "bound the logs where they are kept, or set its log-driver to local")


def _settings(one: Examination, _required: Requirements) -> Verdict:
    """The settings of the engine that take something from sessions. Most of them harden a host, and are the site's decision."""
    if not one.engine.settings:
        return OK, "nothing that sessions lose by", ""
    found = "; ".join(f"{name}: {EFFECTS[name]}" for name in one.engine.settings if name in EFFECTS)
    return verdict(found, NO_RULES in one.engine.settings, "let its engine write rules of iptables")


def _pool(one: Examination, required: Requirements) -> Verdict:
    taken = [*one.network.routes, *one.network.subnets]
    pools = ", ".join(required.pools)
    try:
        choose_subnet(2, required.pools, taken)
    except ConflictError:
        found = f"{pools}: every subnet overlaps a route or network of the host"
        return FAIL, found, "set session_network_pool to a free network"
    return OK, f"{pools} has a free subnet", ""


def _drivers(one: Examination, _required: Requirements) -> Verdict:
    """The engine's drivers that work badly with sessions on this host."""
    storage, driver, version = one.engine.storage, one.engine.cgroup_driver, one.engine.cgroup_version
    found = f"storage {storage or 'not known'}, cgroups {driver or 'not known'}"
    if storage.startswith("vfs"):
        return WARN, found + ": every container gets a copy of its image", "set its storage-driver to overlay2"
    # systemd rewrites the devices of cgroups that it does not manage: https://github.com/NVIDIA/nvidia-container-toolkit/issues/48
    if driver == "cgroupfs" and version == "2" and one.systemd:
        remedy = (
            'set its exec-opts to ["native.cgroupdriver=systemd"], or containers lose their GPUs when systemd reloads'
        )
        return WARN, found + ", and systemd manages the host", remedy
    return OK, found, ""


def _gpus(one: Examination, _required: Requirements) -> Verdict:
    count, amd = one.gpus.nvidia, one.gpus.amd
    if not count:
        return OK, "%d of AMD" % amd if amd else "none", ""
    if not one.gpus.has_runtime:
        remedy = "install the NVIDIA Container Toolkit and run nvidia-ctk runtime configure --runtime=docker there"
        return WARN, "%d, and the engine has no runtime nvidia" % count, remedy
    return OK, "%d, with the runtime nvidia" % count, ""


def _gpu_health(one: Examination, _required: Requirements) -> Verdict:
    """Red GPUs get no session; yellow ones do."""
    sick = [gpu for level in ("red", "yellow") for gpu in one.gpus.health if gpu.state == level]
    if not one.gpus.health:
        return OK, "not checked: no GPU of NVIDIA, or no nvidia-smi", ""
    if not sick:
        return OK, "%d green" % len(one.gpus.health), ""
    found = shorten_list([f"{gpu.id} is {gpu.state}: {', '.join(gpu.reasons)}" for gpu in sick], _SHOWN_GPUS, "; ")
    remedy = f"see nvidia-smi -q -i {sick[0].id} and dmesg there, then reset or replace it"
    return WARN, found, remedy


def _gpu_sharing(one: Examination, _required: Requirements) -> Verdict:
    """Without a limit, the parts of a GPU are bookkeeping."""
    kind, reason = one.gpus.sharing.kind, one.gpus.sharing.reason
    if kind == "none" or not reason:
        return OK, {"none": "parts of a GPU are not limited"}.get(kind, f"by {kind.upper()}"), ""
    daemon = "CUDA_MPS_PIPE_DIRECTORY=<agent_mps_directory> nvidia-cuda-mps-control -d"
    mps, mig = f"as root there, if nvidia-smi -q works: {daemon}", "create MIG devices there with nvidia-smi mig"
    return WARN, f"the agent {reason}", mps if kind == "mps" else mig


def _nfs(one: Examination, _required: Requirements) -> Verdict:
    absent = "no client: mounts of type nfs do not work on this agent, everything else does"
    return OK, "client found" if one.nfs else absent, ""


def _folders(one: Examination, _required: Requirements) -> Verdict:
    """The folders of this host that its sessions mount."""
    silent = one.silent_folders
    found = f"no answer from {', '.join(silent)}" if silent else "all data directories in use respond"
    return verdict(found, silent, "check the file server, and mount the directory there again")


def _mtu(one: Examination, _required: Requirements) -> Verdict:
    if not one.network.address:
        found = "no IPv4 address, which networks of sessions over several agents need"
        return WARN, found, "give it one, and run provision_agents.yml, or launch sessions on this agent alone"
    return OK, "%d at %s" % (one.network.mtu, one.network.address), ""


def _esp(one: Examination, required: Requirements) -> Verdict:
    if one.esp is None:
        return WARN, "not tested: no reference image", PROVISION
    if one.esp:
        return OK, "the kernel supports ESP", ""
    remedy = "use a kernel with ESP (modules esp4, gcm), or do not set session_network_encrypted"
    found = f"encrypted sessions cannot run on this agent: {one.esp_reason}"
    return FAIL if required.encrypted else WARN, found, remedy


def _bridge_filter(one: Examination, _required: Requirements) -> Verdict:
    """On docker_gwbridge, where containers of overlays reach the outside, rules of iptables keep them apart."""
    if one.network.bridge_filter:
        return OK, "iptables sees bridged packets", ""
    return (
        WARN,
        "iptables does not see bridged packets: containers of different sessions reach each other on docker_gwbridge",
        "load the module br_netfilter and set net.bridge.bridge-nf-call-iptables=1 with sysctl, now and at each start",
    )


def _guard(one: Examination, _required: Requirements) -> Verdict:
    """The rules beside those of Docker, which lets in this host and, before release 28, hosts with a route through it."""
    if one.network.session_guard == MISSING:
        found = "accounts of this host, and hosts with a route through it, reach all ports of sessions on it"
        return WARN, found, PROVISION + " as a user who can become root"
    if one.network.session_guard == PRESENT:
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
