# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Any image works: ssh needs no option and logs in as the user ``work``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from controller import Controller, Session
from engine_lab import archive, busybox

PREFIX = "cluster-compute-test/playbooks-"
APPLETS = ("sh", "id", "cat", "false")
ROOT_ONLY = b"root:x:0:0:root:/root:/bin/sh\n"
WITH_UBUNTU = ROOT_ONLY + b"ubuntu:x:1000:1000:Ubuntu:/home/ubuntu:/bin/sh\n"

# By name of the image: its /etc/passwd, if any, and its changes.
IMAGES: dict[str, tuple[bytes | None, list[str]]] = {
    "busybox": (ROOT_ONLY, []),
    "other-user": (ROOT_ONLY, ["USER 65534:65534"]),
    "ends-at-once": (ROOT_ONLY, ['ENTRYPOINT ["/bin/false"]']),
    "no-passwd": (None, []),
    "uid-taken": (WITH_UBUNTU, ["USER ubuntu", "ENV HOME=/home/ubuntu"]),
}


# The container of each image: a role for each but the first.
HOSTS = {name: f"{name}1" if number else "main1" for number, name in enumerate(IMAGES)}


def reference(name: str) -> str:
    return f"{PREFIX}{name}:1"


@pytest.fixture(scope="module")
def session(controller: Controller) -> Iterator[Session]:
    """A session with a container of each image."""
    client, program = controller.client, busybox()
    for name, (passwd, changes) in IMAGES.items():
        files = {"bin/busybox": (program, 0o755)}
        if passwd is not None:
            files["etc/passwd"] = (passwd, 0o644)
        raw = archive(files, {f"bin/{applet}": "busybox" for applet in APPLETS})
        client.import_image_from_data(raw, repository=PREFIX + name, tag="1", changes=[*changes, "ENV PATH=/bin"])

    first, *others = IMAGES
    roles = [{"name": name, "image": reference(name)} for name in others]
    try:
        yield controller.launched("any-image", session_image=reference(first), session_roles=roles)
    finally:
        controller.clean()
        for name in IMAGES:
            client.remove_image(reference(name), force=True)


@pytest.mark.parametrize("image", IMAGES)
def test_answers_as_work(session: Session, image: str) -> None:
    """As a client and as a server of the container of the next image."""
    hosts = [*HOSTS.values()] * 2
    host, other = HOSTS[image], hosts[hosts.index(HOSTS[image]) + 1]
    for answer in (session.say(host, "id"), session.say(other, f"ssh {host} id")):
        assert answer.startswith("uid=1000(work) gid=1000(work)")
    seen = session.say(other, f"ssh {host} 'pwd; echo $HOME $BACKENDAI_CLUSTER_HOST'")
    assert seen.split() == ["/home/work", "/home/work", host]
    for source, target in ((host, other), (other, host)):
        assert session.say(source, f"echo x >a && scp -q a {target}:b && ssh {target} cat b") == "x"
    assert session.containers()[host]["Config"]["Image"] == reference(image)
