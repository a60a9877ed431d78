# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An image of a session's container has what was installed, and none of the session's secrets."""

from __future__ import annotations

import gzip
import io
import json
import secrets as random
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from controller import Controller, Done, Session, run_playbook
from docker.errors import ImageNotFound

IMAGE = "cluster-compute-test/playbooks-kept:1"
OWNER = "cluster.compute.origin.owner"
SHELL = "/opt/cluster-compute/bin/sh"
KEYS = (
    *("home/work/.ssh/id_ed25519", "home/work/id_container"),
    *("etc/cluster-compute/id_cluster", "etc/cluster-compute/ssh_host_ed25519_key"),
)
# What stands for each kind that is no key; the last is in the configuration of the container.
KINDS = ("app-token", "secret", "command", "history", "temporary", "known-host", "environment")
PLANTED = {kind: f"{kind}-{random.token_hex(12)}" for kind in KINDS}
INSTALL = """
set -e
export PATH=/opt/cluster-compute/bin:$PATH
mkdir -p /usr/local/lib/tool && echo installed >/usr/local/lib/tool/tool.py
ln /usr/local/lib/tool/tool.py /usr/local/lib/tool/again.py
ln -s tool.py /usr/local/lib/tool/link.py
echo 'tool:x:870:870::/nonexistent:/bin/false' >>/etc/passwd
rm -f /etc/motd /etc/issue
ln /home/work/.ssh/id_ed25519 /usr/local/lib/a-hard-link
ln /etc/cluster-compute/app/web/token /usr/local/lib/z-hard-link
mknod /usr/local/lib/device c 1 3 || true
: >/usr/local/lib/tool/.wh.link.py
dd if=/dev/urandom of=/usr/local/lib/tool/large bs=1M count=12 2>/dev/null
"""
USE = """
echo '{history}' >~/.bash_history
mkdir -p ~/.local/share/jupyter/runtime && echo '{app-token}' >~/.local/share/jupyter/runtime/server.json
echo '{temporary}' >/tmp/file && echo '{temporary}' >/var/tmp/file
echo mine >~/mine
"""


def as_root(session: Session, script: str) -> str:
    """The output of a script in main1."""
    client, main = session.controller.client, session.containers()["main1"]["Id"]
    made = client.exec_create(main, [SHELL, "-c", script], user="0:0")
    text = client.exec_start(made["Id"]).decode(errors="replace")
    assert client.exec_inspect(made["Id"])["ExitCode"] == 0, text
    return str(text)


@pytest.fixture(scope="module")
def built(controller: Controller) -> Iterator[Session]:
    """A session in which something is installed, with each kind of secret."""
    session = controller.launched(
        "built",
        session_apps=[{"name": "web", "port": 8000, "command": "exec sleep 3600", "ready": 22}],
        session_secrets=[{"name": "key", "value": PLANTED["secret"], "environment": "MY_KEY"}],
        session_environment={"PLANTED": PLANTED["environment"]},
        session_command=f"echo {PLANTED['command']}; sleep 3600",
    )
    as_root(session, INSTALL + f"echo '{PLANTED['known-host']}' >>/etc/ssh/ssh_known_hosts")
    script = USE
    for kind, text in PLANTED.items():
        script = script.replace("{%s}" % kind, text)
    session.say("main1", script)
    try:
        yield session
    finally:
        for image in controller.client.images(quiet=True, filters={"label": f"{OWNER}={controller.owner}"}):
            controller.client.remove_image(image, force=True)


@pytest.fixture(scope="module")
def needles(built: Session) -> dict[str, bytes]:
    """What no image may contain, by kind."""
    found = {kind: text.encode() for kind, text in PLANTED.items()}
    for path in KEYS:
        key = as_root(built, f"cat /{path}")
        assert "PRIVATE KEY" in key
        found[path] = key.splitlines()[2].encode()
    found["token"] = as_root(built, "cat /etc/cluster-compute/app/web/token").strip().encode()
    return found


def commit(controller: Controller, *arguments: str, **variables: Any) -> Done:
    given = {"session_name": "built", "session_commit_image": IMAGE, **variables}
    return controller.play("session_commit", *arguments, **given)


def contents(client: Any, image: str) -> Iterator[bytes]:
    """All that an image has: what the engine says of it, and each file of its archive."""
    yield json.dumps([client.inspect_image(image), client.history(image)]).encode()
    with tarfile.open(fileobj=io.BytesIO(b"".join(client.get_image(image)))) as archive:
        for member in archive:
            file = archive.extractfile(member)
            text = file.read() if file else b""
            yield gzip.decompress(text) if text.startswith(b"\x1f\x8b") else text


def kinds_in(client: Any, image: str, needles: dict[str, bytes]) -> set[str]:
    text = b"\n".join(contents(client, image))
    return {kind for kind, needle in needles.items() if needle in text}


def identity(client: Any) -> str:
    try:
        return str(client.inspect_image(IMAGE)["Id"])
    except ImageNotFound:
        return ""


