# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A session made without Ansible, for tests of what SSH needs: its plan, its containers, its controller's folder."""

from __future__ import annotations

import io
import ipaddress
import os
import pty
import select
import subprocess
import tarfile
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import docker
import pytest
import samples
from runtime_lab import find_volume
from samples import request
from servers import free_port

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.client import Engine
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.connection import persist
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.payloads import (
    AgentSettings,
    container_body,
    network_body,
    writable_folders,
)
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.runtime import find_runtime
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.starting import Starting
from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh import config_files
from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh.installer import FileInstaller
from ansible_collections.cluster.compute.plugins.module_utils._shared import label
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Mount, Plan, Port
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.plan import with_user_environment
from ansible_collections.cluster.compute.plugins.module_utils._shared.waiting import deadline_in
from ansible_collections.cluster.compute.plugins.plugin_utils._client.identity import make_bundle
from ansible_collections.cluster.compute.plugins.plugin_utils._client.keys import Identity
from ansible_collections.cluster.compute.plugins.plugin_utils._client.proof import Proof
from ansible_collections.cluster.compute.plugins.plugin_utils._client.session_dir import Artifacts
from ansible_collections.cluster.compute.plugins.plugin_utils._client.ssh import SshEndpoint, reach
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.runtime_scripts import runtime_scripts

AGENT = "agent1"
REFERENCE = "cluster-compute/reference:1"
PREFIX = "cluster-compute-test-"
Member = tuple[str, "bytes | None", int]


def make_plan(
    image: str,
    size: int = 2,
    environment: dict[str, str] | None = None,
    mounts: Sequence[Mount] = (),
    memory: str = "256m",
    permitted_folders: Sequence[str] = (),
) -> Plan:
    """A plan as the scheduler would make it, on one agent."""
    session = str(uuid.uuid4())
    # A network of its own per session, far from what anything else here uses.
    subnet = ipaddress.IPv4Network((int(ipaddress.IPv4Address("10.214.0.0")) + (uuid.uuid4().int % 2048) * 32, 27))
    asked = request(
        name=PREFIX + session[:8],
        owner="lab",
        image=image,
        cluster_size=size,
        cpus=2,
        memory=memory,
        shm="8m",
        network_pool=[str(subnet)],
    )
    made = samples.plan(
        replace(asked, mounts=tuple(mounts)),
        [AGENT] * size,
        session_id=session,
        ports=(Port("ssh", 22, "127.0.0.1", free_port()),),
        permitted_folders=tuple(permitted_folders),
    )
    return with_user_environment(made, [environment or {}] * size)


