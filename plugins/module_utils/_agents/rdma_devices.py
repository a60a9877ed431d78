# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ports of a host's RDMA devices."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import glob
import os
from typing import List

from .._core.documents import Json
from .host import read


def rdma_ports(sys: str = "/sys") -> List[Json]:
    """Each port with the name that UCX and NCCL give it, as C(mlx5_0:1), its link layer, and whether its link is up.

    https://www.kernel.org/doc/Documentation/ABI/stable/sysfs-class-infiniband
    """
    found = sorted(glob.glob(f"{sys}/class/infiniband/*/ports/*"))
    return [
        {
            "name": f"{os.path.basename(os.path.dirname(os.path.dirname(port)))}:{os.path.basename(port)}",
            "link_layer": read(port + "/link_layer").strip(),
            "active": read(port + "/state").strip().endswith("ACTIVE"),
        }
        for port in found
    ]
