# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Containers with the real SSH runtime and its PID 1, without the modules of the collection."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import uuid
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.models.containers import Container
from docker.models.networks import Network
from docker.types import Mount
from servers import until

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.runtime import newest_runtime
from ansible_collections.cluster.compute.plugins.module_utils._shared import label
from ansible_collections.cluster.compute.plugins.module_utils._shared.names import installed_mark
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.runtime_scripts import runtime_scripts

ROOT = Path(__file__).resolve().parents[2]
RUNTIME = "/opt/cluster-compute"
REFERENCE = "cluster-compute/reference:1"
PREFIX = "cluster-compute-test-runtime-"
DEADLINE = 120.0
# The folder in which PID 1 records its progress, by the container's ID.
IDENTITY = "3614fdf3-0e04-4a4b-9d5c-1f7c0a8e6b11"
STATE = "/etc/cluster-compute/run/" + IDENTITY
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:%s/bin" % RUNTIME

SSHD_CONFIG = f"""
HostKey /etc/cluster-compute/ssh_host_ed25519_key
HostCertificate /etc/cluster-compute/ssh_host_ed25519_key-cert.pub
AuthorizedKeysFile /etc/cluster-compute/authorized_keys
PasswordAuthentication no
KbdInteractiveAuthentication no
PidFile none
KexAlgorithms curve25519-sha256
SetEnv PATH={PATH}
Subsystem sftp internal-sftp
"""

SSH_CONFIG = """
StrictHostKeyChecking yes
BatchMode yes
"""

PASSWD = """root:x:0:0:root:/root:{shell}
sshd:x:74:65534::/run/sshd:/bin/false
work:x:1000:1000::/home/work:{shell}
"""

GROUP = "root:x:0:\nwork:x:1000:\nnogroup:x:65534:\n"


class Folder:
    """A tree of files on its way into a container."""

    def __init__(self) -> None:
        self._buffer = io.BytesIO()
        self._tar = tarfile.TarFile(fileobj=self._buffer, mode="w")

    def add(self, path: str, content: bytes | str | None, mode: int = 0o644, owner: int = 0) -> Folder:
        data = content.encode() if isinstance(content, str) else content
        member = tarfile.TarInfo(path.lstrip("/"))
        member.mode, member.uid, member.gid = mode, owner, owner
        if data is None:
            member.type = tarfile.DIRTYPE
        else:
            member.size = len(data)
        self._tar.addfile(member, io.BytesIO(data or b""))
        return self

    def bytes(self) -> bytes:
        self._tar.close()
        return self._buffer.getvalue()


class Keys:
    """A certificate authority, and one user's key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._generate("ca")
        self._generate("user")
        self.known_hosts = "@cert-authority * " + self.read("ca.pub")

    def _generate(self, name: str) -> None:
        self._run("-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name))

    @staticmethod
    def _run(*arguments: str) -> None:
        subprocess.run(["ssh-keygen", *arguments], check=True, capture_output=True)

    def read(self, name: str) -> str:
        return (self.folder / name).read_text()

    def host(self, name: str) -> str:
        """Make and sign a host's key; its file name."""
        unique = "host-%s" % uuid.uuid4().hex
        self._generate(unique)
        self._run("-q", "-s", str(self.folder / "ca"), "-I", name, "-h", "-n", name, str(self.folder / unique))
        return unique


def import_image(engine: docker.DockerClient, name: str, files: Folder) -> str:
    reference = "%s%s:1" % (PREFIX, name)
    engine.api.import_image_from_data(files.bytes(), repository=PREFIX + name, tag="1")
    return reference


def find_volume(client: docker.APIClient) -> str:
    """The volume with the SSH runtime of this checkout; a test without it fails."""
    volumes = client.volumes(filters={"label": [label.RUNTIME]})["Volumes"] or []
    found = newest_runtime(volumes, runtime_scripts().edition)
    if not found:
        pytest.fail("no agent to test on: the engine has no SSH runtime of this checkout")
    return found


def read_program(engine: docker.DockerClient, path: str) -> bytes:
    """A program of the SSH runtime, as the volume has it."""
    mount = Mount(RUNTIME, find_volume(engine.api), type="volume", read_only=True)
    container = engine.containers.create(REFERENCE, name=PREFIX + uuid.uuid4().hex, mounts=[mount])
    try:
        chunks, _facts = container.get_archive("%s/%s" % (RUNTIME, path))
        with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
            member = archive.extractfile(path.rpartition("/")[2])
            return member.read() if member else b""
    finally:
        container.remove(force=True)


