# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options for the Docker Engine. Private to this collection."""

from __future__ import annotations


class ModuleDocFragment:
    """Options, requirements and notes of every module that connects to an engine."""

    DOCUMENTATION = r"""
options:
  docker_host:
    description:
      - The address of the Docker Engine on the host that runs the module, such as V(unix:///var/run/docker.sock)
        or V(tcp://127.0.0.1:2375).
      - If not set, the variable C(agent_docker_host) of that host in the inventory is used, then the environment variable
        E(DOCKER_HOST) on that host, and then V(unix:///var/run/docker.sock).
    type: str
  timeout:
    description: Seconds that a single request to the engine may take.
    type: int
    default: 60
requirements:
  - Docker SDK for Python >= 5.0.0
  - Docker Engine >= 20.10 (API 1.41)
notes:
  - Only containers, networks and volumes with the labels of this collection are changed or removed. M(cluster.compute.ssh) also
    changes the containers that its option O(cluster.compute.ssh#module:containers) names.
"""
