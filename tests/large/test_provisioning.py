# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A bare host that is reached by SSH becomes an agent, and an ordinary host again.

The host is a container of the reference image (a Debian or Ubuntu with Python and sshd, without systemd, Docker or the
SDK), in which an engine of its own is installed. Requires an engine that is provisioned as an agent.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.errors import DockerException, ImageNotFound
from docker.models.containers import Container

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = "cluster-compute/reference:1"
RUNTIME = "cluster-compute-runtime-"
OLD = "cluster-compute-runtime-1"
NAME = "cluster-compute-test-host"
DEADLINE = 30.0

# What a host inside a container needs for an engine of its own, on a kernel where --privileged may be refused.
HOST = (
    "--cap-add ALL --cap-drop SYS_RESOURCE --device-cgroup-rule 'a *:* rwm' --cgroupns host "
    "--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined "
    "--volume /sys/fs/cgroup:/sys/fs/cgroup:rw --volume /var/lib/docker --tmpfs /run --tmpfs /tmp"
)

START = """
mount -o remount,rw /sys
rm -rf /opt/cluster-compute
mkdir -p /run/sshd /root/.ssh /home/alice/.ssh
useradd --shell /bin/bash alice
echo "$KEY" | tee /root/.ssh/authorized_keys >/home/alice/.ssh/authorized_keys
chown -R alice: /home/alice
ssh-keygen -A
exec /usr/sbin/sshd -D -e
"""

INVENTORY = """
agents:
  hosts:
    bare:
      ansible_host: {address}
      ansible_user: root
      ansible_python_interpreter: /usr/bin/python3
      ansible_ssh_private_key_file: {key}
      ansible_ssh_common_args: -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null
      agent_engine_options:
        cgroup-parent: /docker-agents/{name}
"""


class Host:
    """The bare host, and the playbook that is run against it."""

    def __init__(self, container: Container, inventory: Path) -> None:
        self.container = container
        self._inventory = inventory

    def run(self, script: str) -> str:
        result = self.container.exec_run(["sh", "-c", script])
        output: str = result.output.decode()
        if result.exit_code != 0:
            raise AssertionError("%r ended with %d: %s" % (script, result.exit_code, output))
        return output

    def has(self, script: str) -> bool:
        return bool(self.container.exec_run(["sh", "-c", script]).exit_code == 0)

    def play(self, *arguments: str) -> Outcome:
        return provision("-i", str(self._inventory), *arguments)


