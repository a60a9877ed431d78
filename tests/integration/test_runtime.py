# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The SSH runtime in images that hold little or nothing: sshd, ssh, scp and sftp, the bootstrap and the batch command.

Needs an engine that was made an agent (playbooks/provision_agents.yml), and ssh-keygen. Removes all that it makes.
"""

from __future__ import annotations

import io
import subprocess
import tarfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from docker.errors import DockerException, NotFound
from docker.models.containers import Container
from docker.models.images import Image
from docker.models.networks import Network
from docker.types import Mount

ROOT = Path(__file__).resolve().parents[2]
RUNTIME = "/opt/cluster-compute"
VOLUME = "cluster-compute-runtime-2"
REFERENCE = "cluster-compute/reference:1"
PREFIX = "cluster-compute-test-runtime-"
DEADLINE = 30.0
# Where PID 1 keeps what it has done, by the container's ID.
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
SetEnv PATH={PATH}
Subsystem sftp {RUNTIME}/libexec/sftp-server
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


@pytest.fixture(scope="module")
def engine() -> docker.DockerClient:
    try:
        client = docker.from_env()
        client.volumes.get(VOLUME)
    except (DockerException, NotFound) as error:
        pytest.fail("no agent to test on: %s" % error)
    return client


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


def import_image(engine: docker.DockerClient, name: str, files: Folder) -> str:
    reference = "%s%s:1" % (PREFIX, name)
    engine.api.import_image_from_data(files.bytes(), repository=PREFIX + name, tag="1")
    return reference


def read_program(engine: docker.DockerClient, name: str) -> bytes:
    """A program of the SSH runtime, as the volume has it."""
    mount = Mount(RUNTIME, VOLUME, type="volume", read_only=True)
    container = engine.containers.create(REFERENCE, name=PREFIX + uuid.uuid4().hex, mounts=[mount])
    try:
        chunks, _facts = container.get_archive("%s/bin/%s" % (RUNTIME, name))
        with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
            member = archive.extractfile(name)
            return member.read() if member else b""
    finally:
        container.remove(force=True)


@pytest.fixture(scope="module")
def images(engine: docker.DockerClient) -> Iterator[dict[str, str]]:
    """By name: one with nothing but BusyBox, one with nothing at all, and the reference image."""
    busybox = Folder().add("bin", None, 0o755).add("bin/busybox", read_program(engine, "busybox"), 0o755)
    made = {
        "busybox": import_image(engine, "busybox", busybox),
        "nothing": import_image(engine, "nothing", Folder().add("unused", "")),
    }
    yield {**made, "reference": REFERENCE}
    for reference in made.values():
        image: Image = engine.images.get(reference)
        engine.images.remove(image.id, force=True)


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
        folder.add("etc/cluster-compute/sshd_config", SSHD_CONFIG)
        folder.add("etc/cluster-compute/authorized_keys", self.keys.read("user.pub"))
        folder.add("etc/cluster-compute/ssh_host_ed25519_key", self.keys.read(key), 0o600)
        folder.add("etc/cluster-compute/ssh_host_ed25519_key-cert.pub", self.keys.read(key + "-cert.pub"))
        folder.add("home/work", None, 0o700, 1000).add("home/work/.ssh", None, 0o700, 1000)
        return folder.add("home/work/.ssh/id_ed25519", self.keys.read("user"), 0o600, 1000)

    def start(self, hostname: str, image: str, scripts: dict[str, str] | None = None, **limits: str) -> Container:
        """A container made as a session's are: created, given its files, started."""
        container = self.engine.containers.create(
            image,
            name="%s%s" % (PREFIX, uuid.uuid4().hex),
            hostname=hostname,
            entrypoint=["%s/bin/init" % RUNTIME],
            user="0:0",
            network=self.network.name,
            mounts=[Mount(RUNTIME, VOLUME, type="volume", read_only=True)],
            **limits,
        )
        self.containers[hostname] = container
        self.network.disconnect(container)
        self.network.connect(container, aliases=[hostname])
        folder = self.files(hostname, "/bin/bash" if image == REFERENCE else "%s/bin/sh" % RUNTIME)
        for name, content in {"container": IDENTITY + "\n", **(scripts or {})}.items():
            folder.add("etc/cluster-compute/%s" % name, content, 0o755)
        container.put_archive("/", folder.bytes())
        container.start()
        return container

    def remove(self) -> None:
        for container in self.containers.values():
            container.remove(force=True, v=True)
        self.network.remove()


