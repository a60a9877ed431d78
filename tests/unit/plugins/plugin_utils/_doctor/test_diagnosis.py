# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks of agents: each fault fails its own check and no other check."""

from __future__ import annotations

import doctest
from dataclasses import replace
from typing import Any

import pytest
from check_samples import GIB, NAMES, THREE, probes, report, swarm

from ansible_collections.cluster.compute.plugins.module_utils._agent import examination
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.examination import (
    CONTROLLERS,
    Probe,
    Unreached,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.findings import (
    FAIL,
    OK,
    WARN,
    Finding,
    Requirements,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import GpuHealth, GpuSharing
from ansible_collections.cluster.compute.plugins.plugin_utils._doctor import checks
from ansible_collections.cluster.compute.plugins.plugin_utils._doctor.diagnosis import diagnose, summarize, unfit

GREEN_GPU = GpuHealth("GPU-1", "green")
RED_GPU = GpuHealth("GPU-2", "red", ("it must be reset", "XID 48 since the start of the host"))


def without(controller: str) -> tuple[str, ...]:
    return tuple(name for name in CONTROLLERS if name != controller)


def not_ok(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(one.check, one.where) for one in findings if one.status != OK]


def test_three_agents_without_a_fault_pass() -> None:
    findings = diagnose(THREE, probes(*NAMES), Requirements(head="agent1"))
    assert not_ok(findings) == []
    assert {one.check for one in findings if one.where == "all pairs"} == {
        "udp 4789",
        "udp 7946",
        "tcp 7946",
        "tcp 2377",
        "path mtu",
        "isolation",
        "transport",
    }
    assert summarize(findings, NAMES).failed == []


def test_a_single_agent_needs_no_swarm_and_no_ports() -> None:
    alone = report(1, swarm=swarm(1, "", state="inactive", manager=False), esp=None)
    findings = diagnose([alone], probes("agent1"), Requirements())
    assert not_ok(findings) == []
    assert not {"swarm", "quorum", "udp 4789", "encryption", "mtu", "bridge filter"} & {one.check for one in findings}


FAULTS: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "engine": ({"version": "19.03.15"}, FAIL, "19.03.15", "upgrade its Docker Engine to 20.10 or later"),
    "mtu": ({"address": ""}, WARN, "no IPv4 address, which networks of sessions over several agents need", "give it one"),
    "api": ({"open_api": ("http://0.0.0.0:2375",)}, WARN, "everyone who reaches http://0.0.0.0:2375 is root on this host", "remove this address"),
    "sdk": ({"sdk": "4.4.4"}, FAIL, "4.4.4, Python 3.11.2", "upgrade the Docker SDK"),
    "runtime": ({"runtime": False}, FAIL, "no SSH runtime", "run provision_agents.yml"),
    "clock": ({"clock": 3599.4}, FAIL, "60.0 min ahead of the controller's", "run a time service"),
    "clock, a little": ({"clock": -4.26}, WARN, "4.3 s behind the controller's", "run a time service"),
    "disk": ({"disk_free": GIB}, FAIL, "1g free in /var/lib/docker", "free some space"),
    "disk, a little": ({"disk_free": 5 * GIB}, WARN, "5g free in /var/lib/docker", "free some space"),
    "cgroups": (
        {"cgroups": without("memory limit")},
        FAIL,
        "no memory limit",
        "enable these cgroup controllers in its kernel",
    ),
    "cgroups, swap": (
        {"cgroups": without("swap limit")},
        WARN,
        "version 2, CPU quota, memory limit, cpuset, pids limit; no swap limit",
        "boot with cgroup_enable=memory swapaccount=1",
    ),
    "limits": ({"nofile": 20000, "memlock": 8 << 20}, WARN, "nofile 20000, memlock 8m", "raise LimitNOFILE"),
    "bounds": ({"log_driver": "journald"}, WARN, "pids bounded, logs where journald sends them, files not bounded (overlay2 on extfs)", "bound the logs"),
    "drivers": ({"cgroup_driver": "cgroupfs"}, WARN, "storage overlay2 on extfs, cgroups cgroupfs, and systemd manages the host", "set its exec-opts"),
    "drivers, storage": ({"storage": "vfs"}, WARN, "storage vfs, cgroups systemd: every container gets a copy", "set its storage-driver to overlay2"),
    "settings": ({"settings": ("iptables false",)}, WARN, "iptables false: containers reach nothing outside", "let its engine write rules"),
    "size": ({"kernel": {"neighbours": 1024, "processes": 4096}}, WARN, "up to 292 containers of a session: one more needs 4102 processes (kernel.pid_max)", "raise this limit"),
    "size, files": ({"kernel": {"files": 1024}}, WARN, "up to 170 containers of a session: one more needs 1026 open files of the engine", "raise this limit"),
    "inotify": ({"kernel": {"inotify": 128}}, WARN, "128 instances: of more running containers", "raise fs.inotify.max_user_instances"),
    "neighbours": ({"kernel": {"neighbours": 512}}, WARN, "up to 512 in all networks together", "raise net.ipv4.neigh.default.gc_thresh3"),
    "gpus": ({"nvidia": 8}, WARN, "8, and the engine has no runtime nvidia", "install the NVIDIA Container Toolkit"),
    "gpu health": ({"health": (GREEN_GPU, RED_GPU)}, WARN, "GPU-2 is red: it must be reset, XID 48 since the start of the host", "see nvidia-smi -q -i GPU-2 and dmesg there"),
    "gpu sharing": ({"sharing": GpuSharing("mps", "has no MPS daemon at /m")}, WARN, "the agent has no MPS daemon at /m", "as root there, if nvidia-smi -q works: CUDA_MPS_PIPE_DIRECTORY="),
    "gpu sharing, mig": ({"sharing": GpuSharing("mig", "gives no part of a GPU")}, WARN, "the agent gives no part of a GPU", "create MIG devices there with nvidia-smi mig"),
    "pool": ({"routes": ("10.0.0.0/8",)}, FAIL, "10.201.0.0/16: every subnet overlaps a route or network of the host", "set session_network_pool"),
    "folders": ({"silent_folders": ("/srv/a", "/srv/b",)}, WARN, "no answer from /srv/a, /srv/b", "check the file server"),
    "guard": ({"session_guard": "missing"}, WARN, "accounts of this host, and hosts with a route through it, reach all ports", "run provision_agents.yml as"),
    "bridge filter": ({"bridge_filter": False}, WARN, "iptables does not see bridged packets: containers of different sessions", "load the module br_netfilter"),
    "encryption": ({"esp": False, "esp_reason": "no"}, WARN, "encrypted sessions cannot run on this agent: no", "use a kernel"),
    "swarm": ({"swarm": swarm(2, "other", managers=())}, FAIL, "in another Swarm (other, the head's is home)", "run docker swarm leave --force on that host"),
    "swarm, none": ({"swarm": swarm(2, "", state="inactive")}, FAIL, "in no Swarm", "run provision_agents.yml"),
    "swarm, broken": ({"swarm_error": "no leader"}, FAIL, "no leader", "read its engine's log"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_fails_its_check(fault: str) -> None:
    changes, status, found, remedy = FAULTS[fault]
    agents = [THREE[0], report(2, **changes), THREE[2]]
    findings = diagnose(agents, probes(*NAMES), Requirements(head="agent1"))
    check = fault.partition(",")[0]
    wrong = [one for one in findings if (one.check, one.where) == (check, "agent2")]
    assert [(one.status, one.found.startswith(found), one.remedy.startswith(remedy)) for one in wrong] == [
        (status, True, True)
    ]
    assert findings[0].status == (FAIL if status == FAIL else WARN)
    assert {where for _check, where in not_ok(findings)} <= {"agent2", "all"}


def test_an_agent_that_was_not_examined_fails() -> None:
    findings = diagnose(
        [THREE[0], Unreached("agent2", "silent"), THREE[2]], probes(*NAMES), Requirements(head="agent1")
    )
    assert not_ok(findings) == [("reachable", "agent2")]
    assert (findings[0].status, findings[0].found) == (FAIL, "silent")
    assert findings[0].remedy.startswith("check that the host is up")


def test_drivers_of_several_versions_are_a_warning() -> None:
    def found(*versions: str) -> list[tuple[str, str, str]]:
        agents = [report(number, driver=version) for number, version in enumerate(versions, 1)]
        findings = diagnose(agents, probes(*NAMES), Requirements(head="agent1"))
        return [(one.where, one.status, one.found) for one in findings if one.check == "gpu drivers"]

    assert found("550.54.15", "535.183.01", "550.54.15") == [
        ("all", WARN, "535.183.01 on agent2; 550.54.15 on agent1, agent3")
    ]
    assert found("550.54.15", "", "550.54.15") == [("all", OK, "550.54.15 on agent1, agent3")]
    assert found("550.54.15", "", "") == found("", "", "") == []


def test_the_doctor_names_the_architectures_where_agents_differ() -> None:
    def found(*names: str) -> list[str]:
        agents = [report(number, architecture=name) for number, name in enumerate(names, 1)]
        findings = diagnose(agents, probes(*NAMES), Requirements(head="agent1"))
        assert {one.status for one in findings if one.check == "architectures"} <= {OK}
        return [one.found for one in findings if one.check == "architectures"]

    shown = "aarch64 on agent2; x86_64 on agent1, agent3: a session runs on one architecture"
    assert found("x86_64", "aarch64", "x86_64") == [shown]
    assert found("x86_64", "x86_64", "x86_64") == []


PORTS = {
    "vxlan": ("udp 4789", "allow UDP 4789 (VXLAN) from agent3 (192.0.2.3) on agent2, and outgoing on agent3"),
    "gossip": (
        "udp 7946",
        "allow UDP 7946 (Swarm's gossip) from agent3 (192.0.2.3) on agent2, and outgoing on agent3",
    ),
    "7946": ("tcp 7946", "allow TCP 7946 (Swarm's gossip) from agent3 (192.0.2.3) on agent2, and outgoing on agent3"),
    "2377": ("tcp 2377", "allow TCP 2377 (Swarm's managers) from agent3 (192.0.2.3) on agent2, and outgoing on agent3"),
    "full": ("path mtu", "set the same MTU on the interfaces of agent3 and agent2, and on the network between them"),
}


@pytest.mark.parametrize("channel", PORTS)
def test_a_port_that_is_closed_between_two_agents_fails(channel: str) -> None:
    findings = diagnose(THREE, probes(*NAMES, closed=("agent3", "agent2", channel)), Requirements(head="agent1"))
    check, remedy = PORTS[channel]
    assert not_ok(findings) == [(check, "agent3 -> agent2")]
    assert findings[0].remedy == remedy


@pytest.mark.parametrize("receiver", ["agent1", "agent2"])
def test_a_container_that_reaches_vxlan_of_an_agent_is_a_warning(receiver: str) -> None:
    """Of its own agent, or of another."""
    tried = probes(*NAMES)
    received = tried[receiver].received or ()
    tried[receiver] = replace(tried[receiver], received=(*received, ("agent1", "container")))
    findings = diagnose(THREE, tried, Requirements(head="agent1"))
    assert not_ok(findings) == [("isolation", f"agent1 -> {receiver}")]
    assert (findings[0].status, findings[0].remedy) == (WARN, "run provision_agents.yml")
    assert summarize(findings, NAMES).unguarded == ("agent1",)


def test_the_port_is_what_a_manager_reports() -> None:
    agents = [report(n, swarm=swarm(n, data_path_port=7789 if n == 2 else 0)) for n in (1, 2, 3)]
    found = {one.check: one.found for one in diagnose(agents, probes(*NAMES), Requirements(head="agent1"))}
    assert found["isolation"] == "no container reaches UDP 7789 of an agent"
    assert "udp 7789" in found
    assert "udp 4789" not in found
    closed = diagnose(agents, probes(*NAMES, closed=("agent3", "agent2", "vxlan")), Requirements(head="agent1"))
    assert closed[0].remedy.startswith("allow UDP 7789 (VXLAN)")


def test_a_host_with_another_address_is_one_finding_with_its_cause() -> None:
    """Its Swarm has the former address, at which nothing arrives."""
    moved = [*THREE[:2], report(3, has_moved=True)]
    tried = probes(*NAMES)
    for name in NAMES[:2]:
        silent = {**tried[name].connected, "agent3": {"7946": "silent", "2377": "silent"}}
        tried[name] = replace(tried[name], connected=silent)
    tried["agent3"] = replace(tried["agent3"], received=())
    found = diagnose(moved, tried, Requirements(head="agent1"))
    assert not_ok(found) == [("swarm", "agent3")]
    assert found[0].found == "its Swarm has it at 192.0.2.3, which is no address of this host any more"
    assert found[0].remedy == "run provision_agents.yml"
    # An address that is translated on the way works.
    assert not_ok(diagnose(moved, probes(*NAMES), Requirements(head="agent1"))) == []


def test_isolation_is_not_claimed_if_no_container_sent() -> None:
    tried = {name: replace(probe, contained=False) for name, probe in probes(*NAMES).items()}
    assert "isolation" not in {one.check for one in diagnose(THREE, tried, Requirements(head="agent1"))}


def test_encryption_fails_if_it_is_required() -> None:
    agents = [THREE[0], report(2, esp=False, esp_reason="no")]
    assert not_ok(diagnose(agents, probes("agent1", "agent2"), Requirements(encrypted=True))) == [
        ("encryption", "agent2")
    ]
    assert diagnose(agents, probes("agent1", "agent2"), Requirements(encrypted=True))[0].status == FAIL


def test_a_single_manager_of_three_agents_is_a_warning() -> None:
    agents = [report(n, swarm=swarm(n, manager=n == 1, managers=("node1",))) for n in (1, 2, 3)]
    assert not_ok(diagnose(agents, probes(*NAMES), Requirements(head="agent1"))) == [("quorum", "all")]


def test_a_worker_with_an_unreadable_certificate_is_assigned_by_its_managers() -> None:
    agents = [THREE[0], THREE[1], report(3, swarm=swarm(3, "", manager=False))]
    assert "swarm" not in {
        check for check, _where in not_ok(diagnose(agents, probes(*NAMES), Requirements(head="agent1")))
    }


@pytest.mark.parametrize("earlier", [Probe(), Probe(received=()), Probe(listened=True)])
def test_an_agent_that_cannot_listen_or_is_lost_meanwhile_is_a_warning(earlier: Probe) -> None:
    tried = {**probes(*NAMES), "agent2": replace(earlier, reason="nothing can listen")}
    assert ("ports", "agent2") in not_ok(diagnose(THREE, tried, Requirements(head="agent1")))
    assert not [
        check for check, _where in not_ok(diagnose(THREE, tried, Requirements(head="agent1"))) if check == "udp 4789"
    ]


UNFIT = {
    "an agent": ([("disk", "agent2")], ["agent2"]),
    "the agent that all pairs have in common": (
        [("overlay", "agent1 -> agent2"), ("overlay", "agent3 -> agent2")],
        ["agent2"],
    ),
    "the later agent of a single pair": ([("udp 4789", "agent3 -> agent1")], ["agent3"]),
    "pairs of an agent that fails by itself": ([("swarm", "agent1"), ("overlay", "agent1 -> agent3")], ["agent1"]),
    "no agent, for a problem of the whole inventory": ([("quorum", "all")], []),
}


@pytest.mark.parametrize("case", UNFIT)
def test_the_agents_to_avoid(case: str) -> None:
    failed, bad = UNFIT[case]
    findings = [Finding(check, where, FAIL, "it fails.") for check, where in failed]
    found = unfit([*findings, Finding("clock", "agent1", WARN, "late")], NAMES)
    assert sorted(found) == bad
    assert all(reason.endswith(": it fails") for reason in found.values())


def test_the_outcome_is_one_sentence() -> None:
    summary = summarize(diagnose([report(1, version="19.03")], {}, Requirements()), NAMES)
    assert summary.message == "1 of 24 checks failed: engine on agent1: 19.03."


def test_examples() -> None:
    assert doctest.testmod(checks).failed == 0
    assert doctest.testmod(examination).failed == 0


@pytest.mark.parametrize("reachable", [True, False])
def test_an_engine_under_two_names_is_one_finding(reachable: bool) -> None:
    """It is examined once, and is tested with no other name of its own."""
    second = report(2, identity="1", swarm=swarm(1, "", state="inactive", manager=False))
    first = report(1, identity="1", swarm=swarm(1, "", state="inactive", manager=False))
    findings = diagnose(
        [first, second, *([] if reachable else [Unreached("agent3", "no route")])],
        probes(*NAMES),
        Requirements(),
    )
    found = [one for one in findings if one.where in ("agent2", "agent1 -> agent2", "agent2 -> agent1")]
    assert [(one.check, one.status, one.found, one.remedy) for one in found] == [
        ("names", FAIL, "agent1 and agent2 are the same engine", "remove one of them from the inventory")
    ]
    assert unfit(findings, NAMES)["agent2"] == "names on agent2: agent1 and agent2 are the same engine"
