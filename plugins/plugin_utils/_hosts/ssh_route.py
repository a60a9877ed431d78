# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the controller's ssh route to an agent: its address, and the jump hosts of the inventory and of the user's configuration.

OpenSSH itself reads them (``ssh -G``), so that every form of ProxyJump and ProxyCommand has its own meaning.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Sequence

from ansible.playbook.play_context import PlayContext
from ansible.plugins.loader import connection_loader

from ...module_utils._shared.codec import Json

_BY_SSH = ("ssh", "smart")
_PATIENCE = 10


@dataclass(frozen=True)
class Route:
    """An address, and the ProxyCommand for connections to it; empty for a direct connection."""

    address: str
    proxy: str = ""


def route_to(host: str, address: str, task_vars: Json, task: Any) -> Route:
    """The route of the controller's ssh to the address of a host: the inventory may name jump hosts for it."""
    hostvars: Mapping[str, Any] = task_vars.get("hostvars") or {}
    return route_by(address, hostvars[host], task.connection) if host in hostvars else Route(address)


def addresses(task_vars: Json, task: Any) -> Dict[str, str]:
    """The address of each agent of the play, as the controller reaches it."""
    return {str(host): address_of(str(host), task_vars, task) for host in task_vars.get("ansible_play_hosts_all") or ()}


def address_of(host: str, task_vars: Json, task: Any) -> str:
    """The address at which the controller reaches a host of the inventory."""
    hostvars: Mapping[str, Any] = task_vars.get("hostvars") or {}
    if host not in hostvars:
        return host
    variables = hostvars[host]
    is_here = plugin_of(variables.get("ansible_connection"), task.connection) == "local"
    return "127.0.0.1" if is_here else str(variables.get("ansible_host") or host)


def plugin_of(variable: object, keyword: object = None) -> str:
    """The connection plugin of a host, without its collection: the host's variable names it, or else the keyword of the task.

    >>> plugin_of("ansible.builtin.local", "ssh"), plugin_of(None, "local"), plugin_of(None)
    ('local', 'local', 'ssh')
    """
    return str(variable or keyword or "ssh").rpartition(".")[2]


def route_by(address: str, variables: Mapping[str, Any], keyword: object = None) -> Route:
    """The route to a host with these inventory variables, by the connection that they or the keyword of the task name."""
    if plugin_of(variables.get("ansible_connection"), keyword) not in _BY_SSH:
        return Route(address)
    arguments = _arguments(variables)
    settings = _settings([*arguments, address])
    return Route(settings.get("hostname") or address, proxy_command(settings, address, arguments))


def proxy_command(settings: Mapping[str, str], address: str, arguments: Sequence[str] = ()) -> str:
    """The ProxyCommand of ssh's settings. Of its tokens, only those for host and port have a meaning for another connection.

    >>> proxy_command({"proxycommand": "ssh -W %h:%p %r@bastion", "user": "admin"}, "agent1")
    'ssh -W %h:%p admin@bastion'
    >>> proxy_command({"proxyjump": "one,me@two:2222"}, "agent1", ["-F", "/etc/jump"])
    'ssh -F /etc/jump -J one -W [%h]:%p ssh://me@two:2222'
    """
    command = settings.get("proxycommand", "none")
    if command != "none":
        values = {"%r": settings.get("user", ""), "%n": address}
        return re.sub("%.", lambda token: values.get(token.group(), token.group()), command)
    jump = settings.get("proxyjump", "none")
    if jump == "none":
        return ""
    *before, last = jump.split(",")
    words = ["ssh", *_own_configuration(arguments), *(["-J", ",".join(before)] if before else [])]
    words = [shlex.quote(word.replace("%", "%%")) for word in words]
    target = last if last.startswith("ssh://") else "ssh://" + last
    return " ".join([*words, "-W", "[%h]:%p", shlex.quote(target)])


def _own_configuration(arguments: Sequence[str]) -> List[str]:
    """The option -F, which ssh passes on to its jump hosts."""
    for place, word in enumerate(arguments):
        if word.startswith("-F"):
            path = word[2:] or "".join(arguments[place + 1 : place + 2])
            return ["-F", os.path.abspath(os.path.expanduser(path))]
    return []


def _settings(arguments: Sequence[str]) -> Dict[str, str]:
    """The settings that ssh would use; empty if ssh does not say."""
    try:
        asked = subprocess.run(
            ["ssh", "-G", *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    lines = asked.stdout.decode("utf-8", "surrogateescape").splitlines()
    return {name: value for name, _blank, value in (line.partition(" ") for line in lines)}


def _arguments(variables: Mapping[str, Any]) -> List[str]:
    """The SSH arguments that Ansible uses for a host, from its variables, the environment and ansible.cfg."""
    connection = connection_loader.get("ssh", PlayContext(), None)
    given = {
        name: str(connection.get_option(name, hostvars=variables) or "")
        for name in ("ssh_args", "ssh_common_args", "ssh_extra_args")
    }
    user = str(variables.get("ansible_user") or variables.get("ansible_ssh_user") or "")
    own = ["-o", "User=" + user] if user else []
    parts = [shlex.split(given[name]) for name in ("ssh_args", "ssh_common_args")]
    return [*parts[0], *parts[1], *own, *shlex.split(given["ssh_extra_args"])]
