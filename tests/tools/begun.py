# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether containers have gone on without a start."""

from __future__ import annotations

from collections.abc import Iterable

from controller import Session

# When PID 1 of a container began, in ticks since its host was started, and that start.
BEGAN = "cut -d' ' -f22 /proc/1/stat; cat /proc/sys/kernel/random/boot_id"


def begun(session: Session, hosts: Iterable[str]) -> str:
    """When each container began: the same as long as none starts again."""
    return session.say("main1", "; ".join(f'ssh {host} "{BEGAN}"' for host in hosts))
