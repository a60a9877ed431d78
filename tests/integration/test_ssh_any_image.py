# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SSH between containers of many kinds of image, which lack what SSH needs or have something that conflicts.

Needs an engine that was made an agent (playbooks/provision_agents.yml) and OpenSSH's clients. Removes all it makes.
"""

from __future__ import annotations

import io
import itertools
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from hostile_image import HOSTILE, SETTINGS
from ssh_lab import PREFIX, REFERENCE, Lab, agent_client, archive, busybox, enter, given, make_plan

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Mount
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError, InputError, StateError
from ansible_collections.cluster.compute.plugins.plugin_utils._client.keys import Identity
from ansible_collections.cluster.compute.plugins.plugin_utils._client.proof import Proof
from ansible_collections.cluster.compute.plugins.plugin_utils._client.ssh import reach

RUNTIME_PATH = "/opt/cluster-compute/bin"

Labs = Callable[..., Lab]


@pytest.fixture(scope="module")
def client(engine_host: str) -> Any:
    return agent_client(engine_host)


@pytest.fixture(scope="module")
def busybox_binary(client: Any) -> bytes:
    container = client.create_container(REFERENCE, ["true"], name=PREFIX + "busybox-source")["Id"]
    try:
        chunks, _stat = client.get_archive(container, RUNTIME_PATH + "/busybox")
        with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as tar:
            member = tar.extractfile("busybox")
            return member.read() if member else b""
    finally:
        client.remove_container(container, force=True)


@pytest.fixture(scope="module")
def images(client: Any, busybox_binary: bytes) -> Iterator[dict[str, str]]:
    """Images that each lack something, or contain something that conflicts."""
    passwd = b"root:x:0:0:root:/root:/bin/sh\nbob:x:1000:1000:Bob:/home/bob:/bin/sh\nsshd:x:22:22::/:/bin/false\n"
    locked = b"root:x:0:0::/root:/bin/sh\nwork:x:500:500::/somewhere:/bin/false\n"
    bare = [("etc", None, 0o755), *busybox(busybox_binary)]
    hostile = [("etc", None, 0o775), ("home", None, 0o700), *HOSTILE, *busybox(busybox_binary)]
    many = {
        "nothing": (archive([("etc", None, 0o755)]), []),
        "busybox": (archive(busybox(busybox_binary)), []),
        "uid65534": (archive(bare), ["USER 65534", 'ENTRYPOINT ["/bin/false"]', "ENV HOME=/nowhere PATH=/bin:/own"]),
        "uid1000": (archive([*bare, ("etc/passwd", passwd, 0o644)]), []),
        "locked": (
            archive([*bare, ("etc/passwd", locked, 0o644), ("etc/shadow", b"root:*:::::::\nwork:!:1:::::1:\n", 0o600)]),
            [],
        ),
        "links": (
            archive(
                [*bare, ("data/users", None, 0o755), ("data/ssh", None, 0o755), ("data/passwd", passwd, 0o644)],
                {"home": "data/users", "etc/ssh": "/data/ssh", "etc/passwd": "../data/passwd", "etc/mpi": "/lost/mpi"},
            ),
            [],
        ),
        "clients": (
            archive([*bare, ("etc/ssh", None, 0o755), ("etc/ssh/ssh_config", b"Host other\n    Port 77\n", 0o644)]),
            [],
        ),
        "hostile": (archive(hostile), [f"ENV {name}={value}" for name, value in SETTINGS.items()]),
    }
    names = {}
    for name, (content, changes) in many.items():
        client.import_image_from_data(content, repository=PREFIX + name, tag="1", changes=changes)
        names[name] = f"{PREFIX}{name}:1"
    yield names
    for name in names.values():
        client.remove_image(name, force=True)


@contextmanager
def labs_in(folder: Path, engine_host: str) -> Iterator[Labs]:
    """Makes sessions, and removes them at the end."""
    made: list[Lab] = []

    def make(image: str, size: int = 2, **options: Any) -> Lab:
        made.append(Lab(make_plan(image, size, **options), folder / "artifacts", engine_host))
        return made[-1]

    try:
        yield make
    finally:
        for lab in made:
            lab.remove()


@pytest.fixture
def labs(client: Any, engine_host: str, tmp_path: Path) -> Iterator[Labs]:
    """Sessions of one test."""
    with labs_in(tmp_path, engine_host) as make:
        yield make


@pytest.fixture(scope="module")
def shared_labs(client: Any, engine_host: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Labs]:
    """Sessions of several tests, which leave them at work."""
    with labs_in(tmp_path_factory.mktemp("shared"), engine_host) as make:
        yield make


def by_both(lab: Lab, by_pid_1: str) -> Lab:
    """A running session. In one container, PID 1 has unpacked the files. In the other, the engine did so before the start."""
    others = [one.hostname for one in lab.plan.containers if one.hostname != by_pid_1]
    lab.create().keep()
    lab.install(others)
    lab.start(others)
    assert lab.start_with_files() == [by_pid_1]
    return lab.reached()


# Each image with the container whose files PID 1 unpacks.
IMAGES = dict(
    zip(
        ("nothing", "busybox", "uid65534", "uid1000", "locked", "links", "clients", "hostile"),
        itertools.cycle(("main1", "sub1")),
    )
)


@pytest.fixture(scope="module")
def pairs(shared_labs: Labs, images: dict[str, str]) -> Callable[[str], Lab]:
    """A running session of two for each image, made for the first test that asks for it."""
    return lru_cache(None)(lambda name: by_both(shared_labs(images[name]), IMAGES[name]))


@pytest.mark.parametrize("name", IMAGES)
def test_any_image(pairs: Callable[[str], Lab], name: str) -> None:
    lab = pairs(name)

    assert reach(lab.door(), Proof.direct(["sub1"]), 30) == ["main1", "sub1"]
    for rank, (host, other) in enumerate((("main1", "sub1"), ("sub1", "main1"))):
        answer = lab.ssh(host, f"{RUNTIME_PATH}/ssh {other} {RUNTIME_PATH}/id")
        assert answer == "uid=1000(work) gid=1000(work) groups=1000(work)\n"
        assert lab.ssh(host, "cd; pwd; echo $PATH").split() == ["/home/work", given(lab, rank)["PATH"]]


def test_symlinks_of_an_image_stay_symlinks(pairs: Callable[[str], Lab]) -> None:
    lab = pairs("links")
    for host in ("main1", "sub1"):
        found = lab.ssh(
            host, "ls -ld /home /etc/ssh; cat /data/passwd; ls /data/ssh /lost/mpi; ls -ld /data/users/work"
        )
        assert "/home -> data/users" in found
        assert "/etc/ssh -> /data/ssh" in found
        assert "work:" not in found.split("ssh_config")[0]  # written in place of the link, never through it
        assert "ssh_known_hosts" in found
        assert "hostfile" in found


def test_an_image_s_own_client_configuration_goes_on_working(pairs: Callable[[str], Lab]) -> None:
    lab = pairs("clients")

    assert "port 77" in lab.ssh("main1", f"{RUNTIME_PATH}/ssh -G other").splitlines()
    assert "stricthostkeychecking true" in lab.ssh("main1", f"{RUNTIME_PATH}/ssh -G sub1").splitlines()


def test_what_an_image_says_to_its_own_programs_is_not_for_those_of_the_runtime(pairs: Callable[[str], Lab]) -> None:
    lab = pairs("hostile")

    for host in ("sub1", "localhost", "127.0.0.1"):
        answer = lab.ssh(
            "main1",
            f"ssh {host} hostname 2>&1; echo one >/tmp/one; scp -q /tmp/one {host}:/var/tmp/two 2>&1; ssh {host} cat /var/tmp/two",
        )
        assert answer.split() == ["main1" if host != "sub1" else host, "one"]
    assert sorted(lab.ssh("main1", "everywhere hostname 2>&1").splitlines()) == ["main1: main1", "sub1: sub1"]
    assert lab.ssh("main1", "ssh elsewhere || true") == "not OpenSSH\n"
    given_to_users = set(lab.ssh("main1", "ssh sub1 env").splitlines())
    assert given_to_users >= {f"{name}={value}" for name, value in SETTINGS.items()}
    assert not lab.engine.has_path(lab.plan.main.name, "/spawned")


def test_a_person_sees_a_prompt_in_busybox(pairs: Callable[[str], Lab]) -> None:
    assert "work@main1:~$ " in enter(pairs("busybox"), "main1")


def test_a_mounted_home_is_left_alone(labs: Labs, images: dict[str, str], tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    lab = labs(images["busybox"], mounts=[Mount(str(shared), "/home/work")]).up()

    assert lab.ssh("main1", f"{RUNTIME_PATH}/ssh sub1 hostname") == "sub1\n"
    assert list(shared.iterdir()) == []


def test_a_mount_over_what_ssh_needs_is_refused(labs: Labs, images: dict[str, str], tmp_path: Path) -> None:
    lab = labs(images["links"], 1, mounts=[Mount(str(tmp_path), "/data/ssh")]).create()

    with pytest.raises(ComputeError, match="/etc/ssh/ssh_config lies below the mount /data/ssh"):
        lab.install()


def test_a_home_that_a_mount_made_belongs_to_the_user(labs: Labs, images: dict[str, str], tmp_path: Path) -> None:
    lab = labs(images["busybox"], 1, mounts=[Mount(str(tmp_path), "/home/work/data")]).up()

    assert lab.ssh("main1", "stat -c %U . .ssh").split() == ["work", "work"]


def test_check_mode_shows_changes_and_makes_none(labs: Labs, images: dict[str, str]) -> None:
    lab = labs(images["busybox"])
    planned = lab.install(check=True)
    lab.create()
    created = lab.install(check=True)

    assert planned["installed"] == created["installed"] == ["main1", "sub1"]
    assert planned["changed"]
    assert "0600 0:0 /etc/cluster-compute/ssh_host_ed25519_key" in created["diff"]["after"]
    assert not lab.engine.has_path(lab.plan.main.name, "/etc/cluster-compute")
    assert [lab.install()["changed"], lab.install()["changed"]] == [True, False]


def listing(lab: Lab, client: Any, folder: str) -> list[tuple[str, int, int, int, int]]:
    """What is below a folder of sub1: path, mode, owner, group and size. The format of a private key has a random part."""
    stream, _stat = client.get_archive(lab.plan.containers[1].name, folder)
    with tarfile.open(fileobj=io.BytesIO(b"".join(stream))) as tar:
        return sorted((one.name, one.mode, one.uid, one.gid, one.size) for one in tar)


Listings = dict[str, list[tuple[str, int, int, int, int]]]
FOLDERS = ("/etc/ssh", "/etc/mpi", "/home/work")


@pytest.fixture(scope="module")
def unpacked(shared_labs: Labs, images: dict[str, str], client: Any) -> tuple[Listings, Listings]:
    """What is below each folder if PID 1 has unpacked the files of a session, and if the engine has."""
    lab = shared_labs(images["busybox"]).up()
    by_pid_1 = {folder: listing(lab, client, folder) for folder in FOLDERS}
    for container in lab.plan.containers:
        lab.engine.remove(container.name)
    lab.up(by_engine=True)
    return by_pid_1, {folder: listing(lab, client, folder) for folder in FOLDERS}


@pytest.mark.parametrize("folder", FOLDERS)
def test_pid_1_and_the_engine_unpack_the_same(unpacked: tuple[Listings, Listings], folder: str) -> None:
    by_pid_1, by_engine = unpacked
    assert by_engine[folder] == by_pid_1[folder]


def test_a_container_without_files_says_so_and_gets_them_with_the_next_start(
    labs: Labs, images: dict[str, str], client: Any
) -> None:
    """A launch that is killed between the start and the files leaves such a container: its standard input ends."""
    lab = labs(images["busybox"]).create().keep()
    with lab.engine.standard_input(lab.plan.containers[1].name):
        lab.start(["sub1"])
    assert client.wait(lab.plan.containers[1].name)["StatusCode"] == 1
    assert "the files of the session did not arrive" in lab.engine.logs(lab.plan.containers[1].name)

    assert lab.start_with_files() == ["main1", "sub1"]
    assert reach(lab.door(), Proof.direct(["sub1"]), 30) == ["main1", "sub1"]
    client.stop(lab.plan.containers[1].name, timeout=1)
    assert lab.start_with_files() == []
    assert reach(lab.door(), Proof.direct(["sub1"]), 30) == ["main1", "sub1"]


def test_a_missing_container_is_named(labs: Labs, images: dict[str, str]) -> None:
    lab = labs(images["busybox"]).create(["main1"])

    with pytest.raises(StateError, match="sub1: agent1 does not have this container; create it first"):
        lab.install()
    with pytest.raises(InputError, match="containers: 'sub7': must name containers"):
        lab.install(["sub7"])


def test_a_container_that_is_created_again_has_the_same_host_key(pairs: Callable[[str], Lab]) -> None:
    lab = pairs("busybox")
    lab.ssh("main1", f"{RUNTIME_PATH}/ssh sub1 true")

    lab.engine.remove(lab.plan.containers[1].name)
    lab.create(["sub1"])
    assert lab.install()["installed"] == ["sub1"]
    lab.start(["sub1"])

    pinned = f"{RUNTIME_PATH}/ssh -F none -i .ssh/id_ed25519 -o StrictHostKeyChecking=yes -o ConnectionAttempts=30 "
    only_pinned = "-o HostKeyAlgorithms=ssh-ed25519 -o GlobalKnownHostsFile=/dev/null sub1 hostname"
    assert lab.ssh("main1", pinned + only_pinned) == "sub1\n"


def test_ssh_works_after_a_restart(pairs: Callable[[str], Lab], client: Any) -> None:
    lab = pairs("busybox")
    for container in lab.plan.containers:
        client.restart(container.name, timeout=1)

    assert reach(lab.door(), Proof.direct(["sub1"]), 30) == ["main1", "sub1"]


def test_a_foreign_host_key_is_refused(labs: Labs, images: dict[str, str]) -> None:
    lab = labs(images["busybox"]).create()
    lab.install(["main1"])
    lab.install(["sub1"], identity=Identity(b"\1" * 32, lab.plan.session.id))
    lab.keep().start()

    with pytest.raises(RuntimeError, match="Host key verification failed"):
        lab.ssh("main1", f"{RUNTIME_PATH}/ssh -o ConnectionAttempts=30 sub1 true")
    with pytest.raises(
        ComputeError, match="sub1 does not accept ssh connections from main1: Host key verification failed"
    ):
        reach(lab.door(), Proof.direct(["sub1"]), 30)


def test_verify_names_the_container_that_does_not_answer(labs: Labs, images: dict[str, str]) -> None:
    lab = labs(images["busybox"], 3).up()
    lab.engine.stop(lab.plan.containers[2].name, 1)

    with pytest.raises(ComputeError, match=r"sub2 does not accept ssh connections from main1: .*sub2.*\.$"):
        reach(lab.door(), Proof.direct(["sub1", "sub2"]), 6)
    lab.engine.stop(lab.plan.main.name, 1)
    with pytest.raises(ComputeError, match=r"main1 at 127\.0\.0\.1, port .* does not accept ssh connections"):
        reach(lab.door(), Proof.direct(["sub1", "sub2"]), 1)


@pytest.fixture(scope="module")
def running(shared_labs: Labs) -> Lab:
    """A session whose shells each test lets print something else."""
    return shared_labs(REFERENCE).up()


@contextmanager
def chatty(lab: Lab, ranks: Sequence[int], chatter: bytes) -> Iterator[None]:
    """The shells of these containers run this first."""
    names = [lab.plan.containers[rank].name for rank in ranks]
    for name in names:
        lab.engine.put_archive(name, "/home/work", archive([(".bashrc", chatter, 0o644)]))
    try:
        yield
    finally:
        for name in names:
            lab.engine.put_archive(name, "/home/work", archive([(".bashrc", b"", 0o644)]))


# What a shell inside the login's reads, as that of `everywhere`, and every script of bash.
FAILING = b"printf 'set -eu; false' >~/.failing; export BASH_ENV=~/.failing\n"


def test_what_shells_print_does_not_disturb_the_verification(running: Lab) -> None:
    chatter = b"echo; for i in 1 2 3; do echo no sub1 refused $i; done; echo -n unfinished; echo words >&2\n"
    with chatty(running, (0, 1), chatter):
        assert reach(running.door(), Proof.direct(["sub1"]), 30) == ["main1", "sub1"]


@pytest.mark.parametrize(
    ("rank", "chatter", "message"),
    [
        (0, b"while :; do echo welcome; done\n", "runs no command within 8 seconds"),
        (0, b"sleep 1000\n", "runs no command within 8 seconds"),
        (
            0,
            b"echo no logins today >&2; exit 3\n",
            r"ends with exit code 3 before it runs a command \(no logins today\)",
        ),
        (0, FAILING, r"ends with exit code 1 before it runs a command: check .bashrc and BASH_ENV"),
        (
            1,
            FAILING,
            "^sub1 does not accept ssh connections from main1: its shell answers nothing: check .bashrc and BASH",
        ),
        (1, b"yes\n", "^sub1 does not accept ssh connections from main1: y"),
        (1, b"sleep 1000\n", "^sub1 does not accept ssh connections from main1: its shell answers nothing"),
    ],
)
def test_a_shell_that_keeps_logins_from_working_is_named(running: Lab, rank: int, chatter: bytes, message: str) -> None:
    with chatty(running, (rank,), chatter), pytest.raises(ComputeError, match=message):
        reach(running.door(), Proof.direct(["sub1"]), 8)


def test_another_ssh_that_comes_first_and_does_not_connect_is_named_with_what_differs(running: Lab) -> None:
    first = b"PATH=/usr/bin:$PATH\n"
    with chatty(running, (0,), first):
        assert reach(running.door(), Proof.direct(["sub1"]), 60) == ["main1", "sub1"]
    of_home = b"mkdir -p ~/.ssh; printf 'Host *\\n  Port 77\\n' >~/.ssh/config; chmod 600 ~/.ssh/config\n"
    message = "the first ssh in the PATH .* /usr/bin/ssh: .*refused; /home/work/.ssh/config:2: Port 77"
    with chatty(running, (0,), first + of_home), pytest.raises(ComputeError, match=message):
        reach(running.door(), Proof.direct(["sub1"]), 60)
