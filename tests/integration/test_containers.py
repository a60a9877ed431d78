# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers on a real engine: all or nothing, repair, what they look like from inside, and strangers left alone."""

from __future__ import annotations

import contextlib
import re
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import docker
import pytest
from engine_lab import (
    AGENT,
    IMAGE,
    MIB,
    RUNTIME,
    Shape,
    make_image,
    make_runtime,
    relaunched,
    run_module,
    with_container,
)

from ansible_collections.cluster.compute.plugins.module_utils._agents.host import engine_limits
from ansible_collections.cluster.compute.plugins.module_utils._core.constants import LABEL_SESSION
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import ConflictError, EngineError, StateError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import (
    Gpu,
    Mount,
    Plan,
    Port,
    Resources,
)
from ansible_collections.cluster.compute.plugins.module_utils._core.waiting import deadline_in
from ansible_collections.cluster.compute.plugins.module_utils._docker import networks as _networks
from ansible_collections.cluster.compute.plugins.module_utils._docker.client import Engine
from ansible_collections.cluster.compute.plugins.module_utils._docker.containers import AgentContainers
from ansible_collections.cluster.compute.plugins.module_utils._docker.removal import (
    ContainerChanges,
    remove_volumes,
    removed,
)

Launcher = Callable[..., AgentContainers]


@pytest.fixture(scope="module")
def client(engine_host: str) -> Iterator[Any]:
    sdk = docker.APIClient(base_url=engine_host, version="auto")
    make_image(sdk)
    make_runtime(sdk)
    yield sdk
    sdk.remove_volume(RUNTIME, force=True)
    sdk.remove_image(IMAGE, force=True)


@pytest.fixture
def launcher(engine_host: str, client: Any) -> Iterator[Launcher]:
    """Makes launches of plans, with their networks, and removes both after the test."""
    engine = Engine(engine_host, 60, AGENT)
    plans: list[Plan] = []

    def launch(plan: Plan, **changes: Any) -> AgentContainers:
        plans.append(plan)
        if changes.pop("network", True):
            _networks.present(engine, plan, check=False)
        limits = engine_limits(engine_host)
        made = AgentContainers(
            engine, plan, AGENT, parallelism=4, deadline=deadline_in(20), limits=limits, runtime=RUNTIME
        )
        return replace(made, **changes)

    yield launch
    sessions = [plan.session.id for plan in plans]
    removed(engine, sessions, "", 4, deadline_in(20), check=False)
    _networks.absent(engine, sessions, deadline_in(20), check=False)


def ours(client: Any, plan: Plan) -> list[dict[str, Any]]:
    return list(client.containers(all=True, filters={"label": f"{LABEL_SESSION}={plan.session.id}"}))


def inside(client: Any, plan: Plan, rank: int, command: str) -> str:
    made = client.exec_create(plan.containers[rank].name, ["/bin/sh", "-c", command], user="0")
    return str(client.exec_start(made["Id"]).decode().strip())


def actions(outcome: ContainerChanges) -> list[str]:
    return [one["action"] for one in outcome.actions]


@contextlib.contextmanager
def stranger(client: Any, name: str) -> Iterator[str]:
    """A running container of somebody else's."""
    made = client.create_container(IMAGE, ["sleep", "600"], name=name, entrypoint=["/bin/busybox"])
    client.start(made["Id"])
    try:
        yield made["Id"]
    finally:
        client.remove_container(made["Id"], force=True)