@dataclass
class Lab:
    """One session on the local engine; ``remove`` leaves nothing of it."""

    plan: Plan
    base: Path
    docker_host: str = "unix:///var/run/docker.sock"
    engine: Engine = field(init=False)

    def __post_init__(self) -> None:
        self.engine = Engine(self.docker_host, agent=AGENT)
        self.image_path = _path_of(self.engine, self.plan.session.image)
        self.runtime = find_runtime(self.engine, runtime_scripts().edition)

    @property
    def artifacts(self) -> Artifacts:
        return Artifacts(str(self.base), self.plan.session.name)

    @property
    def identity(self) -> Identity:
        found = self.artifacts.identity(self.plan.session.id, create=True)
        if found is None:
            raise RuntimeError("no identity")
        return found

    @property
    def config(self) -> str:
        return self.artifacts.folder + "/ssh_config"

    def create(self, names: Sequence[str] = ()) -> Lab:
        if not self.engine.networks(self.plan.session.id):
            self.engine.create_network(self.plan.network.name, network_body(self.plan.network))
        for container in self.plan.containers:
            if not names or container.hostname in names:
                body = container_body(
                    self.plan,
                    container,
                    AgentSettings(image_environment={"PATH": self.image_path}, runtime=self.runtime),
                )
                self.engine.create(container.name, body)
        return self

    def install(self, names: Sequence[str] = (), check: bool = False, identity: Identity | None = None) -> Json:
        return self._installer(identity or self.identity).install(names, check).to_json()

    def _installer(self, identity: Identity) -> FileInstaller:
        return FileInstaller(self.engine, self.plan, AGENT, make_bundle(self.plan, identity, self.plan.on(AGENT)))

    def keep(self) -> Lab:
        """What the action half keeps on the controller."""
        identity, artifacts = self.identity, self.artifacts
        address = config_files.default_address(self.plan)
        artifacts.write("ssh_config", config_files.controller_config(self.plan, address, artifacts.folder).encode())
        artifacts.write("known_hosts", (config_files.authority_line(self.plan, identity.authority) + "\n").encode())
        artifacts.write("id_container", identity.user.private.encode())
        return self

    def start(self, names: Sequence[str] = ()) -> Lab:
        for container in self.plan.containers:
            if not names or container.hostname in names:
                self.engine.start(container.name)
        return self

    def start_with_files(self) -> list[str]:
        """Start the containers, and send PID 1 of each that has none its files, as a launch does. Returns these containers."""
        installer = self._installer(self.identity)
        installation = installer.installation(*installer.lacking())
        folders, names = writable_folders(self.plan.session), list(installation.names)
        files = {name: partial(installation.archive, name, folders) for name in names}
        starting = Starting(self.engine, self.plan, AGENT, files)
        listed = {one["Labels"][label.CONTAINER]: one for one in self.engine.containers(self.plan.session.id)}
        waiting = [(one, listed[one.id]) for one in self.plan.containers if listed[one.id]["State"] != "running"]
        starting.carry_out(waiting)
        return names

    def up(self, *, by_engine: bool = False) -> Lab:
        """Everything at once; main1 answers. PID 1 unpacks the files, or the engine before the start."""
        self.create().keep()
        if by_engine:
            self.install()
            self.start()
        else:
            self.start_with_files()
        return self.reached()

    def reached(self) -> Lab:
        """Wait until main1 answers: its engine accepts connections before its SSH server does."""
        reach(self.door(), Proof(), 30)
        return self

    def door(self, host: str = "main1") -> SshEndpoint:
        """Into main1, if it shows the host key of ``host``."""
        key = self.identity.host(host).public
        return SshEndpoint(
            "127.0.0.1", self.plan.main.ports[0].host_port, "work", self.artifacts.folder + "/id_container", key
        )

    def ssh(self, host: str, *command: str, stdin: str = "", program: Sequence[str] = ("ssh",)) -> str:
        """What a command prints on a host, entered from the controller; its refusal is an error with its own words."""
        options = ["-F", self.config, "-o", "BatchMode=yes", "-o", "ConnectionAttempts=30"]
        done = subprocess.run(
            [*program, *options, host, *command], input=stdin, capture_output=True, text=True, timeout=60, check=False
        )
        if done.returncode:
            raise RuntimeError("%s: rc %d: %s" % (host, done.returncode, done.stderr + done.stdout))
        return done.stdout

    def remove(self) -> None:
        for listed in self.engine.containers(self.plan.session.id):
            # A list of another test that reads its files holds it for a moment.
            persist(lambda identity=listed["Id"]: self.engine.remove(identity), deadline_in(60))
        for network in self.engine.networks(self.plan.session.id):
            self.engine.remove_network(network["Id"])
        self.artifacts.remove(self.plan.session.id)


def _path_of(engine: Engine, image: str) -> str:
    """The PATH that an image sets."""
    entries = ((engine.image(image) or {}).get("Config") or {}).get("Env") or []
    return next((entry[len("PATH=") :] for entry in entries if entry.startswith("PATH=")), "")


def enter(lab: Lab, host: str) -> str:
    """What a person sees who enters a host at a terminal, and leaves again."""
    shown = b""
    leader, follower = pty.openpty()
    command = ["ssh", "-F", lab.config, "-o", "ConnectionAttempts=30", "-tt", host]
    with subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, start_new_session=True) as process:
        os.close(follower)
        deadline = time.monotonic() + 20
        while b"$ " not in shown and time.monotonic() < deadline:
            if select.select([leader], [], [], 0.5)[0]:
                shown += os.read(leader, 4096)
        process.terminate()
    os.close(leader)
    return shown.decode("utf-8", "replace")


def archive(members: Sequence[Member], links: dict[str, str] | None = None) -> bytes:
    """An image's root: files (content), folders (None) and links."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, content, mode in members:
            info = tarfile.TarInfo(path)
            info.mode = mode
            if content is None:
                info.type = tarfile.DIRTYPE
            else:
                info.size = len(content)
            tar.addfile(info, io.BytesIO(content or b""))
        for path, target in (links or {}).items():
            info = tarfile.TarInfo(path)
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info)
    return buffer.getvalue()


APPLETS = ("sh", "ls", "cat", "env", "id", "hostname", "stat")


def busybox(binary: bytes, applets: Sequence[str] = APPLETS) -> list[Member]:
    """The files of an image that holds BusyBox alone."""
    return [("bin", None, 0o755), ("bin/busybox", binary, 0o755), *[("bin/" + one, binary, 0o755) for one in applets]]


def agent_client(engine_host: str) -> Any:
    """A client of an engine that was made an agent."""
    sdk = docker.APIClient(base_url=engine_host, version="auto")
    try:
        find_volume(sdk)
        sdk.inspect_image(REFERENCE)
    except docker.errors.NotFound as error:
        pytest.fail(f"no agent to test on: {error}")
    return sdk


def given(lab: Lab, rank: int) -> dict[str, str]:
    """The container's own environment, as its first process has it."""
    entries = (lab.engine.inspect(lab.plan.containers[rank].name) or {})["Config"]["Env"]
    return {**dict(entry.split("=", 1) for entry in entries), "HOSTNAME": lab.plan.containers[rank].hostname}
