# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A failed launch leaves nothing behind but its logs, and does not change other containers."""

from __future__ import annotations

import re
import socket
from dataclasses import replace
from typing import Any

import pytest
from containers_lab import Launcher, create_and_start, ours, stranger
from engine_lab import AGENT, IMAGE, MIB, Shape, relaunched, run_module, run_step, with_container

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine import starting
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.containers import AgentContainers
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Gpu, Mount, Port, Resources
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import EngineError, StateError, TakenError


def left(launch: AgentContainers, client: Any) -> list[dict[str, Any]]:
    """The containers of the session after the conductor has removed what the launch created."""
    session = launch.plan.session
    run_step("containers.absent", sessions=[session.id], launch=session.launch)
    return ours(client, launch.plan)


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container that ends at once has ended when the launch looks, also on a busy machine."""
    monkeypatch.setattr(starting, "SETTLE", 5.0)


def test_another_spec_is_refused(launcher: Launcher) -> None:
    launch = launcher(Shape(size=1).plan())
    launch.created()
    labels = {**launch.plan.main.labels, "cluster.compute.container.spec": "other"}
    other = replace(launch, plan=with_container(launch.plan, 0, labels=labels))
    with pytest.raises(StateError, match="main1: on agent1 the container was created from another plan"):
        other.created()


def test_foreign_name(launcher: Launcher, client: Any) -> None:
    plan = Shape().plan()
    launch = launcher(plan)
    with stranger(client, plan.containers[2].name) as identity:
        assert plan.containers[2].name in run_module("agent_info", name=AGENT)["agent"]["names"]
        with pytest.raises(TakenError) as caught:
            launch.created()
        assert caught.value.message == (
            f"sub2: on agent1 the name {plan.containers[2].name} is used by container {identity[:12]}, "
            "which does not belong to this session; remove or rename it."
        )
        assert left(launch, client) == []
        assert client.inspect_container(identity)["State"]["Running"]


def test_a_container_with_our_labels_by_inheritance_is_left_alone(launcher: Launcher, client: Any) -> None:
    """Containers from an image that was committed from a session's container inherit its labels."""
    launch = launcher(Shape(size=1).plan())
    create_and_start(launch)
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


@pytest.mark.usefixtures("settled")
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
    main, sub = run_step("logs.read", wanted={"session": plan.session.id})["logs"]
    assert re.fullmatch(r"\(its log cannot be read: .*does not support reading.*\)\n", main["text"])
    assert sub["text"] == ""
    with pytest.raises(
        EngineError, match=r"main1: on agent1 the container ended with exit code 3 .* they cannot be read \("
    ):
        launch.started()


FAILURES = {
    "image": (
        Shape(image="cluster-compute-test/none:1"),
        r"Agent agent1 does not have image cluster-compute-test/none:1",
    ),
    "folder": (
        Shape(mounts=(Mount("/nowhere/at/all", "/data"),)),
        r"bind source path does not exist.*; create that directory",
    ),
    "device": (
        Shape(size=2, resources=Resources(500, 64 * MIB, 0, (Gpu("GPU-none"),))),
        r"(main1|sub\d): the engine of agent1 could not start it: could not select device driver.*toolkit",
    ),
    "cpus": (
        Shape(resources=Resources(900_000, 64 * MIB)),
        r"the engine of agent1 could not create it: .*ask for fewer CPUs",
    ),
    "ends": (
        Shape(size=2, environment={"BEHAVIOUR": "end"}),
        r"ended with exit code 3 right after its start.*cannot go on",
    ),
}


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("case", FAILURES)
def test_all_or_nothing(launcher: Launcher, client: Any, case: str) -> None:
    shape, message = FAILURES[case]
    launch = launcher(shape.plan())
    with pytest.raises(EngineError, match=message) as caught:
        create_and_start(launch)
    print(caught.value.message)
    logs = run_step("logs.read", wanted={"session": launch.plan.session.id})["logs"]
    assert any("cannot go on" in log["text"] for log in logs) == (case == "ends")
    assert left(launch, client) == []


def test_port_in_use(launcher: Launcher, client: Any) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        launch = launcher(Shape(size=2, ports=(Port("ssh", 22, "127.0.0.1", port),)).plan())
        with pytest.raises(TakenError, match=r"main1: .*address already in use; free that port") as caught:
            create_and_start(launch)
        print(caught.value.message)
    assert left(launch, client) == []


@pytest.mark.usefixtures("settled")
def test_a_failed_repair_keeps_what_was_there(launcher: Launcher, client: Any) -> None:
    launch = launcher(Shape(size=2).plan())
    create_and_start(launch)
    client.remove_container(launch.plan.containers[1].name, force=True)
    broken = with_container(relaunched(launch.plan), 1, environment={"BEHAVIOUR": "end"})
    again = replace(launch, plan=broken)
    with pytest.raises(EngineError, match="sub1: on agent1 the container ended"):
        create_and_start(again)
    [stays] = left(again, client)
    assert (stays["Names"], stays["State"]) == (["/" + launch.plan.main.name], "running")


def test_started_needs_created(launcher: Launcher) -> None:
    with pytest.raises(StateError, match="main1: agent agent1 does not have this container"):
        launcher(Shape(size=1).plan()).started()