def test_created_then_started_then_untouched(launcher: Launcher, client: Any) -> None:
    launch = launcher(Shape().plan())
    first = launch.created()
    assert actions(first) == ["created"] * 3
    assert [one["state"] for one in first.containers] == ["created"] * 3
    assert not launch.created().actions
    started = launch.started()
    assert actions(started) == ["started"] * 3
    assert [one["hostname"] for one in started.containers] == ["main1", "sub1", "sub2"]
    assert all(one["state"] == "running" and one["created"] > 0 for one in started.containers)
    before = [one["Id"] for one in ours(client, launch.plan)]
    assert not launch.created().actions
    assert not launch.started().actions
    assert [one["Id"] for one in ours(client, launch.plan)] == before


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
    free = _free_port()
    shape = Shape(ports=(Port("ssh", 22, "127.0.0.1", free),), environment={"MINE": "a=b c"})
    launch = launcher(shape.plan())
    launch.created()
    launch.started()
    plan = launch.plan
    hosts = inside(client, plan, 1, "cat /etc/hosts")
    assert all(f"{one.address}\t{one.hostname}" in hosts for one in plan.containers)
    assert inside(client, plan, 1, "echo $PATH:$OWN:$MINE") == "/bin:/opt/own/bin:/opt/cluster-compute/bin:image:a=b c"
    assert inside(client, plan, 1, "hostname; id -u; ls -d $PWD").split() == ["sub1", "0", "/home/work"]
    assert "16384" in inside(client, plan, 1, "df -k /dev/shm")
    assert "read-only" in inside(client, plan, 1, "touch /opt/cluster-compute/x 2>&1 || echo read-only").lower()
    assert inside(client, plan, 1, "ping -c 1 -W 2 main1 >/dev/null && echo yes") == "yes"
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


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


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
    assert [(one["name"], one["action"]) for one in again.created().actions] == [
        (launch.plan.containers[2].name, "created")
    ]
    assert len(again.started().actions) == 2
    assert inside(client, launch.plan, 1, "cat /kept") == "kept"
    assert client.inspect_container(launch.plan.containers[0].name)["State"] == main["State"]
    entries = again.started().containers
    assert [one["address"] for one in entries] == [one.address for one in launch.plan.containers]
    assert [one["id"] for one in entries] == [one.id for one in launch.plan.containers]


def test_network_made_anew_while_a_container_was_down(launcher: Launcher, client: Any) -> None:
    launch = launcher(Shape(size=1).plan())
    launch.created()
    launch.started()
    client.stop(launch.plan.main.name, timeout=0)
    client.remove_network(launch.plan.network.name)
    _networks.present(launch.engine, launch.plan, check=False)
    launch.created()
    launch.started()
    networks = client.inspect_container(launch.plan.main.name)["NetworkSettings"]["Networks"]
    assert networks[launch.plan.network.name]["IPAddress"] == launch.plan.main.address


def test_created_by_an_earlier_launch_is_made_anew(launcher: Launcher, client: Any) -> None:
    launch = launcher(Shape(size=2).plan())
    launch.created()
    before = {one["Id"] for one in ours(client, launch.plan)}
    again = replace(launch, plan=relaunched(launch.plan))
    assert actions(again.created()) == ["recreated"] * 2
    assert before.isdisjoint(one["Id"] for one in ours(client, launch.plan))


def test_another_spec_is_refused(launcher: Launcher) -> None:
    launch = launcher(Shape(size=1).plan())
    launch.created()
    labels = {**launch.plan.main.labels, "cluster.compute.container.spec": "other"}
    other = replace(launch, plan=with_container(launch.plan, 0, labels=labels))
    with pytest.raises(StateError, match="main1: on agent1 the container was created from another plan"):
        other.created()


def test_foreign_name(launcher: Launcher, client: Any) -> None:
    plan = Shape().plan()
    with stranger(client, plan.containers[2].name) as identity:
        with pytest.raises(ConflictError) as caught:
            launcher(plan).created()
        assert caught.value.message == (
            f"sub2: on agent1 the name {plan.containers[2].name} is used by container {identity[:12]}, "
            "which does not belong to this session; remove or rename it."
        )
        assert client.inspect_container(identity)["State"]["Running"]
        assert ours(client, plan) == []


def test_a_container_with_our_labels_by_inheritance_is_left_alone(launcher: Launcher, client: Any) -> None:
    """As whatever is run from an image that was made of a session's container."""
    launch = launcher(Shape(size=1).plan())
    _launch(launch)
    labels = dict(launch.plan.main.labels)
    made = client.create_container(IMAGE, ["sleep", "600"], labels=labels, entrypoint=["/bin/busybox"])
    try:
        client.start(made["Id"])
        session = launch.plan.session.id
        report = run_module("agent_info", name=AGENT)["agent"]
        assert [one["engine_name"] for one in report["containers"] if one["session"] == session] == [
            launch.plan.main.name
        ]
        gone = run_module("containers", state="absent", agent=AGENT, sessions=[session])
        assert gone["changed_names"] == [launch.plan.main.name]
        assert [one["Id"] for one in ours(client, launch.plan)] == [made["Id"]]
    finally:
        client.remove_container(made["Id"], force=True)


def test_a_log_that_cannot_be_read_stops_nothing(launcher: Launcher, client: Any) -> None:
    launch = launcher(Shape(size=2).plan())
    launch.created()
    plan = launch.plan
    client.remove_container(plan.main.name, force=True)
    without = client.create_host_config(log_config={"Type": "none"}, network_mode=plan.network.name)
    labels, ends = dict(plan.main.labels), ["-c", "exit 3"]
    client.create_container(
        IMAGE, ends, labels=labels, name=plan.main.name, entrypoint=["/bin/sh"], host_config=without
    )
    main, sub = run_module("logs_info", session=plan.session.id)["logs"]
    assert re.fullmatch(r"\(its log cannot be read: .*does not support reading.*\)\n", main["text"])
    assert sub["text"] == ""
    with pytest.raises(EngineError, match=r"main1: on agent1 it ended with exit code 3 .* they cannot be read \("):
        launch.started()


