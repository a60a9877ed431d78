# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Build modules of later tasks while this task waits for a host.

For each module that runs elsewhere, Ansible reads all of the Python code that it imports, packs it, and keeps the result until
ansible-playbook ends. This takes 0.2 seconds for each module of a launch.
"""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from typing import Iterator, Sequence

from ansible.plugins.action import ActionBase

from ..module_utils._core.documents import Json


@contextmanager
def building(action: ActionBase, names: Sequence[str], task_vars: Json) -> Iterator[None]:
    """Build these modules during the block. What fails here fails again, with its reason, when the module is needed.

    A process of its own does it: Python 3.11 cannot parse code in two threads at once
    (https://github.com/python/cpython/issues/106905).
    """
    if not names:
        yield
        return
    child = os.fork()
    if not child:
        try:
            _build(action, names, task_vars)
        finally:
            os._exit(0)
    try:
        yield
    finally:
        with suppress(ChildProcessError):
            os.waitpid(child, 0)


def _build(action: ActionBase, names: Sequence[str], task_vars: Json) -> None:
    # With a known interpreter, Ansible does not look for one on the host. It is no part of what is kept.
    known = {**task_vars, "ansible_python_interpreter": sys.executable}
    for name in names:
        with suppress(Exception):
            action._configure_module("cluster.compute." + name, {}, known)


def share(names: Sequence[str], task_vars: Json) -> Sequence[str]:
    """The part of these modules that this host's process builds: each host of the play has another one.

    The first host comes last: its process builds the module of the task itself.

    >>> share(["a", "b"], {"inventory_hostname": "y", "ansible_play_hosts_all": ["x", "y", "z"]})
    ['a']
    """
    hosts = list(task_vars.get("ansible_play_hosts_all") or ())
    host = task_vars.get("inventory_hostname")
    if host not in hosts:
        return []
    return list(names[(hosts.index(host) - 1) % len(hosts) :: len(hosts)])
