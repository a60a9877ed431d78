# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory's variables of an agent, which every entry point of the role ``session`` reads."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Mapping

from .variable import Documentation

AGENT_VARIABLES: Mapping[str, Documentation] = {
    "agent_docker_host": {
        "type": "str",
        "default": "",
        "description": "Address of the agent's engine. If empty, E(DOCKER_HOST) of the environment there, else "
        "C(unix:///var/run/docker.sock).",
    },
    "agent_resource_group": {
        "type": "list",
        "elements": "str",
        "default": ["default"],
        "description": "Resource groups of the agent: a name, or a list of names.",
    },
    "agent_schedulable": {
        "type": "bool",
        "default": True,
        "description": "Whether new sessions may be placed on the agent.",
    },
    "agent_cpus": {"type": "float", "description": "CPUs of the agent, instead of those that its engine counts."},
    "agent_memory": {
        "type": "str",
        "description": "Memory of the agent, such as V(64g), instead of what its engine counts.",
    },
    "agent_reserved_cpus": {"type": "float", "default": 0, "description": "CPUs of the agent that sessions never get."},
    "agent_reserved_memory": {
        "type": "str",
        "default": "0",
        "description": "Memory of the agent that sessions never get, such as V(2g).",
    },
    "agent_gpus": {
        "type": "list",
        "elements": "dict",
        "description": "GPUs of the agent, instead of those that its kernel shows.",
        "options": {
            "id": {"type": "str", "required": True, "description": "The UUID of the device."},
            "shares": {"type": "int", "default": 1, "description": "Number of sessions that may share the device."},
        },
    },
    "agent_publish": {
        "type": "str",
        "description": "Address of the agent on which the SSH port of C(main1) is published. By default C(127.0.0.1) for "
        "a local connection, else C(0.0.0.0).",
    },
}
