# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A hostile agent, and hostile labels on the engine of another: no report that arrives stops a decision of the head, or a list."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

from hostile import Choices, assert_one_message, changed, changed_bytes, changed_parts, fuzzed
from samples import GIB, SESSION, agent, plan, request

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.apps import parse_statuses
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.batch import parse_exit
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.reports import (
    container_entry,
    has_apps,
    ignored_entries,
    is_member,
    is_ours,
    relays_by_session,
)
from ansible_collections.cluster.compute.plugins.module_utils._agent.guard import unguarded
from ansible_collections.cluster.compute.plugins.module_utils._head.adoption import adopted_rows, rebuilt_plan
from ansible_collections.cluster.compute.plugins.module_utils._head.listing import list_agents, list_sessions
from ansible_collections.cluster.compute.plugins.module_utils._head.session_record import SessionRecord
from ansible_collections.cluster.compute.plugins.module_utils._head.usage import list_groups, sample
from ansible_collections.cluster.compute.plugins.module_utils._shared import states
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents import validation
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import (
    AgentReport,
    GpuUse,
    Measured,
    Relay,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.allocation import Allocation
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.placement import (
    Placement,
    free_of,
    place,
    rdma_refusal,
    usable_ports,
)
from ansible_collections.cluster.compute.plugins.plugin_utils._output import lists as tables

ASKED = request(cluster_size=2, apps=[{"name": "lab", "port": 8888, "command": "lab"}])
MADE = plan(ASKED, "aa")
DATA = request(name="data", mounts=[{"source": "/data", "target": "/data"}], gpus=0.5, cpu_pinning=True)
OTHER = agent("b", gpus=["GPU-2"])
ROW = SessionRecord(SESSION, "train", "alice", "default", states.RUNNING, request=ASKED, plan=MADE)


def listed(number: int) -> dict[str, Any]:
    """A container as an engine lists it."""
    container = MADE.containers[number]
    place = {"IPAMConfig": {"IPv4Address": container.address}, "IPAddress": ""}
    return {
        "Id": "%064x" % number,
        "Names": ["/" + container.name],
        "Image": MADE.session.image,
        "State": "running",
        "Created": 1767225600,
        "Labels": dict(container.labels),
        "Ports": [{"IP": "127.0.0.1", "PrivatePort": 22, "PublicPort": 30000, "Type": "tcp"}],
        "NetworkSettings": {"Networks": {MADE.network.name: place}},
    }


def entries() -> list[dict[str, Any]]:
    main = replace(
        container_entry(listed(0)),
        batch=parse_exit(b"3 oom\n"),
        apps=tuple(parse_statuses(b"lab ready\n")),
        relays=(Relay("lab", "0.0.0.0", 30100),),
    )
    measured = Measured(350, 1 << 20, (GpuUse("GPU-1", 1, 1, 2),))
    return [replace(one, measured=measured).to_json() for one in (main, container_entry(listed(1)))]


REPORT: dict[str, Any] = {
    "name": "a",
    "reachable": True,
    "reason": "",
    "may_return": True,
    "group": "default,big",
    "schedulable": True,
    "architecture": "x86_64",
    "publish": "127.0.0.1",
    "address": "127.0.0.1",
    "capacity": {"millicpus": 4000, "memory": 16 * GIB, "gpus": [{"id": "GPU-1", "shares": 4.0}], "cpu_ids": [0, 1, 2, 3]},
    "engine": {
        "version": "20.10.24",
        "api": "1.41",
        "rootless": False,
        "swarm": {"state": "active", "node_id": "n1", "cluster_id": "swarm1", "manager": True, "managers": ["n1"], "address": "10.0.0.1", "data_path_port": 4789},
    },
    "limits": {"nofile": 20000, "memlock": 8388608},
    "paths": {"/data": True},
    "image": {"reference": "a/b:1", "present": True, "id": "sha256:" + "0" * 64, "architecture": "x86_64"},
    "runtime": {"volume": "cluster-compute-runtime-0", "present": True},
    "kernel": {"neighbours": 1024, "processes": 32768, "files": 1048576},
    "mtu": 1500,
    "routes": ["10.0.0.0/24"],
    "needed_addresses": ["10.0.0.1"],
    "overlay_guard": {"state": "present", "port": 4789},
    "networks": [{"name": "bridge", "driver": "bridge", "subnets": ["172.17.0.0/16"], "session": ""}],
    "ports": [22, 8080],
    "names": ["registry"],
    "containers": entries(),
    "ignored_containers": [{"engine_name": "x", "label": "cluster.compute.session"}],
    "silent_folders": ["/srv/data"],
    "gpu_use": [{"id": "GPU-1", "percent": 37, "memory": 1, "capacity": 2}],
    "gpu_health": [{"id": "GPU-1", "state": "red", "reasons": ["it must be reset"]}],
    "gpu_sharing": {"kind": "mps", "reason": "has no MPS daemon", "may_pass": True},
    "rdma_ports": [{"name": "mlx5_0:1", "link_layer": "InfiniBand", "active": True, "fabric": False, "host": False}],
}  # fmt: skip


READ: set[str] = set()


def head_reads_a_good(report: dict[str, Any]) -> None:
    """Most changes of labels and of answers are left out of the report: the same one is read once."""
    text = json.dumps(report)
    if text not in READ:
        found = validation.report(report, "a")
        assert found.containers == AgentReport.from_json(report).containers
        head_reads(found)
        READ.add(text)


def head_reads(report: AgentReport) -> None:
    """What the head does with a report, beside those of other agents: decisions may be refused, and nothing else is raised."""
    agents = (report, OTHER)
    held = {one.name: {"alice": [seen.resources for seen in one.containers]} for one in agents}
    rows = [ROW, *adopted_rows(agents, {SESSION} if len(agents[0].containers) % 2 else set())]
    sessions = list_sessions(rows, agents)
    listed_agents = list_agents(held, agents)
    sample(listed_agents, [row.state for row in rows], 1e9)
    list_groups(listed_agents, "alice")
    tables.agents_table(listed_agents)
    tables.sessions_table([replace(one, reason=one.what_happened) for one in sessions])
    for row in rows:
        with suppress(ComputeError):
            free = {one.name: free_of(one, held[one.name]["alice"]) for one in agents if one.reachable}
            rebuilt_plan(row, ASKED, agents, free, [MADE])
    for asked in (ASKED, DATA):
        free = {one.name: free_of(one, held[one.name]["alice"]) for one in agents}
        found = place(asked.demand(), agents, free)
        with suppress(ComputeError):
            Allocation([MADE], agents).check(
                asked, found if isinstance(found, Placement) else Placement(("a",), (), "")
            )
    unguarded([report, AgentReport("b")], ["a", "b"])
    rdma_refusal(agents[0], fabric=True, host=False)
    usable_ports(agents[0], fabric=True, host=False)


@fuzzed(2000)
def test_a_report_is_refused_or_the_head_can_decide_with_it(choices: Choices) -> None:
    try:
        report = validation.report(changed(REPORT, choices), "a")
    except ComputeError as error:
        assert_one_message(error.message)
        return
    assert validation.report(report.to_json(), "a") == report
    head_reads(report)


def relabelled(found: dict[str, Any], choices: Choices) -> dict[str, Any]:
    """The container with other labels, and a name that they imply: every user of an engine can have it."""
    labels = {
        name: text if isinstance(text, str) else json.dumps(text)
        for name, text in changed_parts(found["Labels"], choices).items()
    }
    inner = choices.of([name for name, text in labels.items() if text[:1] in ("[", "{")] or [""])
    if inner and choices.below(2):
        with suppress(ValueError):
            labels[inner] = json.dumps(changed(json.loads(labels[inner]), choices))
    return {**found, "Labels": labels, "Names": choices.of((found["Names"], [], None))}


@fuzzed(1800)
def test_labels_are_ignored_or_reported_and_keep_no_agent_and_no_owner_from_working(choices: Choices) -> None:
    everyone = [listed(0), relabelled(listed(choices.below(2)), choices)]
    ignored_entries(everyone)
    relays = relays_by_session(everyone)
    ours = [one for one in everyone if is_member(one)]
    assert listed(0) in ours
    found = [container_entry(one) for one in ours]
    for one in found:
        has_apps(one.labels)
    reported = [replace(one, relays=tuple(relays.get(one.session, ()))).to_json() for one in found]
    head_reads_a_good({**REPORT, "containers": reported})


@fuzzed(500)
def test_what_pid_1_answers_is_reported(choices: Choices) -> None:
    """Root of a container writes the files of PID 1."""
    words = [
        choices.of(
            ("lab ready\n", "lab failed 3\n", "137 oom\n", "0\n", "web ended 999\n", "lab failed 99999\n", "99999\n")
        )
        for _line in range(3)
    ]
    content = changed_bytes("".join(words).encode(), choices)
    main = {
        **REPORT["containers"][0],
        "batch": parse_exit(content[:64]).to_json(),
        "apps": [one.to_json() for one in parse_statuses(content)],
    }
    head_reads_a_good({**REPORT, "containers": [main]})


def test_the_samples_are_accepted() -> None:
    assert all(is_ours(listed(number)) for number in (0, 1))
    head_reads(validation.report(REPORT, "a"))
