# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The containers of running sessions as Ansible hosts."""

from __future__ import annotations

DOCUMENTATION = r"""
name: sessions
short_description: Containers of running sessions as hosts
description:
  - Reads the files that a launch leaves on the controller, and adds every container as a host. Ansible reaches a host by SSH
    with the session's own configuration, keys and pinned host keys.
  - A host is named C(session.hostname), as in C(train.sub1), and is a member of the groups C(session_train) and C(role_sub).
  - Each session has SSH connections of its own. Hosts of the same name in two sessions never share a connection.
  - The plugin contacts no host. The playbook C(sessions.yml) shows which containers run.
  - A session whose directory belongs to another user is left out, because ssh would read a configuration of that user.
notes:
  - The name of the inventory file must end in C(sessions.yml) or C(sessions.yaml).
  - Ansible ignores an inventory that it cannot parse unless C(any_unparsed_is_failed) is set in the section C([inventory])
    of its configuration. Set it, so that an unknown session ends a command with an error.
  - C(become) needs C(sudo) in the session's image.
author: The cluster.compute authors (@cluster-compute)
extends_documentation_fragment:
  - ansible.builtin.constructed
options:
  plugin:
    description: The name of this plugin.
    type: str
    required: true
    choices: [cluster.compute.sessions]
  artifacts:
    description: The folder that holds a folder for each session.
    type: path
    default: ~/.cluster-compute
  sessions:
    description: The names of the sessions to read. When empty, all sessions. A name that no session has is an error.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
# my.sessions.yml: all sessions, with a group for each agent.
plugin: cluster.compute.sessions
keyed_groups:
  - key: cluster_compute.agent
    prefix: agent

# train.sessions.yml: one session. Run `ansible -i train.sessions.yml all -m ansible.builtin.raw -a hostname`.
# plugin: cluster.compute.sessions
# sessions: [train]
"""

import hashlib
import os
import shlex
import stat
from contextlib import suppress
from typing import Any, Dict, Iterator, List

from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin, Constructable
from ansible.release import __version__
from ansible.utils.unsafe_proxy import wrap_var

from ..module_utils._shared.constants import HOST, SSH_PORT
from ..module_utils._shared.documents import validation
from ..module_utils._shared.documents.session_json import SessionDocument
from ..module_utils._shared.documents.topology import role_of
from ..module_utils._shared.errors import ComputeError
from ..plugin_utils._client.session_dir import DOCUMENT, Artifacts


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
        found = _documents(base, wanted)
        for name in wanted:
            if name not in found:
                message = "sessions: %r: there is no such session in %s; sessions.yml lists the sessions that run."
                raise AnsibleParserError(message % (name, base))
        for name in wanted or sorted(found):
            self._add_session(found[name], os.path.join(base, name))

    def _add_session(self, document: SessionDocument, folder: str) -> None:
        group = self.inventory.add_group(self._sanitize_group_name("session_" + document.session.name))
        for host, own in _hosts(document, folder):
            variables = _unevaluated(own)
            self.inventory.add_host(host, group=group)
            role = self.inventory.add_group(self._sanitize_group_name("role_" + variables["cluster_compute"]["role"]))
            self.inventory.add_host(host, group=role)
            for name, value in variables.items():
                self.inventory.set_variable(host, name, value)
            strict = self.get_option("strict")
            self._set_composite_vars(self.get_option("compose"), variables, host, strict)
            self._add_host_to_composed_groups(self.get_option("groups"), variables, host, strict)
            self._add_host_to_keyed_groups(self.get_option("keyed_groups"), variables, host, strict)


def _hosts(document: SessionDocument, folder: str) -> Iterator[Any]:
    session = document.session
    # The port of main1, which all containers have on the network of the hosts. Ansible's own setting would be that of other hosts.
    port = {app.name: app.port for app in document.apps}.get("ssh")
    inner = port if document.network.driver == HOST else SSH_PORT
    for number, container in enumerate(document.containers):
        hostname = container.hostname
        mine = dict(container.to_json(), session=session.name, owner=session.owner, role=role_of(hostname))
        yield (
            f"{session.name}.{hostname}",
            {
                "ansible_host": hostname,
                "ansible_port": inner if number else port,
                "ansible_user": session.user.name,
                # The session's configuration has the address, the keys and the jump host. A home may have a space.
                "ansible_ssh_common_args": "-F " + shlex.quote(os.path.join(folder, "ssh_config")),
                "ansible_control_path": _control_path(session.id, hostname),
                "cluster_compute": mine,
            },
        )


def _control_path(session_id: str, hostname: str) -> str:
    """The socket of a shared connection: its name differs between sessions, which Ansible's own name does not.

    Ansible makes the name from host name, port and user, which are equal in all sessions. It fills in the folder.
    """
    return "%(directory)s/" + hashlib.sha256((f"{session_id} {hostname}").encode()).hexdigest()[:12]


def _documents(base: str, wanted: List[str]) -> Dict[str, SessionDocument]:
    """The document of each session that runs and is wanted, by name: without names, of all sessions of this user."""
    # A name with a dot is a directory of the controller's own, such as that of its requests.
    listed = [name for name in os.listdir(base) if not name.startswith(".")] if os.path.isdir(base) else []
    names = [name for name in listed if (name in wanted if wanted else _is_own(os.path.join(base, name)))]
    try:
        # None during its launch.
        contents = {name: Artifacts(base, name).read(DOCUMENT) for name in names}
        return {
            name: validation.session_document(content, os.path.join(base, name, DOCUMENT))
            for name, content in contents.items()
            if content is not None
        }
    except ComputeError as error:
        raise AnsibleParserError(error.message) from error


def _is_own(path: str) -> bool:
    """Return whether it is a directory of this user: ssh would read a configuration of another one, which can name any program."""
    with suppress(FileNotFoundError):
        status = os.lstat(path)
        return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return False


def _unevaluated(value: Any) -> Any:
    """A value in which Ansible evaluates no template: before ansible-core 2.19, it evaluates all that it is not warned of."""
    return wrap_var(value) if tuple(map(int, __version__.split(".")[:2])) < (2, 19) else value