FAILURES = {
    "image": (
        Shape(image="cluster-compute-test/none:1"),
        r"Agent agent1 does not have image cluster-compute-test/none:1",
    ),
    "folder": (
        Shape(mounts=(Mount("/nowhere/at/all", "/data"),)),
        r"bind source path does not exist.*; create that folder",
    ),
    "device": (
        Shape(resources=Resources(500, 64 * MIB, 0, (Gpu("GPU-none"),))),
        r"(main1|sub\d): the engine of agent1 could not start it: could not select device driver.*toolkit",
    ),
    "cpus": (
        Shape(resources=Resources(900_000, 64 * MIB)),
        r"the engine of agent1 could not create it: .*ask for fewer CPUs",
    ),
    "ends": (
        Shape(environment={"BEHAVIOUR": "end"}),
        r"ended with exit code 3 right after its start.*cannot go on",
    ),
}


@pytest.mark.parametrize("case", FAILURES)
def test_all_or_nothing(launcher: Launcher, client: Any, case: str) -> None:
    shape, message = FAILURES[case]
    launch = launcher(shape.plan())
    with pytest.raises(EngineError, match=message) as caught:
        _launch(launch)
    print(caught.value.message)
    assert ours(client, launch.plan) == []


def _launch(launch: AgentContainers) -> None:
    launch.created()
    launch.started()


def test_port_in_use(launcher: Launcher, client: Any) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        launch = launcher(Shape(ports=(Port("ssh", 22, "127.0.0.1", port),)).plan())
        with pytest.raises(EngineError, match=r"main1: .*address already in use; free that port") as caught:
            _launch(launch)
        print(caught.value.message)
    assert ours(client, launch.plan) == []


def test_a_failed_repair_keeps_what_was_there(launcher: Launcher, client: Any) -> None:
    launch = launcher(Shape(size=2).plan())
    _launch(launch)
    client.remove_container(launch.plan.containers[1].name, force=True)
    broken = with_container(relaunched(launch.plan), 1, environment={"BEHAVIOUR": "end"})
    with pytest.raises(EngineError, match="sub1: on agent1 it ended"):
        _launch(replace(launch, plan=broken))
    left = ours(client, launch.plan)
    assert [one["Names"][0][1:] for one in left] == [launch.plan.main.name]
    assert left[0]["State"] == "running"


def test_started_needs_created(launcher: Launcher) -> None:
    with pytest.raises(StateError, match="main1: agent agent1 does not have this container"):
        launcher(Shape(size=1).plan()).started()


def test_stopped_and_started_again(launcher: Launcher) -> None:
    launch = launcher(Shape(size=2).plan())
    _launch(launch)
    stopped = launch.stopped(5)
    assert actions(stopped) == ["stopped"] * 2
    assert {one["state"] for one in stopped.containers} == {"exited"}
    assert not launch.stopped(5).actions
    assert actions(launch.started()) == ["started"] * 2


def test_a_volume_the_session_describes_goes_with_it(launcher: Launcher, client: Any) -> None:
    name = "cluster-compute-test-scratch"
    options = {"type": "tmpfs", "device": "tmpfs", "o": "size=1m"}
    launch = launcher(Shape(size=2, mounts=(Mount(name, "/scratch", "volume", "rw", options),)).plan())
    _launch(launch)
    assert client.inspect_volume(name)["Labels"][LABEL_SESSION] == launch.plan.session.id
    result = removed(launch.engine, [launch.plan.session.id], "", 4, deadline_in(10), check=False)
    assert {"name": name, "action": "volume removed"} in result.actions
    assert client.volumes(filters={"name": name})["Volumes"] in (None, [])
    assert ours(client, launch.plan) == []