@pytest.fixture
def lab(engine: docker.DockerClient, keys: Keys) -> Iterator[Lab]:
    made = Lab(engine, keys)
    yield made
    made.remove()


def run(container: Container, script: str, user: str = "work") -> str:
    """What a script says that runs in a container with the environment of a login."""
    setting = {"HOME": "/home/work", "PATH": PATH}
    result = container.exec_run(
        ["%s/bin/sh" % RUNTIME, "-c", script], user=user, environment=setting, workdir="/home/work"
    )
    output: str = result.output.decode()
    if result.exit_code != 0:
        raise AssertionError("%r ended with %d: %s" % (script, result.exit_code, output))
    return output


def until(condition: object, what: str) -> None:
    """Wait for a condition, with a deadline."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        if callable(condition) and condition():
            return
        time.sleep(0.1)
    raise AssertionError("not within %d s: %s" % (DEADLINE, what))


def wait_for_sshd(container: Container) -> None:
    until(lambda: b"Server listening" in container.logs(tail=2), "sshd listens in %s" % container.name)


def exit_code(container: Container) -> str:
    path = STATE + "/exit_code"
    until(lambda: container.exec_run(["%s/bin/test" % RUNTIME, "-f", path]).exit_code == 0, "the command's exit code")
    return run(container, "cat %s" % path, user="root").strip()


def go(container: Container) -> None:
    """What lets the command begin."""
    container.put_archive(STATE, Folder().add("go", "").bytes())


def test_the_runtime_was_made_from_this_source(engine: docker.DockerClient) -> None:
    advice = "this agent's SSH runtime is another one: run provision_agents.yml with agent_state=absent, then without"
    for name in ("init", "everywhere"):
        source = (ROOT / f"roles/image/files/{name}.sh").read_bytes().partition(b"\n")[2]
        assert read_program(engine, name).partition(b"\n")[2] == source, advice


@pytest.mark.parametrize("image", ["busybox", "nothing", "reference"])
def test_ssh_scp_and_sftp_without_an_option_or_a_prompt(lab: Lab, images: dict[str, str], image: str) -> None:
    main = lab.start("main1", images[image])
    sub = lab.start("sub1", images[image])
    wait_for_sshd(main)
    wait_for_sshd(sub)

    assert run(main, "ssh sub1 'hostname; id -un'").split() == ["sub1", "work"]
    assert run(sub, "ssh main1 ssh sub1 hostname").strip() == "sub1"
    run(main, "echo here >one; scp -q one sub1:two; scp -q sub1:two three; echo 'get two four' | sftp -q -b - sub1")
    assert run(main, "cat three four").split() == ["here", "here"]


@pytest.mark.parametrize("image", ["nothing", "reference"])
def test_works_again_after_a_restart(lab: Lab, images: dict[str, str], image: str) -> None:
    bootstrap = {"bootstrap": "echo once >>~/times; id -un; pwd; echo heard >/dev/stdout\n"}
    main = lab.start("main1", images[image], bootstrap)
    wait_for_sshd(main)
    assert main.logs(stderr=False).decode().split() == ["work", "/home/work", "heard"]
    main.restart(timeout=10)
    wait_for_sshd(main)

    assert run(main, "ssh main1 cat times").split() == ["once"]


def test_prompt_of_the_reference_image(lab: Lab, images: dict[str, str]) -> None:
    sub = lab.start("sub1", images["reference"])
    wait_for_sshd(sub)
    assert "work@sub1:~$ " in run(sub, "echo exit | ssh -tt sub1")


def test_a_failed_bootstrap_ends_the_container(lab: Lab, images: dict[str, str]) -> None:
    main = lab.start("main1", images["nothing"], {"bootstrap": "echo trouble >&2; exit 7\n"})
    assert main.wait(timeout=DEADLINE)["StatusCode"] == 1
    said = main.logs().decode()
    assert said == "trouble\ncluster-compute: the bootstrap script failed with exit code 7\n"


def test_the_command_waits_for_go_and_runs_once(lab: Lab, images: dict[str, str]) -> None:
    command = "#!%s/bin/sh\necho once >>~/times; echo said; exit 3\n" % RUNTIME
    main = lab.start("main1", images["nothing"], {"command": command})
    wait_for_sshd(main)
    assert run(main, "ls") == ""
    go(main)
    assert exit_code(main) == "3"
    assert "said\n" in main.logs(stderr=False).decode()
    main.restart(timeout=10)
    wait_for_sshd(main)
    time.sleep(0.5)
    assert run(main, "cat times").split() == ["once"]


def test_a_command_that_was_cut_short_waits_for_go_again(lab: Lab, images: dict[str, str]) -> None:
    main = lab.start("main1", images["nothing"], {"command": "echo begun >>~/times; sleep 1000\n"})
    wait_for_sshd(main)
    go(main)
    until(lambda: run(main, "ls") != "", "the command runs")
    main.kill()
    main.start()
    until(lambda: main.logs().count(b"Server listening on 0.0.0.0") == 2, "sshd listens again")
    time.sleep(0.5)
    assert run(main, "cat times").split() == ["begun"]
    go(main)
    until(lambda: run(main, "cat times").split() == ["begun"] * 2, "the command runs again")


def test_what_another_container_has_done_is_its_own(lab: Lab, images: dict[str, str]) -> None:
    """An image that was made of a session's container brings along its scripts, and how far it was."""
    other = {place + name: "0\n" for place in ("", "run/other/") for name in (".bootstrapped", "go", "exit_code")}
    scripts = {"bootstrap": "echo prepared >>~/times\n", "command": "echo done >>~/times; exit 5\n"}
    main = lab.start("main1", images["nothing"], {**other, **scripts})
    sub = lab.start("sub1", images["nothing"], {**other, "bootstrap": "", "command": "", "timeout": "", "volumes": ""})
    wait_for_sshd(main)
    wait_for_sshd(sub)
    time.sleep(0.5)
    assert run(main, "cat times").split() == ["prepared"]
    go(main)
    assert exit_code(main) == "5"
    assert run(sub, "ls") == ""


