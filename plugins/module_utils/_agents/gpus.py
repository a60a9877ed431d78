# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The GPUs of a host: those of AMD by their device nodes, those of NVIDIA by UUID.

The UUIDs are from the driver's files in /proc, or from ``nvidia-smi`` where these do not have them.
"""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import glob
import re
import shutil
import subprocess
from typing import Callable, List

from .._docker.device_nodes import amd_gpus
from .host import read

# Seconds that nvidia-smi may take: it initializes each GPU that nothing has used since the start of the host.
PATIENCE = 30
_UUID = re.compile(r"\(UUID: ((?:GPU|MIG)-[0-9A-Za-z./-]+)\)")


def all_gpus(has_runtime: bool) -> List[str]:
    """The GPUs that containers can get: those of NVIDIA if the engine has its runtime, and those of AMD."""
    return (gpu_ids() if has_runtime else []) + list(amd_gpus())


def ask_driver() -> str:
    """The output of ``nvidia-smi -L``; empty if it is missing, fails or does not end."""
    program = shutil.which("nvidia-smi") or "/usr/bin/nvidia-smi"
    try:
        done = subprocess.run(
            [program, "-L"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""


def gpu_ids(proc: str = "/proc", ask: Callable[[], str] = ask_driver) -> List[str]:
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
    """The UUIDs in the output of ``nvidia-smi -L``. A GPU that is divided into MIG devices counts as these devices.

    https://docs.nvidia.com/datacenter/tesla/mig-user-guide/
    """
    groups: List[List[str]] = []
    for line in text.splitlines():
        found = _UUID.search(line)
        if found and line.startswith("GPU "):
            groups.append([found.group(1)])
        elif found and groups and line.lstrip().startswith("MIG "):
            groups[-1].append(found.group(1))
    return [uuid for group in groups for uuid in (group[1:] or group)]
