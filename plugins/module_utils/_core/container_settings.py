# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the containers of a session are made and bounded: fields that a request and its plan have in common, declared once.

Each field declares its variable, as those of ``Request`` do. ``Session`` has the same fields, so that what makes a container
reads them from the plan.
"""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

from .constants import GRACE
from .declaration import declared, declared_flag
from .public_keys import check_public_keys
from .value_rules import check_disk, check_log_size, check_text, within

_DAYS = 86400


@dataclass(frozen=True)
class ContainerSettings:
    """The settings of every container of a session."""

    grace: int = declared(
        "int",
        GRACE,
        "Seconds between SIGTERM and SIGKILL at the end of a container, from 0 to 3600. Every program in it receives SIGTERM.",
        within(0, 3600),
    )
    lifetime: int = declared(
        "int",
        0,
        "Seconds after its placement at which the session ends, from 0, which means never, to 31536000, which is a year. May be "
        "changed while the session runs.",
        within(0, 365 * _DAYS),
        kept=True,
    )
    idle_timeout: int = declared(
        "int",
        0,
        "Seconds without use after which the session ends, from 0, which means never, to 2592000, which is 30 days. A session "
        "is in use while a login by SSH lasts, a browser is connected to an app, programs in one of its containers use a twentieth "
        "of a CPU or more, or its GPUs compute for a twentieth of the time. May be changed while the session runs.",
        within(0, 30 * _DAYS),
        kept=True,
    )
    pids: int = declared(
        "int",
        32768,
        "Processes and threads of each container, from 64 to 4194304.",
        within(64, 1 << 22),
    )
    log_size: int = declared(
        "str",
        "100m",
        "Size at which the engine rotates the log of a container, at least V(64k). It holds for the engine's drivers "
        "V(json-file) and V(local).",
        check_log_size,
    )
    log_files: int = declared(
        "int",
        3,
        "Number of log files that the engine keeps of each container, from 1 to 100.",
        within(1, 100),
    )
    disk: int = declared(
        "str",
        "0",
        "Size of each container's own files, data folders excluded. V(0) sets no limit. The storage driver must support it: "
        "C(overlay2) on XFS with project quotas, C(btrfs) or C(zfs).",
        check_disk,
    )
    no_new_privileges: bool = declared_flag(
        "Programs in containers gain no privileges from setuid files, so C(sudo) and C(su) do not work.",
    )
    read_only_root: bool = declared_flag(
        "No user, not even root in a container, can change the programs, libraries and other files of the image. The folders C(/etc), "
        "C(/home), C(/job), C(/var/log), C(/tmp), C(/var/tmp), C(/run) and the data folders stay writable.",
    )
    rdma: bool = declared_flag(
        "Containers get the RDMA devices of their agents (C(/dev/infiniband)), and as much locked memory as the engine can give. The "
        "session goes to agents that have an active InfiniBand port. RoCE does not work in containers.",
    )
    bootstrap: str = declared("str", "", "Script that every container runs before it counts as ready.", check_text)
    authorized_keys: Tuple[str, ...] = declared(
        "list",
        [],
        "Public SSH keys that may log in to every container as the user C(work), beside the key of the session: at most 100, "
        "each on one line and without options.",
        check_public_keys,
        elements="str",
    )
