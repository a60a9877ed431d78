# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of the labels of containers, networks, volumes and images, which are the record of what runs: see docs/contracts.md."""

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
# Of a relay, which is no member of its session: the name of its app.
RELAY = CONTAINER + ".relay"

CHECK = PREFIX + "check"
# Of an image that was made of a container of a session: whose, and of which container.
ORIGIN = PREFIX + "origin"
IMAGE = PREFIX + "image"
# Of the volume with the SSH runtime: the digest of its content, and the digest of its scripts.
RUNTIME = PREFIX + "runtime"
EDITION = RUNTIME + ".edition"
