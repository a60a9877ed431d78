# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers are created, started, repaired, stopped and removed on a real engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from containers_lab import Launcher, actions, create_and_start, inside, ours
from engine_lab import AGENT, IMAGE, MIB, RUNTIME, Shape, relaunched, run_module, run_step
from servers import free_port

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine import networks as _networks
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.removal import Removal
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Plan, Port, Resources


def test_created_then_started_then_untouched(launcher: Launcher, client: Any) -> None:
    launch = launcher(Shape(size=2).plan())
    first = launch.created()
    assert actions(first) == ["created"] * 2
    assert [one.state for one in first.containers] == ["created"] * 2
    assert not launch.created().actions
    started = launch.started()
    assert actions(started) == ["started"] * 2
    assert [one.hostname for one in started.containers] == ["main1", "sub1"]
    assert all(one.state == "running" and one.created > 0 for one in started.containers)
    before = [one["Id"] for one in ours(client, launch.plan)]
    assert not launch.created().actions
    assert not launch.started().actions
    assert [one["Id"] for one in ours(client, launch.plan)] == before


def test_the_network_is_created_first_and_removed_last(launcher: Launcher, client: Any) -> None:
    plan = launcher(Shape(size=2).plan(), network=False).plan

    def networks() -> list[str]:
        return [one["Id"] for one in client.networks(names=[plan.network.name])]

    options = {"agent": AGENT, "plan": plan.to_json(), "network": True, "runtime_volume": RUNTIME}
    shown = run_module("containers", check=True, diff=True, state="created", **options)
    assert shown["changed"]
    assert networks() == []
    made = run_module("containers", state="created", **options)
    assert made["network"]["id"] == networks()[0]
    assert set(shown) - {"diff"} == set(made)
    assert run_module("containers", state="created", **options)["changed"] is False
    removal = {"agent": AGENT, "sessions": [plan.session.id], "state": "absent", "network": True}
    assert run_module("containers", check=True, **removal)["changed"]
    assert len(networks()) == 1
    gone = run_module("containers", **removal)
    assert gone["actions"][-1] == {"name": plan.network.name, "action": "network removed"}
    assert gone["left_networks"] == []
    assert networks() == []
    assert run_module("containers", **removal)["changed"] is False


def test_check_mode_shows_all_and_makes_nothing(launcher: Launcher, client: Any) -> None:
    launch = launcher(Shape().plan(), network=False, check=True)
    created = launch.created().to_json()
    assert created["changed"]
    assert created["diff"]["before"]["containers"] == {one.name: "absent" for one in launch.plan.containers}
    assert created["diff"]["after"]["containers"] == {one.name: "created" for one in launch.plan.containers}
    assert [one["state"] for one in created["containers"]] == ["planned"] * 3
    assert set(launch.started().to_json()) == set(created)
    assert ours(client, launch.plan) == []


def test_from_inside(launcher: Launcher, client: Any) -> None:
    free = free_port()
    shape = Shape(size=2, ports=(Port("ssh", 22, "127.0.0.1", free),), environment={"MINE": "a=b c"})
    launch = launcher(shape.plan())
    launch.created()
    launch.started()
    plan = launch.plan
    hosts = inside(client, plan, 1, "cat /etc/hosts")
    assert [hosts.count(f"{one.address}\t{one.hostname}") for one in plan.containers] == [1] * len(plan.containers)
    assert inside(client, plan, 1, "hostname -i").split() == [plan.containers[1].address]
    assert (
        inside(client, plan, 1, "echo $PATH:$OWN:$MINE")
        == "/opt/cluster-compute/unprivileged:/bin:/opt/own/bin:/opt/cluster-compute/bin:image:a=b c"
    )
    assert inside(client, plan, 1, "hostname; id -u; ls -d $PWD").split() == ["sub1", "0", "/home/work"]
    assert "16384" in inside(client, plan, 1, "df -k /dev/shm")
    assert "read-only" in inside(client, plan, 1, "touch /opt/cluster-compute/x 2>&1 || echo read-only").lower()
    assert "refused" in inside(client, plan, 1, "nc -w 3 main1 9 </dev/null 2>&1")
    host = client.inspect_container(plan.containers[1].name)["HostConfig"]
    assert (host["Memory"], host["MemorySwap"], host["NanoCpus"]) == (64 * MIB, 64 * MIB, 500_000_000)
    assert host["RestartPolicy"]["Name"] == "no"
    assert not host["PortBindings"]
    assert _limit(client, plan, "memory/memory.limit_in_bytes", "memory.max") == str(64 * MIB)
    limits = launch.limits
    assert inside(client, plan, 1, "ulimit -n") == str(limits.nofile)
    ports = {one["PublicPort"] for one in ours(client, plan) for one in one["Ports"] if one.get("PublicPort")}
    assert ports == {free}


def _limit(client: Any, plan: Plan, old: str, new: str) -> str:
    """A control group's file, wherever this kernel has it."""
    return inside(client, plan, 1, f"cat /sys/fs/cgroup/{old} 2>/dev/null || cat /sys/fs/cgroup/{new}")


def test_pinned(launcher: Launcher, client: Any) -> None:
    launch = launcher(Shape(size=1, resources=Resources(1000, 64 * MIB, 16 * MIB, (), "1")).plan())
    launch.created()
    launch.started()
    assert inside(client, launch.plan, 0, "grep Cpus_allowed_list /proc/self/status").split()[1] == "1"


