# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fields of a dataclass that declare a variable of the playbooks: a name, a default and a rule, once for all readers.

The settings of containers and of the batch command are fields that a request and its plan have in common. What makes a container
reads them from the plan, whose ``Session`` has the same fields.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Dict, Tuple

from .. import value_rules
from ..codec import DECLARATION, NOT_IN_DIGEST
from ..constants import GRACE, HOST, LONGEST_GRACE, PRIVATE, RELOCATE, RESTART_ALL
from ..units import check_disk, check_log_size
from ..value_rules import check_public_keys, check_script


def declared(
    kind: str,
    default: Any,
    description: str,
    check: value_rules.Check,
    variable: str = "",
    required: bool = False,
    **more: Any,
) -> Any:
    """A field of a dataclass that declares its variable. Its default is the normal form of the variable's.

    ``variable`` names the variable if the field has another name. A field that is ``required`` has no default. One that is
    ``kept`` counts in no digest. ``Variable`` in ``_shared/planning/variable.py`` has the other attributes, too.
    """
    rule = value_rules.checked(check)
    attributes: Dict[str, Any] = {
        **more,
        "name": variable,
        "type": kind,
        "default": default,
        "description": description,
        "check": rule,
    }
    metadata = {DECLARATION: attributes, **(NOT_IN_DIGEST if more.get("kept") else {})}
    if required:
        return dataclasses.field(metadata=metadata)  # pylint: disable=invalid-field-call
    # An empty text means the default, so the rule is for other values.
    normal = default if default == "" else rule(variable, default)
    if isinstance(normal, dict):
        return dataclasses.field(default_factory=normal.copy, metadata=metadata)  # pylint: disable=invalid-field-call
    return dataclasses.field(default=normal, metadata=metadata)  # pylint: disable=invalid-field-call


def declared_choice(choices: Tuple[str, ...], description: str, **more: Any) -> Any:
    """A field that declares a variable with few values, the first of which is the default."""
    return declared("str", choices[0], description, value_rules.one_of(*choices), choices=choices, **more)


def declared_whole(default: int, bounds: Tuple[int, int], description: str, **more: Any) -> Any:
    return declared("int", default, description, value_rules.within(*bounds), **more)


def declared_flag(description: str, **more: Any) -> Any:
    """A field that declares a variable that is false by default."""
    return declared("bool", False, description, value_rules.check_boolean, **more)


def declared_text(
    description: str, check: value_rules.Check = value_rules.check_text, default: str = "", **more: Any
) -> Any:
    """A field that declares a variable with a text, which is empty by default."""
    return declared("str", default, description, check, **more)


def declared_names(description: str, check: value_rules.Check, **more: Any) -> Any:
    """A field that declares a variable with a list of texts, which is empty by default."""
    return declared("list", [], description, check, elements="str", **more)


_DAYS = 86400


