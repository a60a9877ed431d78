# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Volumes of sessions are removed with the last session that mounts them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from containers_lab import Launcher, actions, create_and_start, ours
from engine_lab import AGENT, IMAGE, RUNTIME, Shape

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine import networks
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.client import Engine
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.containers import AgentContainers
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.removal import Removal, remove_volumes
from ansible_collections.cluster.compute.plugins.module_utils._shared import label
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Mount
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.step_documents import Action
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ConflictError
from ansible_collections.cluster.compute.plugins.module_utils._shared.waiting import deadline_in


def test_a_volume_the_session_describes_goes_with_it(launcher: Launcher, client: Any) -> None:
    name = "cluster-compute-test-scratch"
    options = {"type": "tmpfs", "device": "tmpfs", "o": "size=1m"}
    launch = launcher(Shape(size=2, mounts=(Mount(name, "/scratch", "volume", "rw", options),)).plan())
    create_and_start(launch)
    assert client.inspect_volume(name)["Labels"][label.SESSION] == launch.plan.session.id
    result = Removal(launch.engine, [launch.plan.session.id], "", 10).carry_out(check=False)
    assert (name, "volume removed") in [(one.name, one.action) for one in result.actions]
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
        create_and_start(launch)
    first, second = ([launch.plan.session.id] for launch in pair)
    assert client.inspect_volume(name)["Labels"][label.SESSION] == first[0]
    engine = pair[0].engine
    assert Removal(engine, first, "", 60).carry_out(check=True).left == (name,)
    gone = Removal(engine, first, "", 60).carry_out(check=False)
    assert (actions(gone), gone.left) == (["removed"], (name,))
    assert client.inspect_container(pair[1].plan.main.name)["State"]["Running"]
    networks.remove_network(engine, first, deadline_in(20), check=False)
    gone = Removal(engine, second, "", 60).carry_out(check=False)
    assert Action(name, "volume removed") in gone.actions
    assert client.volumes(filters={"name": name})["Volumes"] in (None, [])
    assert not Removal(engine, [*first, *second], "", 60).carry_out(check=False).actions


def test_a_volume_that_was_removed_or_mounted_meanwhile(launcher: Launcher, client: Any) -> None:
    """This happens when two controllers terminate sessions at once, or a new container mounts the volume meanwhile."""
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
    """The engine mounts the volume when files are installed, which needs a server; this test stops before that."""
    name = "cluster-compute-test-nfs"
    options = {"type": "nfs", "o": "addr=192.0.2.10,rw,nfsvers=4", "device": ":/export/data"}
    launch = launcher(Shape(size=2, mounts=(Mount(name, "/data", "volume", "rw", options),)).plan())
    launch.created()
    found = client.inspect_volume(name)
    assert (found["Driver"], found["Options"]) == ("local", options)
    Removal(launch.engine, [launch.plan.session.id], "", 10).carry_out(check=False)
    assert client.volumes(filters={"name": name})["Volumes"] in (None, [])


def refused(launch: AgentContainers, client: Any, message: str) -> None:
    """The launch is refused with this message, and leaves no container."""
    with pytest.raises(ConflictError, match=message):
        launch.created()
    assert ours(client, launch.plan) == []


def test_the_runtime_is_not_mounted_as_data(launcher: Launcher, client: Any) -> None:
    """Root in a container could replace the programs of every session of the agent."""
    launch = launcher(Shape(size=1, mounts=(Mount(RUNTIME, "/rt", "volume"),)).plan())
    refused(launch, client, f"On {AGENT} the volume {RUNTIME} belongs to the collection")


def test_a_volume_of_another_owner_is_not_mounted(launcher: Launcher, client: Any) -> None:
    name, options = "cluster-compute-test-private", {"type": "tmpfs", "device": "tmpfs"}
    mounts = (Mount(name, "/data", "volume", "rw", options),)
    create_and_start(launcher(Shape(size=1, mounts=mounts).plan()))
    plan = Shape(size=1, subnet=78, mounts=mounts).plan()
    other = launcher(replace(plan, session=replace(plan.session, owner="other")))
    refused(other, client, f"the volume {name} belongs to a session of owner tester")
    by_name = Shape(size=1, subnet=79, mounts=(Mount(name, "/data", "volume"),)).plan()
    other = launcher(replace(by_name, session=replace(by_name.session, owner="other")))
    refused(other, client, f"the volume {name} belongs to a session of owner tester")


