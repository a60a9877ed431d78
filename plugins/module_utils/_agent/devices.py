# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The devices of a host: its GPUs, what they do now, and the ports of its RDMA devices.

AMD's GPUs are known by their device nodes, and what they do by files of the kernel. The UUIDs of NVIDIA's are from the
driver's files in /proc, or from ``nvidia-smi`` where these do not have them; their use is from ``nvidia-smi``.
"""

from __future__ import annotations

import glob
import os
import re
from typing import Callable, Iterable, Iterator, List, Mapping, Sequence, Tuple

from .._shared.constants import MIG_DEVICE, ROCE_V2
from .._shared.documents.plan import Gpu
from .._shared.documents.report import GpuSharing, GpuUse, RdmaPort
from .._shared.paths import read
from .engine.device_nodes import amd_gpus, gid_of, mps_fault
from .host import own_addresses
from .nvidia import Seen, listed_gpus, output_of, sizes

# What limits a part of a GPU: nothing, NVIDIA's MPS, or its MIG.
NO_LIMIT, MPS, MIG = "none", "mps", "mig"
# The shares of a GPU with MPS, unless the inventory has another number: percent.
_PERCENT = 100.0
_NO_PART = "gives no part of a GPU: "
_UNDIVIDED = {
    NO_LIMIT: "agent_gpu_sharing is none, and agent_gpus has no shares",
    MPS: "nvidia-smi reports no amount of memory, or agent_gpus has no shares",
    MIG: "agent_gpu_sharing is mig, and nvidia-smi lists no MIG device that is smaller than its GPU and has memory of its own",
}


def all_gpus(has_runtime: bool) -> List[str]:
    """The GPUs that containers can get: NVIDIA GPUs if the engine has the NVIDIA runtime, and AMD GPUs."""
    return (gpu_ids() if has_runtime else []) + list(amd_gpus())


def gpu_ids(proc: str = "/proc", ask: Callable[[], str] = lambda: output_of("-L")) -> List[str]:
    """The UUIDs of the GPUs and MIG devices that a container can get.

    Before its first use the kernel shows a GPU as ``GPU-????????-…``, and it never shows MIG devices. ``nvidia-smi`` is asked only
    then, because it takes seconds on some hosts.
    """
    files = sorted(glob.glob(f"{proc}/driver/nvidia/gpus/*/information"))
    matches = (re.search(r"^GPU UUID:\s*(\S+)", read(name), re.MULTILINE) for name in files)
    known = [match.group(1) for match in matches if match]
    is_split = bool(glob.glob(f"{proc}/driver/nvidia/capabilities/gpu*/mig/gi*"))
    listed = parse_list(ask()) if known and (is_split or any("?" in uuid for uuid in known)) else []
    return listed or [uuid for uuid in known if "?" not in uuid]


def parse_list(text: str) -> List[str]:
    """The UUIDs in the output of ``nvidia-smi -L``. A GPU that is divided into MIG devices counts as these devices."""
    return [uuid for gpu, parts in listed_gpus(text) for uuid in (parts or [gpu])]


def divided(
    gpus: Sequence[Gpu], sharing: str, directory: str, is_declared: bool, seen: Seen | None
) -> Tuple[List[Gpu], GpuSharing]:
    """The GPUs with the parts that sessions can get, and what limits these parts, or why there are none.

    With ``is_declared``, the inventory says into how many shares each GPU is divided. The MPS daemon has its sockets in ``directory``.
    """
    fault = seen.log.fault if seen else ""
    known = sizes(seen) if seen else {}
    if fault:
        return list(gpus), GpuSharing(sharing, _NO_PART + fault, may_pass=True)
    if sharing == MIG:
        found = _mig_devices(gpus, known)
    elif sharing == MPS:
        found = [_by_mps(gpu, gpu.shares if is_declared else _PERCENT, known) for gpu in gpus]
    else:
        found = list(gpus)
    if gpus and all(gpu.shares == 1 for gpu in found):
        return found, GpuSharing(sharing, _NO_PART + _UNDIVIDED[sharing])
    reason = mps_fault(directory) if sharing == MPS else ""
    return found, GpuSharing(sharing, reason, may_pass=bool(reason))


def _mig_devices(gpus: Sequence[Gpu], known: Mapping[str, Tuple[float, int]]) -> List[Gpu]:
    """A MIG device is a part in itself, and a GPU has no others."""
    parts = [gpu.id for gpu in gpus if gpu.id.startswith(MIG_DEVICE)]
    whole = [Gpu(gpu.id) for gpu in gpus if gpu.id not in parts]
    return whole + [Gpu(part, *known[part]) for part in parts if part in known]


def _by_mps(gpu: Gpu, shares: float, known: Mapping[str, Tuple[float, int]]) -> Gpu:
    memory = 0 if gpu.id.startswith(MIG_DEVICE) else known.get(gpu.id, (0.0, 0))[1]
    return Gpu(gpu.id, shares, memory) if memory and shares > 1 else Gpu(gpu.id)


_COLUMNS = "uuid,utilization.gpu,memory.used,memory.total"
# Seconds. The driver loads for a second or two if no program uses it.
_PATIENCE = 10
_MIB = 1 << 20


def gpu_use() -> List[GpuUse]:
    """The use of each device; empty without devices, or without the program of their driver."""
    answer = output_of(f"--query-gpu={_COLUMNS}", "--format=csv,noheader,nounits", patience=_PATIENCE)
    return parse_gpu_use(answer) + amd_use(amd_gpus())


def use_of_gpu(devices: Sequence[Gpu], use: Sequence[GpuUse]) -> Tuple[GpuUse, ...]:
    """The use of the devices of a container. A device that nothing measures, as one of MIG, is left out."""
    own = {device.id for device in devices}
    return tuple(one for one in use if one.id in own)


def amd_use(nodes: Mapping[str, str], sys: str = "/sys") -> List[GpuUse]:
    """The use of AMD's devices by name, whose nodes are given: https://docs.kernel.org/gpu/amdgpu/thermal.html"""
    folders = {name: f"{sys}/class/drm/{os.path.basename(node)}/device/" for name, node in nodes.items()}
    files = ("gpu_busy_percent", "mem_info_vram_used", "mem_info_vram_total")
    return [GpuUse(name, *(_number(read(folder + file).strip()) for file in files)) for name, folder in folders.items()]