def test_a_volume_that_sessions_share_goes_with_the_last(launcher: Launcher, client: Any) -> None:
    name = "cluster-compute-test-shared"
    options = {"type": "tmpfs", "device": "tmpfs", "o": "size=1m"}
    pair = [
        launcher(Shape(size=1, subnet=subnet, mounts=(Mount(name, "/data", "volume", "rw", options),)).plan())
        for subnet in (77, 78)
    ]
    for launch in pair:
        _launch(launch)
    first, second = ([launch.plan.session.id] for launch in pair)
    assert client.inspect_volume(name)["Labels"][LABEL_SESSION] == first[0]
    engine = pair[0].engine
    assert removed(engine, first, "", 4, deadline_in(60), check=True).left == [name]
    gone = removed(engine, first, "", 4, deadline_in(60), check=False)
    assert (actions(gone), gone.left) == (["removed"], [name])
    assert client.inspect_container(pair[1].plan.main.name)["State"]["Running"]
    _networks.absent(engine, first, deadline_in(20), check=False)
    gone = removed(engine, second, "", 4, deadline_in(60), check=False)
    assert {"name": name, "action": "volume removed"} in gone.actions
    assert client.volumes(filters={"name": name})["Volumes"] in (None, [])
    assert not removed(engine, [*first, *second], "", 4, deadline_in(60), check=False).actions


def test_a_volume_that_is_gone_or_mounted_by_now(launcher: Launcher, client: Any) -> None:
    """As when two controllers end sessions at once, or somebody takes the volume on the way."""
    engine = launcher(Shape(size=1).plan(), network=False).engine
    client.create_volume("cluster-compute-test-taken")
    made = client.create_container(
        IMAGE, ["true"], host_config=client.create_host_config(binds=["cluster-compute-test-taken:/data"])
    )
    try:
        names = ["cluster-compute-test-none", "cluster-compute-test-taken"]
        assert remove_volumes(engine, names, deadline_in(60)) == ["cluster-compute-test-taken"]
    finally:
        client.remove_container(made["Id"], force=True)
        client.remove_volume("cluster-compute-test-taken")


def test_the_options_of_an_nfs_volume_reach_the_engine(launcher: Launcher, client: Any) -> None:
    """It is mounted when something is put into the container, which needs a server: this stops before."""
    name = "cluster-compute-test-nfs"
    options = {"type": "nfs", "o": "addr=192.0.2.10,rw,nfsvers=4", "device": ":/export/data"}
    launch = launcher(Shape(size=2, mounts=(Mount(name, "/data", "volume", "rw", options),)).plan())
    launch.created()
    found = client.inspect_volume(name)
    assert (found["Driver"], found["Options"]) == ("local", options)
    removed(launch.engine, [launch.plan.session.id], "", 4, deadline_in(10), check=False)
    assert client.volumes(filters={"name": name})["Volumes"] in (None, [])


def test_absent_by_launch_keeps_the_others(launcher: Launcher, client: Any) -> None:
    launch = launcher(Shape(size=2).plan())
    _launch(launch)
    client.remove_container(launch.plan.containers[1].name, force=True)
    again = replace(launch, plan=relaunched(launch.plan))
    again.created()
    session, attempt = again.plan.session.id, again.plan.session.launch
    gone = removed(launch.engine, [session], attempt, 4, deadline_in(10), check=False)
    assert [one["name"] for one in gone.actions] == [launch.plan.containers[1].name]
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
    logs = run_module("logs_info", session=plan.session.id, tail=1)["logs"]
    assert [(one["hostname"], one["text"]) for one in logs] == [
        ("main1", "init says: sleep\n"),
        ("sub1", "init says: sleep\n"),
    ]
    only = run_module("logs_info", session=plan.session.id, containers=["sub1"])["logs"]
    assert [one["hostname"] for one in only] == ["sub1"]
    options = {"agent": AGENT, "sessions": [plan.session.id]}
    assert run_module("containers", state="absent", check=True, **options)["changed"]
    assert len(ours(client, plan)) == 2
    gone = run_module("containers", state="absent", **options)
    assert sorted(gone["changed_names"]) == sorted(one.name for one in plan.containers)
    assert run_module("containers", state="absent", **options)["changed"] is False
    wrong = run_module("containers", state="created", agent=AGENT, plan={"session": {}})
    assert wrong["failed"], wrong
    assert wrong["failure"]["code"] == "input"


def test_speed_beside_the_floor(launcher: Launcher, client: Any) -> None:
    """Prints what a launch costs beside the bare engine's own time; asserts nothing about either."""
    size = 8
    launch = launcher(Shape(size=size).plan())
    begun = time.monotonic()
    launch.created()
    created = time.monotonic()
    launch.started()
    started = time.monotonic()
    removed(launch.engine, [launch.plan.session.id], "", 4, deadline_in(20), check=False)
    print(
        f"{size} containers: created {created - begun:.2f} s, started {started - created:.2f} s, "
        f"removed {time.monotonic() - started:.2f} s"
    )
