# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the NVIDIA devices of a host do now, as C(nvidia-smi) reports it."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import subprocess
from typing import List

from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json

_COMMAND = ("nvidia-smi", "--query-gpu=uuid,utilization.gpu,memory.used,memory.total", "--format=csv,noheader,nounits")
# Seconds. The driver loads for a second or two if no program uses it.
_PATIENCE = 10
_MIB = 1 << 20


def gpu_use() -> List[Json]:
    """The use of each device; empty without devices or without the program."""
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
    return int(cell) if cell.isdigit() else None


def _bytes(cell: str) -> int | None:
    mebibytes = _number(cell)
    return None if mebibytes is None else mebibytes * _MIB