def test_hosts_survive_a_restart(launcher: Launcher, client: Any) -> None:
    launch = launcher(Shape(size=2).plan())
    launch.created()
    launch.started()
    client.restart(launch.plan.containers[1].name, timeout=3)
    hosts = inside(client, launch.plan, 1, "cat /etc/hosts")
    assert all(f"{one.address}\t{one.hostname}" in hosts for one in launch.plan.containers)


def test_repair_of_dead_and_removed(launcher: Launcher, client: Any) -> None:
    launch = launcher(Shape().plan())
    launch.created()
    launch.started()
    inside(client, launch.plan, 1, "echo kept >/kept")
    client.kill(launch.plan.containers[1].name)
    client.remove_container(launch.plan.containers[2].name, force=True)
    main = client.inspect_container(launch.plan.containers[0].name)
    again = replace(launch, plan=relaunched(launch.plan))
    assert [(one.name, one.action) for one in again.created().actions] == [(launch.plan.containers[2].name, "created")]
    assert len(again.started().actions) == 2
    assert inside(client, launch.plan, 1, "cat /kept") == "kept"
    assert client.inspect_container(launch.plan.containers[0].name)["State"] == main["State"]
    entries = again.started().containers
    assert [one.address for one in entries] == [one.address for one in launch.plan.containers]
    assert [one.id for one in entries] == [one.id for one in launch.plan.containers]


def test_a_stopped_container_joins_a_network_that_was_created_again(launcher: Launcher, client: Any) -> None:
    launch = launcher(Shape(size=1).plan())
    launch.created()
    launch.started()
    client.stop(launch.plan.main.name, timeout=0)
    client.remove_network(launch.plan.network.name)
    _networks.create_network(launch.engine, launch.plan, check=False)
    launch.created()
    launch.started()
    networks = client.inspect_container(launch.plan.main.name)["NetworkSettings"]["Networks"]
    assert networks[launch.plan.network.name]["IPAddress"] == launch.plan.main.address


def test_a_container_that_an_earlier_launch_created_is_created_again(launcher: Launcher, client: Any) -> None:
    launch = launcher(Shape(size=2).plan())
    launch.created()
    before = {one["Id"] for one in ours(client, launch.plan)}
    again = replace(launch, plan=relaunched(launch.plan))
    assert actions(again.created()) == ["recreated"] * 2
    assert before.isdisjoint(one["Id"] for one in ours(client, launch.plan))


def test_stopped_and_started_again(launcher: Launcher) -> None:
    launch = launcher(Shape(size=2).plan())
    create_and_start(launch)
    stopped = launch.stopped()
    assert actions(stopped) == ["stopped"] * 2
    assert {one.state for one in stopped.containers} == {"exited"}
    assert not launch.stopped().actions
    assert actions(launch.started()) == ["started"] * 2


def test_absent_by_launch_keeps_the_others(launcher: Launcher, client: Any) -> None:
    launch = launcher(Shape(size=2).plan())
    create_and_start(launch)
    client.remove_container(launch.plan.containers[1].name, force=True)
    again = replace(launch, plan=relaunched(launch.plan))
    again.created()
    session, attempt = again.plan.session.id, again.plan.session.launch
    gone = Removal(launch.engine, [session], attempt, 10).carry_out(check=False)
    assert [one.name for one in gone.actions] == [launch.plan.containers[1].name]
    assert len(ours(client, launch.plan)) == 1


def test_modules(launcher: Launcher, client: Any, engine_host: str) -> None:
    plan = launcher(Shape(size=2).plan()).plan
    options = {"agent": AGENT, "plan": plan.to_json(), "runtime_volume": RUNTIME}
    created = run_module("containers", state="created", diff=True, **options)
    assert created["changed"], created
    assert created["diff"]["after"]["containers"] == {one.name: "created" for one in plan.containers}
    started = run_module("containers", state="started", **options)
    assert started["changed_names"] == [one.name for one in plan.containers]
    assert "diff" not in started
    assert run_module("containers", state="started", **options)["changed"] is False
    report = run_module("agent_info", name=AGENT, image=IMAGE)["agent"]
    mine = [one for one in report["containers"] if one["session"] == plan.session.id]
    assert [one["hostname"] for one in mine] == ["main1", "sub1"]
    assert report["image"]["present"]
    logs = run_step("logs.read", wanted={"session": plan.session.id, "tail": 1})["logs"]
    assert [(one["hostname"], one["text"]) for one in logs] == [
        ("main1", "init says: sleep\n"),
        ("sub1", "init says: sleep\n"),
    ]
    only = run_step("logs.read", wanted={"session": plan.session.id, "containers": ["sub1"]})["logs"]
    assert [one["hostname"] for one in only] == ["sub1"]
    options = {"agent": AGENT, "sessions": [plan.session.id]}
    assert run_module("containers", state="absent", check=True, **options)["changed"]
    assert len(ours(client, plan)) == 2
    # Another name keeps no container of a session.
    client.rename(plan.containers[1].name, plan.containers[1].name + ".renamed")
    gone = run_module("containers", state="absent", **options)
    assert sorted(gone["changed_names"]) == [plan.main.name, plan.containers[1].name + ".renamed"]
    assert ours(client, plan) == []
    assert run_module("containers", state="absent", **options)["changed"] is False
    wrong = run_module("containers", state="created", agent=AGENT, plan={"session": {}})
    assert wrong["failed"], wrong
    assert wrong["msg"].startswith("The plan of the task is refused")
