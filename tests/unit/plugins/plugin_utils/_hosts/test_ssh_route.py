# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The jump hosts that the inventory and the user's configuration name, as OpenSSH reads them."""

from __future__ import annotations

import doctest
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.plugin_utils._hosts import ssh_route
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.ssh_route import Route, address_of, route_by


def test_its_own_examples() -> None:
    assert doctest.testmod(ssh_route).failed == 0


@pytest.mark.parametrize(
    ("variables", "address"),
    [
        ({}, "agent1"),
        ({"ansible_host": "192.0.2.1"}, "192.0.2.1"),
        ({"ansible_host": "192.0.2.1", "ansible_connection": "local"}, "127.0.0.1"),
        ({"ansible_host": "192.0.2.1", "ansible_connection": "ansible.builtin.local"}, "127.0.0.1"),
    ],
)
def test_the_address_of_an_agent_follows_from_its_connection(variables: dict[str, Any], address: str) -> None:
    assert address_of("agent1", {"hostvars": {"agent1": variables}}, SimpleNamespace(connection="ssh")) == address


@pytest.mark.parametrize(
    ("arguments", "proxy"),
    [
        ({}, ""),
        ({"ansible_ssh_common_args": "-o ProxyJump=bastion"}, "ssh -W [%h]:%p ssh://bastion"),
        ({"ansible_ssh_common_args": "-J one,ops@two:2222"}, "ssh -J one -W [%h]:%p ssh://ops@two:2222"),
        ({"ansible_ssh_extra_args": "-o 'ProxyJump bastion'"}, "ssh -W [%h]:%p ssh://bastion"),
        ({"ansible_ssh_args": "-o ProxyJump=[2001:db8::1]:22"}, "ssh -W [%h]:%p 'ssh://[2001:db8::1]:22'"),
        ({"ansible_ssh_common_args": "-o ProxyCommand=\"nc -x 'a b' %h %p\""}, "nc -x 'a b' %h %p"),
        ({"ansible_ssh_common_args": "-o ProxyCommand='ssh %r@x %n'", "ansible_user": "me"}, "ssh me@x 192.0.2.7"),
        ({"ansible_ssh_common_args": "-o ProxyCommand=none"}, ""),
        ({"ansible_ssh_common_args": "-o ProxyJump=bastion", "ansible_connection": "local"}, ""),
        ({"ansible_ssh_common_args": "-o NoSuchOption=1"}, ""),
    ],
)
def test_the_jump_hosts_of_the_inventory(arguments: dict[str, Any], proxy: str) -> None:
    assert route_by("192.0.2.7", arguments) == Route("192.0.2.7", proxy)


def test_a_configuration_of_the_inventory_is_that_of_the_jump_host_too(tmp_path: Path) -> None:
    config = tmp_path / "per%cent"
    config.write_text("Host agent1\n    HostName 192.0.2.9\n    ProxyJump bastion\n")
    quoted = str(config).replace("%", "%%")

    found = route_by("agent1", {"ansible_ssh_common_args": f"-F {config}"})
    assert found == Route("192.0.2.9", f"ssh -F {quoted} -W [%h]:%p ssh://bastion")
