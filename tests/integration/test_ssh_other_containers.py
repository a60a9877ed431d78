# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SSH between running containers that something else has started. Needs an agent; removes all that it makes."""

from __future__ import annotations

import io
import tarfile
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from runtime_lab import find_volume
from ssh_lab import APPLETS, PREFIX, REFERENCE, agent_client, archive, busybox

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.client import Engine
from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh.container_set import members_of, plan_of
from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh.other_containers import (
    SetInstaller,
    found_containers,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared import label
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import User
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import EngineError, StateError
from ansible_collections.cluster.compute.plugins.plugin_utils._client.identity import make_bundle
from ansible_collections.cluster.compute.plugins.plugin_utils._client.keys import Identity

RUNTIME = "/opt/cluster-compute"
SLEEP = ["sleep", "600"]


class Others:
    """Containers in a network of their own, made without the collection."""

    def __init__(self, client: Any, docker_host: str) -> None:
        self.client, self.engine = client, Engine(docker_host, agent="agent1")
        self.mark = PREFIX + uuid.uuid4().hex[:8]
        self.network = client.create_network(self.mark)["Id"]
        self.image = self._busybox_image()
        self.made: list[str] = []

    def _busybox_image(self) -> str:
        """An image that has BusyBox alone."""
        source = self.client.create_container(REFERENCE, ["true"])["Id"]
        chunks, _stat = self.client.get_archive(source, RUNTIME + "/bin/busybox")
        packed = b"".join(chunks)
        self.client.remove_container(source, force=True)
        with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
            binary = tar.extractfile("busybox").read()  # type: ignore[union-attr]
        self.client.import_image_from_data(archive(busybox(binary, (*APPLETS, "sleep"))), self.mark, "1")
        return self.mark + ":1"

    def start(self, image: str, mounts: list[Json], labels: dict[str, str] | None = None) -> str:
        name = f"{self.mark}-{len(self.made)}"
        host = self.client.create_host_config(mounts=mounts, init=True)
        made = self.client.create_container(
            image,
            SLEEP,
            name=name,
            labels=labels,
            host_config=host,
            networking_config=self.client.create_networking_config({self.mark: self.client.create_endpoint_config()}),
        )
        self.made.append(made["Id"])
        self.client.start(made["Id"])
        return name

    def with_own_server(self) -> str:
        """A container whose image has OpenSSH's server. An empty volume hides the SSH runtime of the reference image."""
        return self.start(REFERENCE, [{"Type": "volume", "Target": RUNTIME, "VolumeOptions": {"NoCopy": True}}])

    def with_runtime(self) -> str:
        """A container whose image has neither a server nor a client, with the SSH runtime."""
        source = find_volume(self.client)
        return self.start(self.image, [{"Type": "volume", "Source": source, "Target": RUNTIME, "ReadOnly": True}])

    def remove(self) -> None:
        for container in self.made:
            self.client.remove_container(container, force=True, v=True)
        self.client.remove_network(self.network)
        self.client.remove_image(self.image, force=True)

    def install(self, *names: str, port: int = 22, check: bool = False) -> Json:
        """What the action does, for a set with the hostnames h0, h1 …"""
        entries = [{"name": name, "hostname": f"h{number}"} for number, name in enumerate(names)]
        found = found_containers(self.engine, names, "")
        plan = plan_of("test-set", members_of(entries), {"agent1": found}, User())
        bundle = make_bundle(plan, Identity(b"\1" * 32, plan.session.id), plan.containers, port)
        return SetInstaller(self.engine, plan, "agent1", bundle, port).install(check=check).to_json()

    def run(self, name: str, *command: str) -> str:
        made = self.client.exec_create(name, list(command))["Id"]
        text = self.client.exec_start(made).decode()
        assert self.client.exec_inspect(made)["ExitCode"] == 0, text
        return str(text)

    def ssh(self, name: str, host: str, command: str) -> str:
        client = RUNTIME + "/bin/ssh" if name in self.runtimes else "ssh"
        return self.run(name, client, "-o", "BatchMode=yes", host, command).strip()

    @property
    def runtimes(self) -> list[str]:
        """The names of the containers that mount the SSH runtime."""
        listed = [self.client.inspect_container(one) for one in self.made]
        return [one["Name"].lstrip("/") for one in listed if any(mount.get("RW") is False for mount in one["Mounts"])]


@pytest.fixture
def others(engine_host: str) -> Iterator[Others]:
    made = Others(agent_client(engine_host), engine_host)
    try:
        yield made
    finally:
        made.remove()


def test_containers_with_a_server_of_their_own_and_with_the_runtime_reach_each_other(others: Others) -> None:
    own, mounted = others.with_own_server(), others.with_runtime()

    planned = others.install(own, mounted, check=True)
    assert planned["installed"] == ["h0", "h1"]
    shown = "".join(diff["after"] for diff in planned["diff"])
    assert "/usr/sbin/sshd on port 22" in shown
    assert f"{RUNTIME}/libexec/sshd on port 22" in shown
    assert others.install(own, mounted)["installed"] == ["h0", "h1"]
    assert not others.install(own, mounted)["changed"]

    for source in (own, mounted):
        assert [others.ssh(source, host, "id -un; cat /etc/hostname").split() for host in ("h0", "h1")] == [
            ["work", others.made[0][:12]],
            ["work", others.made[1][:12]],
        ]
    assert others.ssh(mounted, "h0", "ssh h1 cat /etc/mpi/hostfile") == "h0 slots=1\nh1 slots=1"
    hosts = others.run(own, "cat", "/etc/hosts")
    assert "localhost" in hosts
    assert others.run(mounted, "cat", "/etc/hosts").splitlines()[:4] == hosts.splitlines()[:4]
    assert "work@" not in others.run(own, "sh", "-c", "ls -A /home/work")


def test_what_a_restart_loses_comes_back_and_a_new_container_needs_no_change_in_others(others: Others) -> None:
    first, second = others.with_own_server(), others.with_runtime()
    others.install(first, second)
    others.client.restart(second, timeout=0)

    assert others.install(first, second)["installed"] == ["h1"]
    assert others.ssh(first, "h1", "cat /etc/hostname") == others.made[1][:12]
    third = others.with_runtime()
    assert others.install(first, second, third)["installed"] == ["h0", "h1", "h2"]
    assert others.ssh(third, "h0", "echo reached") == "reached"


def test_a_server_moves_to_another_port_and_refuses_one_that_is_taken(others: Others) -> None:
    first, second = others.with_own_server(), others.with_own_server()
    others.run(first, "sh", "-c", "ssh-keygen -q -t ed25519 -N '' -f /key; mkdir /run/sshd; /usr/sbin/sshd -h /key")

    with pytest.raises(
        EngineError, match=r"h0: .* could not start the SSH server: .*; set the option port to a free one"
    ):
        others.install(first, second)
    for port in (2222, 2223):
        assert others.install(first, second, port=port)["installed"] == ["h0", "h1"]
        assert others.ssh(second, "h0", "echo $SSH_CONNECTION").split()[-1] == str(port)
        assert not others.install(first, second, port=port)["changed"]


def test_a_container_that_cannot_serve_ssh_is_refused_before_any_is_changed(others: Others) -> None:
    first, bare = others.with_own_server(), others.start(others.image, [])
    with pytest.raises(
        StateError, match=r"h1: .* has no SSH server: install OpenSSH's server .* mount the SSH runtime"
    ):
        others.install(first, bare)
    assert not others.engine.has_path(first, "/etc/cluster-compute")


def test_containers_of_sessions_and_of_several_networks_are_refused(others: Others) -> None:
    of_session = others.start(others.image, [], labels={label.SESSION: str(uuid.uuid4())})
    with pytest.raises(StateError, match="a container of a session"):
        others.install(of_session)
    double = others.start(others.image, [])
    others.client.connect_container_to_network(double, "bridge")
    with pytest.raises(StateError, match=f"its networks: bridge, {others.mark}"):
        found_containers(others.engine, [double], "")
    [found] = found_containers(others.engine, [double], others.mark)
    assert found.network == others.network
