# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The containers of a session in the forms in which launchers and parallel shells read them."""

from __future__ import annotations

import re
from typing import Dict, List

from ..._shared.constants import (
    CLUSTERSHELL_FOLDER,
    DEEPSPEED_HOSTFILE,
    HOSTNAMES_FILE,
    HYDRA_HOSTFILE,
    MPI_HOSTFILE,
    PARALLEL_LOGINS,
)
from ..._shared.documents.plan import Plan
from ..._shared.documents.topology import role_of

# https://clustershell.readthedocs.io/en/latest/config.html#node-groups
_GROUPS_CONFIG = """[Main]
default: session
autodir: %s/groups.d
"""


def files(hostfile: str, has_gpus: bool, hostnames: str = "") -> Dict[str, str]:
    """All of the files by path, from the text of Open MPI's hostfile, and the names of all containers if some are not in it."""
    hostnames = hostnames or hostfile
    return {
        MPI_HOSTFILE: hostfile,
        # Hydra is the launcher of MPICH and its family.
        HYDRA_HOSTFILE: hostfile.replace(" slots=", ":"),
        # Without GPUs, one process in each container, as torchrun has it.
        DEEPSPEED_HOSTFILE: hostfile if has_gpus else re.sub("slots=[0-9]+", "slots=1", hostfile),
        HOSTNAMES_FILE: "".join(name + "\n" for name in _hostnames(hostnames)),
        CLUSTERSHELL_FOLDER + "/groups.conf": _GROUPS_CONFIG % CLUSTERSHELL_FOLDER,
        CLUSTERSHELL_FOLDER + "/groups.d/session.yaml": clustershell_groups(hostnames),
        # ClusterShell's built-in source of groups, which is empty here.
        CLUSTERSHELL_FOLDER + "/groups.d/local.cfg": "",
        PARALLEL_LOGINS: parallel_logins(hostfile),
    }


def hostfile(plan: Plan) -> str:
    """The hostfile of Open MPI and PRRTE in rank order: as many slots as a container has GPUs, else whole CPUs."""
    computing = (container for container in plan.containers if plan.session.computes(container))
    return "".join("%s slots=%d\n" % (container.hostname, container.resources.slots) for container in computing)


def hostnames(plan: Plan) -> str:
    """The name of every container on a line, if some have no place in the hostfile; empty otherwise."""
    if all(map(plan.session.computes, plan.containers)):
        return ""
    return "".join(container.hostname + "\n" for container in plan.containers)


def parallel_logins(text: str) -> str:
    """The same hostfile for GNU parallel: ``--slf .`` reads it. A slot is a job at a time.

    >>> parallel_logins("main1 slots=2\\nsub1 slots=2\\n")
    '2/main1\\n2/sub1\\n'
    """
    return re.sub(r"(?m)^(\S+) slots=([0-9]+)$", r"\2/\1", text)


def clustershell_groups(text: str) -> str:
    """The groups of ClusterShell: all containers, and those of each role.

    >>> print(clustershell_groups("main1 slots=1\\nsub1 slots=1\\nsub2 slots=1\\n"), end="")
    session:
      all: "main1,sub1,sub2"
      main: "main1"
      sub: "sub1,sub2"
    """
    names = _hostnames(text)
    groups = {"all": names}
    for name in names:
        groups.setdefault(role_of(name), []).append(name)
    return "session:\n" + "".join('  {}: "{}"\n'.format(group, ",".join(members)) for group, members in groups.items())


def _hostnames(text: str) -> List[str]:
    return [line.split()[0] for line in text.splitlines() if line]
