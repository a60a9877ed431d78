# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Running sessions' containers as Ansible hosts."""

from __future__ import annotations

DOCUMENTATION = r"""
name: sessions
short_description: The containers of running sessions as hosts
description:
  - Reads the artifacts that every launch leaves on the controller, and makes a host of every container, reached by SSH with
    the session's own configuration, keys and pinned host keys.
  - A host is named C(session.hostname), as in C(train.sub1), and is in the groups C(session_train) and C(role_sub).
  - No host is asked, so it answers at once; C(sessions.yml) tells what really runs.
author: The cluster.compute authors (@cluster-compute)
extends_documentation_fragment:
  - ansible.builtin.constructed
options:
  plugin:
    description:
      - The name of this plugin.
    type: str
    required: true
    choices: [cluster.compute.sessions]
  artifacts:
    description:
      - The folder that holds a folder for each session.
    type: path
    default: ~/.cluster-compute
  sessions:
    description:
      - Only these sessions, by name.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
# containers.sessions.yml
plugin: cluster.compute.sessions
keyed_groups:
  - key: cluster_compute.agent
    prefix: agent
"""

import json
import os
import shlex
from typing import Any, Dict, Iterator

from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin, Constructable


class InventoryModule(BaseInventoryPlugin, Constructable):
    """A host for every container of every session in the artifacts folder."""

    NAME = "cluster.compute.sessions"

    def verify_file(self, path: str) -> bool:
        return bool(super().verify_file(path)) and path.endswith(("sessions.yml", "sessions.yaml"))

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:
        super().parse(inventory, loader, path, cache)
        self._read_config_data(path)
        base = os.path.expanduser(self.get_option("artifacts"))
        wanted = self.get_option("sessions")
        for name in sorted(os.listdir(base) if os.path.isdir(base) else []):
            if not wanted or name in wanted:
                self._add_session(os.path.join(base, name))

    def _add_session(self, folder: str) -> None:
        document = _read(os.path.join(folder, "session.json"))
        if not document:
            return
        session = document["session"]
        group = self.inventory.add_group(self._sanitize_group_name("session_" + session["name"]))
        for host, variables in _hosts(document, folder):
            self.inventory.add_host(host, group=group)
            role = self.inventory.add_group("role_" + variables["cluster_compute"]["role"])
            self.inventory.add_host(host, group=role)
            for name, value in variables.items():
                self.inventory.set_variable(host, name, value)
            strict = self.get_option("strict")
            self._set_composite_vars(self.get_option("compose"), variables, host, strict)
            self._add_host_to_composed_groups(self.get_option("groups"), variables, host, strict)
            self._add_host_to_keyed_groups(self.get_option("keyed_groups"), variables, host, strict)


def _hosts(document: Dict[str, Any], folder: str) -> Iterator[Any]:
    session = document["session"]
    for container in document["containers"]:
        hostname = container["hostname"]
        mine = dict(container, session=session["name"], owner=session["owner"], role=hostname.rstrip("0123456789"))
        yield (
            "%s.%s" % (session["name"], hostname),
            {
                "ansible_host": hostname,
                "ansible_user": session["user"]["name"],
                # The session's configuration has the address, the keys and the jump; quoted, because a home may have a space.
                "ansible_ssh_common_args": "-F " + shlex.quote(os.path.join(folder, "ssh_config")),
                "cluster_compute": mine,
            },
        )


def _read(path: str) -> Any:
    """A session's document; nothing while it is being launched, or where something else lies beside the sessions."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as error:
        raise AnsibleParserError("%s is no JSON document: %s" % (path, error)) from error
