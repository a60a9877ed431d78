# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The decisions of the role ``agent``, as tables."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError
from ansible_collections.cluster.compute.plugins.plugin_utils._doctor.provisioning import (
    AgentVariables,
    debian_engine_packages,
    role_settings,
)

ROOT = {"effective_user_id": 0, "os_family": "Debian", "distribution": "Debian", "distribution_major_version": "12"}
ALICE = {**ROOT, "effective_user_id": 1000, "user_dir": "/home/alice"}


@pytest.mark.parametrize(
    ("distribution", "major", "has_cli"),
    [
        ("Debian", "12", False),
        ("Debian", "13", True),
        ("Debian", "n/a", True),
        ("Debian", "trixie/sid", True),
        ("Debian", "testing", True),
        ("Debian", "", True),
        ("Ubuntu", "22", False),
        ("Ubuntu", "24", False),
        ("Kali", "2025", False),
    ],
)
def test_the_command_docker_is_a_package_of_its_own_since_trixie(distribution: str, major: str, has_cli: bool) -> None:
    facts = {"os_family": "Debian", "distribution": distribution, "distribution_major_version": major}
    packages = debian_engine_packages(facts)
    assert packages == ("docker.io", "iptables", "iproute2") + (("docker-cli",) if has_cli else ())


def settings(
    host: str = "a1", facts: dict[str, Any] = ROOT, groups: dict[str, list[str]] | None = None, **options: Any
) -> dict[str, Any]:
    three = {"agents": ["a1", "a2", "a3"]}
    return role_settings(host, "192.0.2.1", AgentVariables(**options), facts, three if groups is None else groups)


def test_the_swarm_has_addresses_of_ipv4() -> None:
    with pytest.raises(InputError, match=r"agent_swarm_address: .* must be an IPv4 address"):
        settings(swarm_address="2001:db8::1")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (settings(), {"become": False, "state_dir": "/var/lib/cluster-compute", "swarm": True, "is_head": True, "head": "a1"}),
        (settings(facts=ALICE), {"become": True, "state_dir": "/var/lib/cluster-compute"}),
        (settings(facts=ALICE, become=False, state_dir="/srv/s"), {"become": False, "state_dir": "/srv/s"}),
        (settings("a2"), {"is_head": False, "head": "a1"}),
        (settings("a2", groups={"agents": ["a1", "a2"], "head": ["a2"]}), {"is_head": True, "head": "a2"}),
        (settings(groups={"agents": ["a1"], "head": ["h"]}), {"is_head": False, "head": "a1", "swarm": False}),
        (settings(groups={}), {"agents": ["a1"], "is_head": True, "head": "a1", "swarm": False}),
        (settings(swarm=False, swarm_manager=True), {"swarm": False, "swarm_manager": True}),
        (settings(groups={}, swarm=True), {"swarm": True}),
        (settings(), {"docker": ["docker", "--context", "default"], "swarm_addresses": ["192.0.2.1"]}),
        (settings(docker_host="tcp://h"), {"docker": ["docker", "--host", "tcp://h"]}),
        (settings(swarm_address="10.0.0.1"), {"swarm_addresses": ["10.0.0.1", "192.0.2.1"]}),
        (settings(), {"engine_packages": ["docker.io", "iptables", "iproute2"], "engine_packages_to_remove": ["docker.io"]}),
        (
            settings(facts={**ROOT, "os_family": "RedHat"}),
            {"engine_packages": [], "engine_packages_to_remove": ["docker-ce", "moby-engine", "docker"]},
        ),
    ],
)  # fmt: skip
def test_settings(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert {key: found[key] for key in expected} == expected