@dataclass(frozen=True)
class ContainerSettings:
    """The settings of every container of a session."""

    grace: int = declared_whole(
        GRACE,
        (0, LONGEST_GRACE),
        "Seconds between SIGTERM and SIGKILL at the end of a container, from 0 to 3600. Every program in it receives SIGTERM.",
    )
    lifetime: int = declared_whole(
        0,
        (0, 365 * _DAYS),
        "Seconds after its placement at which the session ends, from 0, which means never, to 31536000, which is a year. May be "
        "changed while the session runs.",
        kept=True,
    )
    idle_timeout: int = declared_whole(
        0,
        (0, 30 * _DAYS),
        "Seconds without use after which the session ends, from 0, which means never, to 2592000, which is 30 days. A session "
        "is in use while a login by SSH lasts, a browser is connected to an app, programs in one of its containers use a twentieth "
        "of a CPU or more, or its GPUs compute for a twentieth of the time. May be changed while the session runs.",
        kept=True,
    )
    pids: int = declared_whole(32768, (64, 1 << 22), "Processes and threads of each container, from 64 to 4194304.")
    log_size: int = declared(
        "str",
        "100m",
        "Size at which the engine rotates the log of a container, at least V(64k). It holds for the engine's drivers "
        "V(json-file) and V(local).",
        check_log_size,
    )
    log_files: int = declared_whole(
        3, (1, 100), "Number of log files that the engine keeps of each container, from 1 to 100."
    )
    disk: int = declared(
        "str",
        "0",
        "Size of each container's own files, data directories excluded. V(0) sets no limit. The storage driver must support it: "
        "C(overlay2) on XFS with project quotas, C(btrfs) or C(zfs).",
        check_disk,
    )
    no_new_privileges: bool = declared_flag(
        "Programs in containers gain no privileges from setuid files, so C(sudo) and C(su) do not work.",
    )
    read_only_root: bool = declared_flag(
        "No user, not even root in a container, can change the programs, libraries and other files of the image. The directories "
        "C(/etc), C(/home), C(/job), C(/var/log), C(/tmp), C(/var/tmp), C(/run) and the data directories stay writable.",
    )
    rdma: bool = declared_flag(
        "Containers get the RDMA devices of their agents (C(/dev/infiniband)), and as much locked memory as the engine can give. The "
        "session goes to agents that have an active InfiniBand port, or a RoCE port that it can use with C(session_fabric) or with "
        "C(session_network=host).",
    )
    fabric: bool = declared_flag(
        "Containers get a second network interface, on the fabric of their agents (C(agent_fabric)), which NCCL, Gloo, UCX and Open "
        "MPI use. All containers know it by names such as C(sub1-fabric). The session goes to agents whose fabric no other session "
        "has.",
    )
    network: str = declared_choice(
        (PRIVATE, HOST),
        "V(private): the session has a network of its own. V(host): its containers use the network of their agents, at its full "
        "throughput and without isolation. Each is on an agent of its own. SSH, C(MASTER_PORT) and apps whose ports are in use get "
        "ports of O(session_port_range) that are free on all of these agents.",
    )
    bootstrap: str = declared("str", "", "Script that every container runs before it counts as ready.", check_script)
    authorized_keys: Tuple[str, ...] = declared(
        "list",
        [],
        "Public SSH keys that may log in to every container as the user C(work), beside the key of the session: at most 100, "
        "each on one line and without options.",
        check_public_keys,
        elements="str",
    )


@dataclass(frozen=True)
class BatchSettings:
    """The batch command of ``main1``, and what follows its end or its failure."""

    command: str = declared(
        "str",
        "",
        "Batch command, run once on C(main1) when all containers are ready. Its exit code is the result of the session.",
        check_script,
    )
    command_timeout: int = declared_whole(
        0,
        (0, 30 * _DAYS),
        "Seconds after which the batch command is terminated, from 0, which means never, to 2592000, which is 30 days. "
        "Requires O(session_command).",
    )
    terminate_when_done: bool = declared_flag(
        "Terminate the session when its batch command has ended. Requires O(session_command)."
    )
    on_failure: str = declared_choice(
        ("keep", "terminate", "restart", RESTART_ALL),
        "What happens to the session when its command fails or a container dies. With V(restart), PID 1 of C(main1) starts the "
        "command again, and the next run of C(schedule.yml) restores the containers. With V(restart_all), that run restarts all "
        "containers together if one of them has died.",
    )
    restarts: int = declared_whole(
        3,
        (0, 1000),
        "Number of times that a failed command is started again with O(session_on_failure=restart) or V(restart_all), and that all "
        "containers are restarted with V(restart_all), from 0 to 1000.",
    )
    on_lost: str = declared_choice(
        ("keep", "end", RELOCATE),
        "What the next run of C(schedule.yml) does when an agent of the session has not answered for O(session_lost_after). With "
        "V(relocate), its containers are made again on other agents, with the same names, addresses and host keys. What they had "
        "stored in their own files is gone.",
    )
    lost_after: int = declared_whole(
        300,
        (10, 7 * _DAYS),
        "Seconds without an answer after which an agent counts as lost, from 10 to 604800, which is a week. They are counted from "
        "the first run of C(schedule.yml) that gets no answer.",
    )
