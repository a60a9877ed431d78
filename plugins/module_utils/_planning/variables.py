# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a session is: the one declaration of every variable that a request is made of.

``settings`` declares the variables that are no part of a request. tests/tools/variables.py generates the role's
argument specification from both.
"""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Tuple

from ansible_collections.cluster.compute.plugins.module_utils._core.constants import MULTI_NODE, SINGLE_NODE
from ansible_collections.cluster.compute.plugins.module_utils._planning import rules
from ansible_collections.cluster.compute.plugins.module_utils._planning.torchrun import TORCHRUN_VARIABLES
from ansible_collections.cluster.compute.plugins.module_utils._planning.variable import (
    APP,
    LAUNCH,
    LIST,
    LOGS,
    MOUNT,
    SCHEDULE,
    TERMINATE,
    USER,
    Variable,
    choice,
    flag,
)

_DAYS = 86400
_SECONDS = rules.within(1, 30 * _DAYS)

NAME = Variable(
    "name",
    "str",
    "",
    "Name of the session: 4 to 64 letters, digits, C(-), C(_) and C(.), starting and ending with a letter or digit; "
    "unique among the live sessions of an owner.",
    rules.check_name,
    field="name",
    read_by=(LAUNCH, TERMINATE, LOGS, LIST),
    notes={
        LAUNCH: "If empty, a readable pair of words is chosen.",
        TERMINATE: "Required.",
        LOGS: "Required. The newest session of this name is shown.",
        LIST: "If empty, all sessions are listed.",
    },
)
OWNER = Variable(
    "owner",
    "str",
    "",
    "Owner of the session: 1 to 32 letters, digits, C(-) or C(_), starting and ending with a letter or digit. If empty, "
    "the controller's user.",
    rules.check_session_owner,
    field="owner",
    read_by=(LAUNCH, SCHEDULE, TERMINATE, LOGS, LIST),
    notes={
        LAUNCH: "Owners separate sessions by name. They do not restrict anyone who has access to the head.",
        LOGS: "V(all) means every owner.",
        LIST: "V(all) means every owner.",
    },
)

REQUEST_VARIABLES: Tuple[Variable, ...] = (
    NAME,
    OWNER,
    Variable(
        "cluster_size",
        "int",
        1,
        "Number of containers, from 1 to 1000: C(main1) and the rest C(sub1), C(sub2) and so on.",
        rules.within(1, rules.LARGEST),
        field="size",
    ),
    choice(
        "cluster_mode",
        (SINGLE_NODE, MULTI_NODE),
        "Whether the containers may be placed on several agents. If one agent can hold the session, it is placed there "
        "in either mode.",
        field="mode",
    ),
    Variable(
        "image",
        "str",
        "cluster-compute/reference:1",
        "Image of the containers, by tag or digest. Any Linux image works.",
        rules.check_image,
        field="image",
    ),
    Variable(
        "cpus",
        "float",
        1,
        "CPUs of each container: at least 0.01, with at most three decimals.",
        rules.check_cpus,
        field="millicpus",
    ),
    Variable(
        "memory",
        "str",
        "1g",
        "Memory of each container, swap included: at least V(6m). Units are binary.",
        rules.check_memory,
        field="memory",
    ),
    Variable(
        "shm",
        "str",
        "64m",
        "Size of C(/dev/shm) in each container, a part of its memory.",
        rules.check_shm,
        field="shm",
    ),
    Variable(
        "gpus",
        "float",
        0,
        "GPUs of each container: a whole number, or a fraction below one if the agents declare shares. A fraction means "
        "the share within 0.02 of it: V(0.33) is a third.",
        rules.check_gpus,
        field="gpus",
    ),
    flag(
        "cpu_pinning",
        "Give each container CPUs of its own, which no other pinned container shares. O(session_cpus) must be a whole "
        "number.",
        field="cpu_pinning",
    ),
    Variable(
        "resource_group",
        "str",
        "default",
        "Group of agents that the session runs on.",
        rules.check_group,
        field="group",
    ),
    Variable(
        "agents",
        "list",
        [],
        "Designated agents, by inventory name. Each must be in the group C(agents).",
        rules.check_agents,
        field="agents",
        elements="str",
    ),
    choice(
        "agents_policy",
        ("preferred", "strict"),
        "V(preferred) tries the designated agents first. V(strict) uses no other agents and requires O(session_agents).",
        field="agents_policy",
    ),
    choice(
        "strategy",
        ("pack", "spread"),
        "V(pack) uses the fewest agents, V(spread) fills them evenly, if one agent cannot hold the session.",
        field="strategy",
    ),
    Variable(
        "priority",
        "int",
        10,
        "Priority in the queue, from 0 to 100. A higher priority comes first.",
        rules.within(0, 100),
        field="priority",
    ),
    Variable(
        "environment",
        "dict",
        {},
        "Environment variables. A value may refer to its container between C(<%) and C(%>), as in C(shard-<% rank %>).",
        rules.check_environment,
        field="environment",
    ),
    *TORCHRUN_VARIABLES,
    Variable(
        "mounts",
        "list",
        [],
        "Data folders, the same in every container. A volume with C(options) is removed with the last session that "
        "mounts it.",
        rules.check_mounts,
        field="mounts",
        elements="dict",
        options=MOUNT,
    ),
    Variable(
        "apps",
        "list",
        [],
        "Interactive apps of C(main1), whose ports are published on its agent.",
        rules.check_apps,
        field="apps",
        elements="dict",
        options=APP,
    ),
    Variable(
        "command",
        "str",
        "",
        "Batch command, run once on C(main1) when all containers are ready. Its exit code is the result of the session.",
        rules.check_text,
        field="command",
    ),
    Variable(
        "command_timeout",
        "int",
        0,
        "Seconds after which the batch command is terminated, from 0, which means never, to 2592000, which is 30 days. "
        "Requires O(session_command).",
        rules.within(0, 30 * _DAYS),
        field="command_timeout",
    ),
    flag(
        "terminate_when_done",
        "Terminate the session when its batch command has ended. Requires O(session_command).",
        field="terminate_when_done",
    ),
    Variable(
        "bootstrap",
        "str",
        "",
        "Script that every container runs before it counts as ready.",
        rules.check_text,
        field="bootstrap",
    ),
    choice(
        "on_failure",
        ("keep", "terminate"),
        "What happens to the session when its command fails or a container dies.",
        field="on_failure",
    ),
    Variable(
        "user",
        "dict",
        {},
        "Numbers of the user C(work), to match the data folders.",
        rules.check_user,
        field="user",
        options=USER,
    ),
    flag("network_encrypted", "Encrypt the traffic of an overlay network.", field="network_encrypted"),
    Variable(
        "network_pool",
        "list",
        ["10.201.0.0/16"],
        "Address pools that sessions take their subnets from: IPv4 networks of at least a /27, one of them large enough "
        "for the session.",
        rules.check_network_pool,
        field="network_pool",
        elements="str",
    ),
    Variable(
        "port_range",
        "str",
        "30000-31000",
        "Ports of the agents that C(main1) may publish, as FIRST-LAST, from 1024 to 65535.",
        rules.check_port_range,
        field="port_range",
    ),
    Variable(
        "bootstrap_timeout",
        "int",
        300,
        "Seconds that the bootstrap script may take in each container, from 1 to 2592000.",
        _SECONDS,
        field="bootstrap_timeout",
        kept=True,
    ),
    Variable(
        "verify_timeout",
        "int",
        60,
        "Seconds within which C(main1) must reach every container by SSH, from 1 to 2592000.",
        _SECONDS,
        field="verify_timeout",
        kept=True,
    ),
    choice(
        "pull",
        ("missing", "always", "never"),
        "Whether agents pull the image if they lack it, before every launch, or never. An agent that lacks the image "
        "then gets a copy from another agent or from the controller.",
        field="pull",
        kept=True,
    ),
    Variable(
        "pull_timeout",
        "int",
        1800,
        "Seconds that pulling the image may take, from 1 to 2592000. A registry that does not answer fails after ten "
        "seconds.",
        _SECONDS,
        field="pull_timeout",
        kept=True,
    ),
)