def test_a_bootstrap_that_runs_out_of_memory_says_so(lab: Lab, images: dict[str, str]) -> None:
    hungry = "python3 -c 'x = bytearray(200 << 20); print(len(x))'\n"
    main = lab.start("main1", images["reference"], {"bootstrap": hungry}, mem_limit="64m", memswap_limit="64m")
    assert main.wait(timeout=DEADLINE)["StatusCode"] == 1
    assert "the bootstrap script failed with exit code 137, out of memory" in main.logs().decode()


@pytest.mark.parametrize("trap", ["", "trap '' TERM; "])
def test_a_command_that_takes_too_long_is_ended_with_its_children(lab: Lab, images: dict[str, str], trap: str) -> None:
    command = "%ssleep 1000 & while true; do sleep 100; done\n" % trap
    main = lab.start("main1", images["nothing"], {"command": command, "timeout": "1"})
    wait_for_sshd(main)
    go(main)
    assert exit_code(main) == "124"
    assert "sleep 100" not in run(main, "ps -o args", user="root")


def test_stops_at_once_during_the_bootstrap(lab: Lab, images: dict[str, str]) -> None:
    main = lab.start("main1", images["nothing"], {"bootstrap": "echo begun; sleep 1000\n"})
    until(lambda: b"begun" in main.logs(), "the bootstrap runs")
    main.stop(timeout=100)
    assert main.wait(timeout=DEADLINE)["StatusCode"] == 143
