# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An engine's answers as the documents of docs/contracts.md: no more of them than somebody reads."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import json
from typing import Any, List, Set

from ansible_collections.cluster.compute.plugins.module_utils._core.constants import (
    LABEL,
    LABEL_CONTAINER,
    LABEL_LAUNCH,
    LABEL_SESSION,
)
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._core.names import container_name

_ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64", "386": "i386", "arm": "armv7l"}


def is_ours(listed: Json) -> bool:
    """Whether a container is a session's: its labels say so, and it has the name that they imply.

    An image that was made of a session's container has that one's labels, and so has whatever is run from it. What the
    engine has begun to remove may have no name any more.
    """
    labels = listed.get("Labels") or {}
    if LABEL_SESSION not in labels:
        return False
    owner, session = labels.get(LABEL_SESSION + ".owner", ""), labels.get(LABEL_SESSION + ".name", "")
    return engine_name(listed) in ("", container_name(owner, session, _hostname(labels)))


def container_entry(listed: Json, inspected: Json | None = None) -> Json:
    """A container of ours as reports show it, from the engine's list; how one has ended is told by its own description."""
    labels = {name: text for name, text in (listed.get("Labels") or {}).items() if name.startswith(LABEL)}
    network, address = _place(listed)
    state = (inspected or {}).get("State") or {}
    return {
        "id": labels.get(LABEL_CONTAINER, ""),
        "session": labels.get(LABEL_SESSION, ""),
        "name": labels.get(LABEL_SESSION + ".name", ""),
        "owner": labels.get(LABEL_SESSION + ".owner", ""),
        "group": labels.get(LABEL_SESSION + ".group", ""),
        "mode": labels.get(LABEL_SESSION + ".mode", ""),
        "hostname": _hostname(labels),
        "role": labels.get(LABEL_CONTAINER + ".role", ""),
        "index": _whole(labels.get(LABEL_CONTAINER + ".index")),
        "rank": _whole(labels.get(LABEL_CONTAINER + ".rank")),
        "launch": labels.get(LABEL_LAUNCH, ""),
        "spec": labels.get(LABEL_CONTAINER + ".spec", ""),
        "engine_id": listed["Id"],
        "engine_name": engine_name(listed),
        "image": listed.get("Image", ""),
        "state": state.get("Status") or listed.get("State", ""),
        "exit_code": int(state.get("ExitCode") or 0),
        "oom_killed": bool(state.get("OOMKilled")),
        "created": float(listed.get("Created") or 0),
        "address": address,
        "network": network,
        "resources": _document(labels.get(LABEL_CONTAINER + ".resources"), {}),
        "ports": sorted(published(listed) | _booked(labels)),
        "labels": labels,
    }


def network_entry(network: Json) -> Json:
    """A network of anybody's: what a new subnet must not overlap, and whose it is."""
    pools = (network.get("IPAM") or {}).get("Config") or []
    return {
        "name": network.get("Name", ""),
        "driver": network.get("Driver", ""),
        "subnets": [pool["Subnet"] for pool in pools if pool.get("Subnet")],
        "session": (network.get("Labels") or {}).get(LABEL_SESSION, ""),
    }


def engine_entry(info: Json, api: str, cluster: str = "") -> Json:
    """The engine and its place in a Swarm, whose id managers alone are told: ``cluster`` is what a worker knows."""
    swarm = info.get("Swarm") or {}
    return {
        "version": info.get("ServerVersion", ""),
        "api": api,
        "rootless": "name=rootless" in (info.get("SecurityOptions") or []),
        "swarm": {
            "state": swarm.get("LocalNodeState", "inactive"),
            "node_id": swarm.get("NodeID", ""),
            "cluster_id": (swarm.get("Cluster") or {}).get("ID") or cluster,
            "manager": bool(swarm.get("ControlAvailable")),
            "managers": [one["NodeID"] for one in swarm.get("RemoteManagers") or [] if one.get("NodeID")],
            "address": swarm.get("NodeAddr", ""),
        },
    }


def image_entry(reference: str, image: Json | None) -> Json:
    image = image or {}
    return {
        "reference": reference,
        "present": bool(image),
        "id": image.get("Id", ""),
        "architecture": architecture(image.get("Architecture", "")),
    }


def architecture(name: str) -> str:
    """The kernel's name of an architecture, for what images call it.

    >>> architecture("amd64")
    'x86_64'
    """
    return _ARCHITECTURES.get(name, name)


def engine_name(listed: Json) -> str:
    """A container's own name; the engine also lists the names that links give it, which hold a second slash."""
    names = [name[1:] for name in listed.get("Names") or [] if "/" not in name[1:]]
    return str(names[0]) if names else ""


def published(listed: Json) -> Set[int]:
    """The host ports that a running container holds, listening or (without the engine's proxy) by a rule alone."""
    return {int(port["PublicPort"]) for port in listed.get("Ports") or [] if port.get("PublicPort")}


def _hostname(labels: Json) -> str:
    role, index = labels.get(LABEL_CONTAINER + ".role", ""), _whole(labels.get(LABEL_CONTAINER + ".index"))
    return "%s%d" % (role, index)


def _place(listed: Json) -> List[str]:
    """The session's network and the address on it: the one that was asked for, also while the container is down."""
    networks = (listed.get("NetworkSettings") or {}).get("Networks") or {}
    for name, place in networks.items():
        wanted = ((place or {}).get("IPAMConfig") or {}).get("IPv4Address")
        if wanted:
            return [name, wanted]
    return next(([name, (place or {}).get("IPAddress", "")] for name, place in networks.items()), ["", ""])


def _booked(labels: Json) -> Set[int]:
    """The ports that main1 was given, which stay its own while it is down."""
    ports = _document(labels.get(LABEL_CONTAINER + ".ports"), [])
    return {int(port["host_port"]) for port in ports if port.get("host_port")}


def _document(text: str | None, otherwise: Any) -> Any:
    try:
        return json.loads(text or "")
    except ValueError:
        return otherwise


def _whole(text: str | None) -> int:
    return int(text) if text and text.isdigit() else 0
