# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Devices that a container gets as nodes of ``/dev``: AMD GPUs and RDMA devices.

NVIDIA's runtime adds NVIDIA GPUs. The MPS daemon of the host limits parts of them, and is looked for here.
"""

from __future__ import annotations

import errno
import glob
import ipaddress
import os
import re
import socket
import stat
from typing import Dict, List, Mapping, Sequence

from ..._shared.codec import Json
from ..._shared.constants import RDMA_FOLDER
from ..._shared.errors import StateError
from ..._shared.paths import read

# An AMD GPU is named by its address on the PCI bus, because the number of its node can change at a start of the host.
_AMD = "AMD-"
_VENDOR = "0x1002"
# The node through which all GPUs compute: https://rocm.docs.amd.com/projects/install-on-linux/en/latest/how-to/docker.html
_COMPUTE = "kfd"
# Where the MPS daemon of an agent has its sockets. The runtime of NVIDIA shows its own default, /tmp/nvidia-mps, to every container.
MPS_DIRECTORY = "/run/nvidia-mps"
# What is said of a directory at which there is no MPS daemon.
_NO_DAEMON = "has no MPS daemon at {}, its agent_mps_directory ({})"


def amd_gpus(sys: str = "/sys", dev: str = "/dev") -> Dict[str, str]:
    """The nodes of this host's AMD GPUs by their names; none if the kernel offers no node to compute through."""
    if not os.path.exists(f"{dev}/{_COMPUTE}"):
        return {}
    found = {}
    for folder in glob.glob(f"{sys}/class/drm/renderD*"):
        node = os.path.basename(folder)
        address = os.path.basename(os.path.realpath(folder + "/device"))
        if read(folder + "/device/vendor").strip() == _VENDOR and re.match(r"renderD[0-9]+$", node):
            found[_AMD + address] = "/dev/dri/" + node
    return dict(sorted(found.items()))


def nvidia_only(gpus: Sequence[str]) -> List[str]:
    """The GPUs that the runtime of NVIDIA gives to a container.

    >>> nvidia_only(["GPU-b1028956", "AMD-0000:03:00.0"])
    ['GPU-b1028956']
    """
    return [gpu for gpu in gpus if not gpu.startswith(_AMD)]


def device_requests(gpus: Sequence[str], nodes: Mapping[str, str], rdma: bool) -> List[Json]:
    """The devices of a container. ``nodes`` has those of the agent's AMD GPUs."""
    amd = [gpu for gpu in gpus if gpu.startswith(_AMD)]
    missing = [gpu for gpu in amd if gpu not in nodes]
    if missing:
        raise StateError(f"The agent has no GPU {missing[0]} any more; check the GPUs and the driver of that host.")
    paths = (["/dev/" + _COMPUTE] if amd else []) + [nodes[gpu] for gpu in amd] + ([RDMA_FOLDER] if rdma else [])
    return [{"PathOnHost": path, "PathInContainer": path, "CgroupPermissions": "rwm"} for path in paths]


def mps_fault(directory: str, owner: int = 0) -> str:
    """Why containers cannot use an MPS daemon that has its socket in a directory; empty if they can.

    The engine mounts the directory as root: a link, or what another user than the ``owner`` has made, could lead anywhere.
    """
    if not re.fullmatch(r"(/(?!\.)[A-Za-z0-9._-]+)+", directory):
        return _NO_DAEMON.format(directory, "not an absolute path of letters, digits, dots, dashes and underscores")
    try:
        is_own = os.path.realpath(directory) == directory and os.lstat(directory).st_uid == owner
        if not is_own:
            return _NO_DAEMON.format(directory, "a link, or not root's directory")
        if not stat.S_ISSOCK(os.lstat(directory + "/control").st_mode):
            return _NO_DAEMON.format(directory, "its control is not a socket")
        # Nothing that listens notices this, because it has another type.
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as asking:
            asking.connect(directory + "/control")
    except OSError as error:
        return "" if error.errno == errno.EPROTOTYPE else _NO_DAEMON.format(directory, error.strerror)
    return _NO_DAEMON.format(directory, "another program's socket")


def device_groups(devices: Sequence[Json]) -> List[int]:
    """The groups that may use the nodes of a container, as they are on this host; never that of root."""
    found = set()
    for device in devices:
        try:
            status = os.stat(str(device.get("PathOnHost")))
        except OSError:
            continue
        found.add(status.st_gid)
    return sorted(found - {0})


def gid_of(address: str) -> str:
    """The GID of an IPv4 address, as the kernel writes it. Not by ``ipaddress``: Python 3.13 writes the last part with dots."""
    return "0000:0000:0000:0000:0000:ffff:%04x:%04x" % divmod(int(ipaddress.IPv4Address(address)), 1 << 16)