def own_images(controller: Controller) -> list[str]:
    """The images of this owner, with and without a name."""
    return list(controller.client.images(quiet=True, filters={"label": f"{OWNER}={controller.owner}"}))


def test_the_engine_s_own_commit_keeps_secrets(
    controller: Controller, built: Session, needles: dict[str, bytes]
) -> None:
    """What the scan of this file finds in an image that is made by hand."""
    image = controller.client.commit(built.containers()["main1"]["Id"])["Id"]
    try:
        found = kinds_in(controller.client, image, needles)
    finally:
        controller.client.remove_image(image)
    assert found == set(needles) - {"secret"}


def test_a_check_changes_nothing_and_says_the_size(controller: Controller, built: Session) -> None:
    said = commit(controller, "--check").check().text
    assert f"Image {IMAGE} of main1: up to " in said
    assert "on top of " in said
    assert identity(controller.client) == ""


@pytest.mark.parametrize("squash", [False, True])
def test_no_secret_is_in_any_layer_or_configuration(
    controller: Controller, built: Session, needles: dict[str, bytes], *, squash: bool
) -> None:
    client = controller.client
    assert commit(controller, session_commit_squash=squash).check().changed == 1
    assert kinds_in(client, IMAGE, needles) == set()
    image = client.inspect_image(IMAGE)
    base = client.inspect_image(built.containers()["main1"]["Image"])
    assert image["RootFS"]["Layers"][:-1] == ([] if squash else base["RootFS"]["Layers"])
    labels = image["Config"].pop("Labels")
    assert labels[OWNER] == controller.owner
    assert labels["cluster.compute.origin.session"] == built.id
    assert not [name for name in labels if name.startswith(("cluster.compute.session", "cluster.compute.container"))]
    inherited = base["Config"].pop("Labels") or {}
    assert {name: text for name, text in labels.items() if name in inherited} == inherited
    for field in ("Env", "Cmd", "Entrypoint", "User", "WorkingDir"):
        assert image["Config"].get(field) == base["Config"].get(field), field
    # The image that had the name before is gone.
    assert own_images(controller) == [image["Id"]]


def test_a_session_from_the_image_has_what_was_installed(controller: Controller, built: Session) -> None:
    commit(controller).check()
    other = controller.launched("other", session_image=IMAGE, session_cluster_size=2)
    tool = "cd /usr/local/lib/tool && cat tool.py again.py link.py && sha256sum large && grep -c ^tool: /etc/passwd"
    assert other.say("main1", tool) == built.say("main1", tool)
    assert other.say("sub1", "cat ~/mine; ls -a /tmp; test ! -e /etc/issue && echo gone").split()[:1] == ["mine"]
    assert "gone" in other.say("sub1", "test ! -e /etc/issue && test ! -e ~/.bash_history && echo gone")
    missing = "for one in a-hard-link z-hard-link device; do test ! -e /usr/local/lib/$one || echo $one; done"
    assert other.say("main1", missing) == ""
    for path in KEYS:
        assert as_root(other, f"cat /{path} || :") != as_root(built, f"cat /{path}")
    assert PLANTED["known-host"] not in as_root(other, "cat /etc/ssh/ssh_known_hosts")
    controller.terminate("other").check()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A directory on a file system of 8 MB, less than what is installed."""
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(tmp_path)], check=False)
    if mounted.returncode:
        pytest.skip("this test needs the right to mount a file system")
    try:
        yield tmp_path
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_full_disk_is_refused(controller: Controller, built: Session, small_disk: Path) -> None:
    before = own_images(controller)
    command = controller.command("session_commit", session_name="built", session_commit_image=IMAGE)
    done = run_playbook(command, {**controller.environment, "HOME": str(small_disk)})
    assert f"free in {small_disk}, but image {IMAGE} needs up to" in done.message
    assert own_images(controller) == before


def test_what_an_engine_loads_for_a_killed_commit_goes_with_the_end_of_its_session(controller: Controller) -> None:
    """Such an image has no name, and may be complete only after the next commit."""
    client, other = controller.client, controller.launched("late")
    base = other.containers()["main1"]["Image"]
    commit(controller, session_name=other.name).check()
    client.tag(base, *IMAGE.split(":"), force=True)
    client.remove_image(IMAGE)
    assert len(own_images(controller)) == 1
    controller.terminate("late").check()
    assert own_images(controller) == []


def test_a_killed_controller_leaves_nothing(controller: Controller, built: Session) -> None:
    """The image of this name stays what it was, or is the whole new image."""
    commit(controller).check()
    controller.killed("session_commit", f"Image {IMAGE} of main1", session_name="built", session_commit_image=IMAGE)
    assert identity(controller.client)
    assert [path for path in controller.home.iterdir() if not path.name.startswith(".")] == []
    commit(controller).check()
    assert own_images(controller) == [identity(controller.client)]
    assert len(built.containers()) == 1
