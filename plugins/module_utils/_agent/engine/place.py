# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The place of a container on the network of its session: its address and its published ports, which other users can take away.

An engine that connects a container that runs gives its interface another name, which the variables of the session do not have.
Therefore the container is stopped first.
"""

from __future__ import annotations

from ..._shared.codec import Json
from ..._shared.documents.condition import difference
from ..._shared.documents.plan import Container, Plan
from .client import Engine
from .payloads import limit_amounts
from .reports import container_entry


def is_planned(plan: Plan, container: Container, listed: Json) -> bool:
    """Return whether a container that runs is at its place, and its ports are published."""
    state, _fault = difference(plan, container, container_entry(listed))
    return not state


def restore(engine: Engine, plan: Plan, container: Container, listed: Json) -> None:
    """Give a container that does not run its place again, if it has another one or none."""
    entry = container_entry(listed)
    is_known = "NetworkSettings" in listed and not plan.network.is_of_host
    if is_known and (entry.network, entry.address) != (plan.network.name, container.address):
        connect_networks(engine, plan, container, listed)


def connect_networks(engine: Engine, plan: Plan, container: Container, listed: Json) -> None:
    """Connect a container that does not run, and that may refer to a former network by its ID."""
    if plan.network.name in ((listed.get("NetworkSettings") or {}).get("Networks") or {}):
        engine.disconnect(listed["Id"], plan.network.name, container.hostname)
    place = {"ipv4_address": container.address, "aliases": [container.hostname]}
    engine.connect(listed["Id"], plan.network.name, place, container.hostname)


def set_limits(engine: Engine, plan: Plan, container: Container, listed: Json) -> None:
    """Give a container that runs its limits again."""
    wanted = {name: value for name, value in limit_amounts(container.resources).items() if name != "ShmSize"}
    engine.update(listed["Id"], {**wanted, "PidsLimit": plan.session.pids}, container.hostname)
