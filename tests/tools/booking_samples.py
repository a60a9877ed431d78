#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is booked on an agent, a line of JSON twice a second, until standard input ends.

It runs on the agent itself and uses no code of the collection: the store's tables, if it has one, and the engine's API.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import sqlite3
import sys
import time
from typing import Any

import docker

STORE = "/var/lib/cluster-compute/sessions.db"
LABEL = "cluster.compute."
HOLDING = ("SCHEDULED", "PREPARING", "RUNNING", "TERMINATING")
PERIOD = 0.5


def stored() -> list[dict[str, Any]]:
    """The sessions in the store, with the plans of those that hold something."""
    if not os.path.exists(STORE):
        return []
    with contextlib.closing(sqlite3.connect(f"file:{STORE}?mode=rw", uri=True, timeout=30)) as store:
        rows = store.execute("SELECT owner, name, state, reason, plan FROM session").fetchall()
    return [
        {"owner": owner, "name": name, "state": state, "reason": reason, **_plan(plan if state in HOLDING else "null")}
        for owner, name, state, reason, plan in rows
    ]


def _plan(text: str) -> dict[str, Any]:
    plan = json.loads(text)
    containers = [
        {
            "id": container["id"],
            "agent": container["agent"],
            "resources": container["resources"],
            "ports": [port["host_port"] for port in container["ports"]],
        }
        for container in (plan["containers"] if plan else [])
    ]
    return {"containers": containers, "subnet": plan["network"]["subnet"] if plan else ""}


def on_engine(client: Any) -> dict[str, Any]:
    """The containers and networks of sessions on the engine: what they were created with, not what their labels say of it."""
    only = {"label": LABEL + "session"}
    containers = [
        found
        for item in client.containers(all=True, filters=only)
        for found in [_container(client, item["Id"])]
        if found is not None
    ]
    networks = client.networks(filters=only)
    return {
        "containers": containers,
        "subnets": [one["Subnet"] for network in networks for one in network["IPAM"]["Config"] or []],
    }


def _container(client: Any, identity: str) -> dict[str, Any] | None:
    try:
        found = client.inspect_container(identity)
    except docker.errors.NotFound:
        return None
    host, labels = found["HostConfig"], found["Config"]["Labels"]
    return {
        "id": labels[LABEL + "container"],
        "owner": labels[LABEL + "session.owner"],
        "resources": {
            "millicpus": host["NanoCpus"] // 10**6,
            "memory": host["Memory"],
            "gpus": [{"id": one} for each in host["DeviceRequests"] or [] for one in each["DeviceIDs"]],
        },
        "ports": [int(port["HostPort"]) for ports in (host["PortBindings"] or {}).values() for port in ports],
        "status": found["State"]["Status"],
    }


def main() -> None:
    client = docker.APIClient(version="auto", timeout=120)
    is_over = False
    while not is_over:
        # The last sample begins after the end of what is watched.
        is_over, began = bool(select.select([sys.stdin], [], [], 0)[0]), time.time()
        print(json.dumps({"time": began, "sessions": stored(), **on_engine(client)}), flush=True)
        time.sleep(max(0.0, began + PERIOD - time.time()))


if __name__ == "__main__":
    main()