class Outcome:
    """The outcome of a run of the playbook."""

    def __init__(self, result: subprocess.CompletedProcess[str]) -> None:
        self.output = result.stdout + result.stderr
        self.code = result.returncode

    def counts(self) -> dict[str, int]:
        recap = re.search(r"^bare +: (.*)$", self.output, re.MULTILINE)
        if self.code != 0 or recap is None:
            raise AssertionError("the playbook ended with %d: %s" % (self.code, self.output))
        return {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", recap.group(1))}

    @property
    def changed(self) -> int:
        return self.counts()["changed"]


def provision(*arguments: str) -> Outcome:
    command = [str(Path(sys.executable).parent / "ansible-playbook"), "playbooks/provision_agents.yml", *arguments]
    # The recap of Ansible's own output counts the changes.
    variables = {**os.environ, "ANSIBLE_STDOUT_CALLBACK": "default"}
    streams: dict[str, Any] = {"capture_output": True, "text": True, "stdin": subprocess.DEVNULL}
    return Outcome(subprocess.run(command, cwd=ROOT, env=variables, check=False, timeout=600, **streams))


@pytest.fixture(scope="module")
def engine() -> docker.DockerClient:
    try:
        client = docker.from_env()
        client.images.get(REFERENCE)
    except (DockerException, ImageNotFound) as error:
        pytest.fail("no agent to test on: %s" % error)
    return client


def wait_for_sshd(container: Container) -> None:
    end = time.monotonic() + DEADLINE
    while b"Server listening" not in container.logs():
        if time.monotonic() > end:
            raise AssertionError("the host does not start: %s" % container.logs().decode())
        time.sleep(0.1)


@pytest.fixture(scope="module")
def host(engine: docker.DockerClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("host")
    key = folder / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    name = "%s-%s" % (NAME, uuid.uuid4().hex[:8])
    network = engine.networks.create(name, driver="bridge")
    public = "KEY=" + key.with_suffix(".pub").read_text()
    options = ["--name", name, "--hostname", "bare", "--network", name, "--env", public, *shlex.split(HOST)]
    try:
        subprocess.run(["docker", "create", *options, REFERENCE, "sh", "-c", START], check=True, capture_output=True)
        container = engine.containers.get(name)
        try:
            container.start()
            wait_for_sshd(container)
            container.reload()
            address = container.attrs["NetworkSettings"]["Networks"][network.name]["IPAddress"]
            inventory = folder / "hosts.yml"
            inventory.write_text(INVENTORY.format(address=address, key=key, name=name))
            yield Host(container, inventory)
        finally:
            container.remove(force=True, v=True)
    finally:
        network.remove()


def assert_the_runtime_is_renewed_beside_the_old_one(host: Host) -> None:
    """A half-filled volume is filled again. The volume of an earlier release stays as long as a container mounts it."""
    name, mark = sorted(host.run("docker volume ls -q --filter label=cluster.compute.runtime").split())
    assert (name.startswith(RUNTIME), mark) == (True, name + "-complete")
    host.run("docker volume rm " + mark)
    host.run("docker volume create --label cluster.compute.runtime=1 " + OLD)
    host.run("docker create --name old --mount source=%s,target=/old %s true" % (OLD, REFERENCE))
    assert host.play().changed == 1
    assert set(host.run("docker volume ls -q").split()) == {name, mark, OLD}
    host.run("docker rm old")
    assert host.play().changed == 1
    assert set(host.run("docker volume ls -q").split()) == {name, mark}


def assert_containers_of_a_session_prevent_the_removal(host: Host) -> None:
    labels = "session=1 session.owner=alice session.name=busy container.role=main container.index=1"
    labelled = " ".join("--label cluster.compute." + one for one in labels.split())
    host.run("docker create --name alice.busy.main1 %s %s true" % (labelled, REFERENCE))
    host.run("docker create --name own %s %s true" % (labelled, REFERENCE))
    busy = host.play("-e", "agent_state=absent")
    assert busy.code != 0
    assert "this agent still has containers of sessions (alice.busy.main1)" in " ".join(busy.output.split())
    host.run("docker rm alice.busy.main1 own")


def test_a_bare_host_becomes_an_agent_and_an_ordinary_host_again(host: Host) -> None:
    predicted = host.play("--check")
    assert predicted.changed > 0
    assert "The Docker Engine would be installed." in predicted.output
    assert not host.has("command -v dockerd || test -e /var/lib/cluster-compute || test -e /etc/docker")

    refused = host.play("-e", "ansible_user=alice")
    assert refused.code != 0
    assert "alice can neither use the Docker Engine nor become root" in " ".join(refused.output.split())

    assert host.play().changed > 0
    assert host.play().changed == 0
    assert_the_runtime_is_renewed_beside_the_old_one(host)
    assert host.run("docker container ls -aq") == ""
    assert host.run("stat -c '%a %U %G' /var/lib/cluster-compute").split() == ["2770", "root", "docker"]
    assert host.run("stat -c '%a %G' /var/lib/cluster-compute/sessions.db").split() == ["660", "docker"]
    assert host.run("docker run --rm %s /opt/cluster-compute/libexec/ssh -V" % REFERENCE).startswith("OpenSSH")
    assert not host.has("ls -d /var/lib/cluster-compute-* /var/tmp/cluster-compute-*")

    host.run("usermod -aG docker alice")
    assert host.play("-e", "ansible_user=alice").changed == 0, "she uses the session store of the head"

    assert_containers_of_a_session_prevent_the_removal(host)

    host.run("printf 'FROM %s\\nRUN touch /mine\\n' | DOCKER_BUILDKIT=0 docker build -q -t mine:1 -" % REFERENCE)
    host.run("docker tag %s kept:1" % REFERENCE)
    assert host.play("-e", "agent_state=absent", "--check").changed > 0
    assert host.play("-e", "agent_state=absent").changed > 0
    assert host.run("docker volume ls -q") == ""
    images = host.run("docker image ls --format '{{.Repository}}:{{.Tag}}'").split()
    assert sorted(images) == ["kept:1", "mine:1"], "images that inherit the label belong to their users"
    assert not host.has("test -e /var/lib/cluster-compute")

    assert host.play("-e", "agent_state=absent", "-e", "agent_remove_engine=true").changed > 0
    assert not host.has("command -v dockerd")
    assert host.play("-e", "agent_state=absent", "-e", "agent_remove_engine=true").changed == 0
