# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The suboptions of variables that are dictionaries: the documentation of each, in the form of an argument specification."""

from __future__ import annotations

from typing import Any, Dict

Documentation = Dict[str, Any]

MOUNT: Dict[str, Documentation] = {
    "source": {"type": "str", "required": True, "description": "The directory, the volume, or V(server:/path)."},
    "target": {"type": "str", "required": True, "description": "The absolute path in the containers."},
    "type": {
        "type": "str",
        "choices": ["bind", "volume", "nfs"],
        "description": "V(bind) by default if O(session_mounts[].source) is an absolute path, else V(volume).",
    },
    "mode": {"type": "str", "choices": ["rw", "ro"], "default": "rw", "description": "Whether containers may write."},
    "options": {"type": "dict", "description": "Options of the volume driver; not for V(bind)."},
    "local": {
        "type": "bool",
        "default": False,
        "description": "A volume without options may be a different directory on each agent. A session on several agents is "
        "refused without this.",
    },
}
SECRET: Dict[str, Documentation] = {
    "name": {"type": "str", "required": True, "description": "Name of the file in C(/run/secrets)."},
    "value": {"type": "str", "no_log": True, "description": "The value, for example from Ansible Vault."},
    "file": {
        "type": "str",
        "description": "A file of the controller that has the value, in place of O(session_secrets[].value).",
    },
    "environment": {"type": "str", "description": "Name of an environment variable that has the value, too."},
}
# Suboptions of an app whose port is published.
PUBLISHED = ("preferred_port", "public")
APP: Dict[str, Documentation] = {
    "name": {"type": "str", "required": True, "description": "Name of the app: lower-case letters, digits and C(-)."},
    "port": {
        "type": "int",
        "description": "Port that the app listens at, on all addresses. Required, unless O(session_apps[].name) is an app of the "
        "environment.",
    },
    "preferred_port": {"type": "int", "description": "Port of the agent to try first."},
    "public": {
        "type": "bool",
        "default": False,
        "description": "Publish the port beyond the loopback interface of the agent.",
    },
    "command": {
        "type": "str",
        "description": "Script for the user's shell, or V(image) for ENTRYPOINT and CMD of the image. Without it, only the port is "
        "published, which needs C(main1).",
    },
    "ready": {
        "type": "raw",
        "description": "Path that answers, or TCP port that accepts connections, when the app is ready. By default the port of the "
        "app.",
    },
    "environment": {"type": "dict", "description": "More environment variables for the app."},
    "path": {
        "type": "str",
        "description": "Path of the URL, with C({token}) for the token. By default C(/?token={token}); without a command C(/).",
    },
}
USER: Dict[str, Documentation] = {
    "uid": {"type": "int", "default": 1000, "description": "The user ID, at least 1."},
    "gid": {"type": "int", "description": "The group ID, at least 1; the user ID by default."},
}
ROLE: Dict[str, Documentation] = {
    "name": {
        "type": "str",
        "required": True,
        "description": "Name of the role: at most 16 lower-case letters, digits and C(-), from a letter to a letter. The "
        "containers of V(worker) are C(worker1), C(worker2) and so on.",
    },
    "size": {"type": "int", "default": 1, "description": "Number of containers."},
    "cpus": {"type": "float", "description": "CPUs of each container."},
    "memory": {"type": "str", "description": "Memory of each container."},
    "shm": {"type": "str", "description": "Size of C(/dev/shm) in each container."},
    "gpus": {"type": "float", "description": "GPUs of each container."},
    "cpu_pinning": {"type": "bool", "description": "Whether each container has CPUs of its own."},
    "image": {"type": "str", "description": "Image, or the name of an environment, whose image is taken."},
    "environment": {"type": "dict", "description": "Environment variables, added to O(session_environment)."},
    "command": {
        "type": "str",
        "description": "Script that each container runs once, as soon as it has started. Not for C(main), which has "
        "O(session_command).",
    },
    "ready": {
        "type": "raw",
        "description": "When a container counts as ready: V(12345) as soon as this port accepts connections from other containers, "
        "V(8080/health) as soon as this path answers, any other text as soon as it succeeds as a command. Without it, as soon as "
        "the container has started.",
    },
    "after": {
        "type": "list",
        "elements": "str",
        "description": "Roles whose containers are ready before a container of this role starts.",
    },
    "compute": {
        "type": "bool",
        "description": "Whether the containers have ranks of C(torch) and places in hostfiles. True by default, except for V(ps) and "
        "V(evaluator).",
    },
    "apps": {
        "type": "list",
        "elements": "raw",
        "options": {name: option for name, option in APP.items() if name not in PUBLISHED},
        "description": "Apps of the first container of the role, as in O(session_apps), each with a command. They are reached by "
        "SSH: only C(main1) publishes ports. Not for C(main), which has O(session_apps).",
    },
    "per_agent": {
        "type": "int",
        "description": "Largest number of containers of this role on an agent. A limit implies "
        "O(session_cluster_mode=multi-node).",
    },
    "resource_group": {"type": "str", "description": "Group of agents that the containers run on."},
}