def test_a_policy_can_permit_only_volumes_of_sessions_of_the_owner(launcher: Launcher, client: Any) -> None:
    """Such a volume is created with the name of its owner, outlives the session, and is mounted again."""
    foreign, own = "cluster-compute-test-foreign", "cluster-compute-test-own"

    def launch(name: str, owner: str, subnet: int = 77) -> AgentContainers:
        plan = Shape(size=2, subnet=subnet, mounts=(Mount(name, "/data", "volume", local=True),)).plan()
        return launcher(replace(plan, session=replace(plan.session, owner=owner, own_volumes=True)))

    client.create_volume(foreign)
    try:
        refused(launch(foreign, "tester"), client, f"the volume {foreign} was not created by a session of tester")
        for subnet in (78, 79):
            made = launch(own, "tester", subnet)
            create_and_start(made)
            assert client.inspect_volume(own)["Labels"] == {label.OWNER: "tester"}
            Removal(made.engine, [made.plan.session.id], "", 10).carry_out(check=False)
        refused(launch(own, "other", 80), client, f"the volume {own} belongs to a session of owner tester")
    finally:
        for name in (foreign, own):
            client.remove_volume(name, force=True)


def test_an_existing_volume_with_other_options_is_not_mounted(launcher: Launcher, client: Any) -> None:
    name = "cluster-compute-test-options"
    client.create_volume(name)
    try:
        options = {"type": "tmpfs", "device": "tmpfs"}
        launch = launcher(Shape(size=1, mounts=(Mount(name, "/data", "volume", "rw", options),)).plan())
        refused(launch, client, f"the volume {name} exists with another driver or other options")
    finally:
        client.remove_volume(name)


def test_a_volume_that_appears_during_the_launch_is_not_mounted(
    launcher: Launcher, client: Any, engine_host: str
) -> None:
    """Another launch creates a volume of the same name between the check and the creation of the containers."""
    name, options = "cluster-compute-test-race", {"type": "tmpfs", "device": "tmpfs"}
    launch = launcher(Shape(size=1, mounts=(Mount(name, "/data", "volume", "rw", options),)).plan())

    class Late(Engine):
        def create(self, *arguments: Any) -> str:
            client.create_volume(name)
            return super().create(*arguments)

    message = f"the volume {name} exists with another driver or other options"
    try:
        assert actions(replace(launch, engine=Late(engine_host, 60, AGENT)).created()) == ["created"]
        with pytest.raises(ConflictError, match=message):
            launch.started()
        assert [one["State"] for one in ours(client, launch.plan)] == ["created"]
    finally:
        Removal(launch.engine, [launch.plan.session.id], "", 10).carry_out(check=False)
        client.remove_volume(name)


def test_the_volumes_of_a_container_go_with_it_also_if_it_was_removed_without_them(
    launcher: Launcher, client: Any
) -> None:
    """``docker rm`` leaves the volumes without a name, which have the keys of the container."""
    plan = Shape(size=2).plan()
    launch = launcher(replace(plan, session=replace(plan.session, read_only_root=True)))
    labels = {"label": f"{label.SESSION}={plan.session.id}"}
    create_and_start(launch)
    assert len(client.volumes(filters=labels)["Volumes"]) == 8
    lost = client.inspect_container(plan.containers[1].name)
    client.remove_container(lost["Id"], force=True)
    assert actions(launch.created()) == ["created"]
    left = {volume["Name"] for volume in client.volumes(filters=labels)["Volumes"]}
    assert len(left) == 8
    assert not left & {mount["Name"] for mount in lost["Mounts"] if mount["RW"]}
    client.remove_container(plan.containers[1].name, force=True)
    removed = Removal(launch.engine, [plan.session.id], "", 10).carry_out(check=False)
    # The engine removes the volumes of main1 together with main1; those of sub1 are removed by name.
    assert actions(removed) == ["removed", *["volume removed"] * 4]
    assert client.volumes(filters=labels)["Volumes"] in (None, [])
