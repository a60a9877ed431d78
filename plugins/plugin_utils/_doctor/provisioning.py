# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decisions of the role ``agent``: settings with their defaults, and the packages of the engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Mapping, Sequence, Tuple

from ...module_utils._shared.codec import Json
from ...module_utils._shared.constants import STATE_DIR
from ...module_utils._shared.errors import InputError

# Debian's docker.io contains the command docker up to this major version; later it is the package docker-cli.
LAST_DEBIAN_WITH_CLI = 12
DEBIAN_ENGINE = ("docker.io", "iptables", "iproute2")
DEBIAN_CLI = "docker-cli"
# The first of these that a repository offers is installed.
REDHAT_ENGINES: Dict[str, Tuple[str, ...]] = {
    "docker-ce": ("docker-ce", "docker-ce-cli", "containerd.io", "iptables", "iproute"),
    "moby-engine": ("moby-engine", "iptables", "iproute"),
    "docker": ("docker", "iptables", "iproute"),
}


@dataclass(frozen=True)
class AgentVariables:
    """Variables of the role, without their prefix. One that is None has a default that depends on the host or the inventory."""

    docker_host: str = ""
    state_dir: str = ""
    swarm_manager: bool = False
    swarm_address: str = ""
    become: bool | None = None
    swarm: bool | None = None


def role_settings(
    host: str, address: str, given: AgentVariables, facts: Json, groups: Mapping[str, Sequence[str]]
) -> Json:
    """The settings of a host.

    ``facts`` are Ansible's facts of the host, ``groups`` are the groups of the inventory. ``address`` is where Ansible reaches the
    host.
    """
    if ":" in given.swarm_address:
        rule = "must be an IPv4 address of the host: the networks of sessions over several agents need it"
        raise InputError("agent_swarm_address", given.swarm_address, rule)
    agents, heads = list(groups.get("agents") or [host]), list(groups.get("head") or ())
    head = next((name for name in heads if name in agents), agents[0])
    return {
        "name": host,
        "agents": agents,
        "head": head,
        "is_head": host == (heads or agents)[0],
        "become": facts.get("effective_user_id") != 0 if given.become is None else given.become,
        # Without an address: what the modules use too, DOCKER_HOST of the host or the usual socket, whatever context is selected.
        "docker": ["docker", "--host", given.docker_host] if given.docker_host else ["docker", "--context", "default"],
        "state_dir": given.state_dir or STATE_DIR,
        "swarm": len(agents) > 1 if given.swarm is None else given.swarm,
        "swarm_manager": given.swarm_manager,
        "swarm_addresses": [text for text in (given.swarm_address, address) if text],
        "engine_packages": list(debian_engine_packages(facts)) if facts.get("os_family") == "Debian" else [],
        "engine_packages_to_remove": engine_packages_to_remove(facts),
        "engine_choices": [{"name": name, "packages": list(parts)} for name, parts in REDHAT_ENGINES.items()],
    }


def debian_engine_packages(facts: Json) -> Tuple[str, ...]:
    """The packages of the engine on Debian and its derivatives."""
    return DEBIAN_ENGINE + ((DEBIAN_CLI,) if _has_cli_package(facts) else ())


def engine_packages_to_remove(facts: Json) -> List[str]:
    """The packages that contain the engine; tools that other programs need stay."""
    if facts.get("os_family") == "Debian":
        return [name for name in debian_engine_packages(facts) if name.startswith("docker")]
    return list(REDHAT_ENGINES)


def _has_cli_package(facts: Json) -> bool:
    """Return whether the release splits the command from the engine; testing and unstable have a name in place of a number."""
    if facts.get("distribution") != "Debian":
        return False
    major = str(facts.get("distribution_major_version") or "")
    return not major.isdigit() or int(major) > LAST_DEBIAN_WITH_CLI
