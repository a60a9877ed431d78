#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure what the modules of an agent cost without Ansible: the creation, the start and the removal of containers.

Usage: modules.py [CONTAINERS]
"""

from __future__ import annotations

import itertools
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "collections"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from containers_lab import engine_client, launches
from engine_lab import Shape

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.containers import AgentContainers
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.removal import Removal


def main() -> int:
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    with engine_client(host) as client, launches(host, client) as launcher:
        launch = launcher(Shape(size=size).plan())
        moments = [time.monotonic()]
        for step in (launch.created, launch.started, lambda: _remove(launch)):
            step()
            moments.append(time.monotonic())
    create, start, remove = (after - before for before, after in itertools.pairwise(moments))
    print(f"modules alone, {size} containers: created {create:.2f} s, started {start:.2f} s, removed {remove:.2f} s")
    return 0


def _remove(launch: AgentContainers) -> None:
    Removal(launch.engine, [launch.plan.session.id], "", 20).carry_out(check=False)


if __name__ == "__main__":
    sys.exit(main())