def parse_gpu_use(text: str) -> List[GpuUse]:
    """The devices in the program's output. A device that does not report an amount has None."""
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines()]
    return [
        GpuUse(row[0], _number(row[1]), _bytes(row[2]), _bytes(row[3]))
        for row in rows
        if len(row) == len(_COLUMNS.split(","))
    ]


def _number(cell: str) -> int | None:
    return int(cell) if re.fullmatch("[0-9]{1,18}", cell) else None


def _bytes(cell: str) -> int | None:
    mebibytes = _number(cell)
    return None if mebibytes is None else mebibytes * _MIB


def rdma_ports(fabric: str, addresses: Iterable[str] | None = None, sys: str = "/sys") -> List[RdmaPort]:
    """Each port with the name that UCX and NCCL give it, as C(mlx5_0:1), its link layer, and whether its link is up.

    C(fabric): its network interface is the interface for the fabric, or lies beneath it, as beneath a VLAN. C(host): it has a
    RoCE v2 GID for one of C(addresses), by default the addresses of the host. GIDs of containers on the fabric do not count.
    https://www.kernel.org/doc/Documentation/ABI/stable/sysfs-class-infiniband
    """
    own = set(map(gid_of, own_addresses() if addresses is None else addresses))
    found = sorted(glob.glob(f"{sys}/class/infiniband/*/ports/*"))
    return [
        RdmaPort(
            name=f"{os.path.basename(os.path.dirname(os.path.dirname(port)))}:{os.path.basename(port)}",
            link_layer=read(port + "/link_layer").strip(),
            active=read(port + "/state").strip().endswith("ACTIVE"),
            fabric=_is_beneath(read(port + "/gid_attrs/ndevs/0").strip(), fabric, sys),
            host=any(entry in own for entry in _gids(port)),
        )
        for port in found
    ]


def _gids(port: str) -> Iterator[str]:
    """The RoCE v2 GIDs of a port."""
    for name in glob.glob(f"{port}/gid_attrs/types/*"):
        if read(name).strip() == ROCE_V2:
            yield read(f"{port}/gids/{os.path.basename(name)}").strip()


def gid_types(port: str, sys: str = "/sys") -> List[str]:
    """The types of the addresses (GIDs) of a port, as C(RoCE v2). An entry of its table without an address cannot be read."""
    device, _colon, number = port.partition(":")
    files = glob.glob(f"{sys}/class/infiniband/{device}/ports/{number}/gid_attrs/types/*")
    return sorted({read(name).strip() for name in files} - {""})


def _is_beneath(name: str, fabric: str, sys: str) -> bool:
    return bool(name and fabric) and (name == fabric or os.path.exists(f"{sys}/class/net/{fabric}/lower_{name}"))