class Lab:
    """A network of its own, with containers that are removed at the end."""

    def __init__(self, engine: docker.DockerClient, keys: Keys) -> None:
        self.engine = engine
        self.keys = keys
        self.network: Network = engine.networks.create(PREFIX + uuid.uuid4().hex, driver="bridge")
        self.containers: dict[str, Container] = {}

    def files(self, hostname: str, shell: str) -> Folder:
        key = self.keys.host(hostname)
        folder = Folder()
        folder.add("etc/passwd", PASSWD.format(shell=shell)).add("etc/group", GROUP)
        folder.add("etc/ssh/ssh_config", SSH_CONFIG).add("etc/ssh/ssh_known_hosts", self.keys.known_hosts)
        folder.add("etc/cluster-compute/ssh_config", "Host main1 sub1 sub2 sub3" + SSH_CONFIG)
        folder.add("etc/cluster-compute/sshd_config", SSHD_CONFIG)
        folder.add("etc/cluster-compute/authorized_keys", self.keys.read("user.pub"))
        folder.add("etc/cluster-compute/ssh_host_ed25519_key", self.keys.read(key), 0o600)
        folder.add("etc/cluster-compute/ssh_host_ed25519_key-cert.pub", self.keys.read(key + "-cert.pub"))
        folder.add("home/work", None, 0o700, 1000).add("home/work/.ssh", None, 0o700, 1000)
        return folder.add("home/work/.ssh/id_ed25519", self.keys.read("user"), 0o600, 1000)

    def start(self, hostname: str, image: str, scripts: dict[str, str] | None = None, **limits: Any) -> Container:
        """A container that is created, gets its files, and is started, as those of sessions."""
        environment = {"BACKENDAI_KERNEL_ID": IDENTITY, **limits.pop("environment", {})}
        container = self.engine.containers.create(
            image,
            name="%s%s" % (PREFIX, uuid.uuid4().hex),
            hostname=hostname,
            entrypoint=["%s/bin/init" % RUNTIME],
            user="0:0",
            environment=environment,
            network=self.network.name,
            mounts=[Mount(RUNTIME, find_volume(self.engine.api), type="volume", read_only=True)],
            **limits,
        )
        self.containers[hostname] = container
        self.network.disconnect(container)
        self.network.connect(container, aliases=[hostname])
        folder = self.files(hostname, "/bin/bash" if image == REFERENCE else "%s/bin/sh" % RUNTIME)
        for name, content in {"container": IDENTITY + "\n", **(scripts or {})}.items():
            folder.add("etc/cluster-compute/%s" % name, content, 0o755)
        folder.add(installed_mark(IDENTITY), "")
        container.put_archive("/", folder.bytes())
        container.start()
        return container

    def remove(self) -> None:
        for container in self.containers.values():
            container.remove(force=True, v=True)
        self.network.remove()


def run(container: Container, script: str, user: str = "work") -> str:
    """The output of a script that runs in a container with the environment of a login."""
    setting = {"HOME": "/home/work", "PATH": PATH}
    result = container.exec_run(
        ["%s/bin/sh" % RUNTIME, "-c", script], user=user, environment=setting, workdir="/home/work"
    )
    output: str = result.output.decode()
    if result.exit_code != 0:
        raise AssertionError("%r ended with %d: %s" % (script, result.exit_code, output))
    return output


def wait_for_sshd(container: Container, starts: int = 1) -> None:
    """Wait for the sshd of the container's last start. The engine may mix what the two streams say in any order."""
    said = b"Server listening on 0.0.0.0"
    until(lambda: container.logs(stdout=False).count(said) == starts, "sshd listens in %s" % container.name)


def has(container: Container, path: str) -> bool:
    """Whether a container that runs has a file. Root looks from outside: a process inside takes as long as a tenth of a start.

    No part of the path may be a symbolic link, which would lead to files of this machine. An engine with a local socket must have
    the process IDs of this machine.
    """
    container.reload()
    outside = Path("/proc/%d/root" % container.attrs["State"]["Pid"])
    is_here = container.client.api.base_url.startswith("http+docker:")
    if is_here and os.geteuid() == 0 and outside.exists():
        return (outside / path.lstrip("/")).exists()
    return bool(container.exec_run(["%s/bin/test" % RUNTIME, "-e", path], user="root").exit_code == 0)


def exit_code(container: Container) -> str:
    path = STATE + "/exit_code"
    until(lambda: has(container, path), "the command's exit code")
    return run(container, "cat %s" % path, user="root").strip()


def go(container: Container) -> None:
    """The file that starts the command."""
    container.put_archive(STATE, Folder().add("go", "").bytes())
