# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the GPUs of a host do now: NVIDIA as C(nvidia-smi) reports it, AMD as the kernel shows it."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import os
import re
import subprocess
from typing import List, Mapping, Sequence

from .._core.documents import Json
from .._docker.device_nodes import amd_gpus
from .host import read

_COMMAND = ("nvidia-smi", "--query-gpu=uuid,utilization.gpu,memory.used,memory.total", "--format=csv,noheader,nounits")
# Seconds. The driver loads for a second or two if no program uses it.
_PATIENCE = 10
_MIB = 1 << 20


def gpu_use() -> List[Json]:
    """The use of each device; empty without devices, or without the program of their driver."""
    return nvidia_use() + amd_use(amd_gpus())


def use_of(devices: Sequence[Json], use: Sequence[Json]) -> List[Json]:
    """The use of the devices of a container, each with C(id). A device that nothing measures, as one of MIG, is left out."""
    own = {device["id"] for device in devices}
    return [one for one in use if one["id"] in own]


def amd_use(nodes: Mapping[str, str], sys: str = "/sys") -> List[Json]:
    """The use of AMD's devices, whose nodes are given by their names.

    https://docs.kernel.org/gpu/amdgpu/thermal.html
    """
    folders = {name: f"{sys}/class/drm/{os.path.basename(node)}/device/" for name, node in nodes.items()}
    return [
        {
            "id": name,
            "percent": _number(read(folder + "gpu_busy_percent").strip()),
            "memory": _number(read(folder + "mem_info_vram_used").strip()),
            "capacity": _number(read(folder + "mem_info_vram_total").strip()),
        }
        for name, folder in folders.items()
    ]


def nvidia_use() -> List[Json]:
    """The use of NVIDIA's devices."""
    try:
        done = subprocess.run(
            _COMMAND, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return parse_gpu_use(done.stdout) if done.returncode == 0 else []


def parse_gpu_use(text: str) -> List[Json]:
    """The devices in the program's output. A device that does not report an amount has None.

    >>> parse_gpu_use("GPU-1, 37, 1024, 2048\\n")
    [{'id': 'GPU-1', 'percent': 37, 'memory': 1073741824, 'capacity': 2147483648}]
    """
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines()]
    return [
        {
            "id": row[0],
            "percent": _number(row[1]),
            "memory": _bytes(row[2]),
            "capacity": _bytes(row[3]),
        }
        for row in rows
        if len(row) == len(_COMMAND[1].split(","))
    ]


def _number(cell: str) -> int | None:
    return int(cell) if re.fullmatch("[0-9]{1,18}", cell) else None


def _bytes(cell: str) -> int | None:
    mebibytes = _number(cell)
    return None if mebibytes is None else mebibytes * _MIB
