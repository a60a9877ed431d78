# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of the labels of containers, networks, volumes, and images. They record what runs (docs/contracts.md).

This file has names only. The rules for values that containers report are in C(label_rules), and C(planning.plan) writes the values.
"""

from __future__ import annotations

PREFIX = "cluster.compute."
SCHEMA = PREFIX + "schema"
LAUNCH = PREFIX + "launch"

SESSION = PREFIX + "session"
NAME = SESSION + ".name"
OWNER = SESSION + ".owner"
GROUP = SESSION + ".group"
MODE = SESSION + ".mode"
SIZE = SESSION + ".size"
PLACEMENT = SESSION + ".placement"
SUBNET = SESSION + ".subnet"
REQUEST = SESSION + ".request"
FIRST = SESSION + ".first"
SLOTS = SESSION + ".slots"
FABRIC = SESSION + ".fabric"
HOST_PORTS = SESSION + ".host_ports"
GRACE = SESSION + ".grace"
BEGAN = SESSION + ".began"
FOLDERS = SESSION + ".folders"

CONTAINER = PREFIX + "container"
ROLE = CONTAINER + ".role"
INDEX = CONTAINER + ".index"
RANK = CONTAINER + ".rank"
RESOURCES = CONTAINER + ".resources"
PORTS = CONTAINER + ".ports"
BATCH = CONTAINER + ".batch"
APPS = CONTAINER + ".apps"
SECRETS = CONTAINER + ".secrets"
SPEC = CONTAINER + ".spec"
# The app that a relay forwards. A relay is not a member of its session.
RELAY = CONTAINER + ".relay"

CHECK = PREFIX + "check"
# An image made from a container has labels with this prefix: its session, its owner, and the container.
ORIGIN = PREFIX + "origin"
IMAGE = PREFIX + "image"
# The volume of the SSH runtime has two digests: of its content, and of its scripts.
RUNTIME = PREFIX + "runtime"
EDITION = RUNTIME + ".edition"

# The labels of containers. A container inherits each label of its image that its creation does not set, so the collection sets
# all of these, with an empty text where there is no value.
OF_CONTAINERS = tuple(
    sorted(
        text
        for name, text in globals().items()
        if name.isupper() and text.startswith((SCHEMA, LAUNCH, SESSION, CONTAINER, CHECK))
    )
)
