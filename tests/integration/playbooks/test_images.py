# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Any image works: ssh needs no option and logs in as the user ``work``."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

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


@pytest.fixture(scope="module")
def sessions(controller: Controller) -> Iterator[dict[str, Session]]:
    """A session of two containers for each image."""
    client, program = controller.client, busybox()
    for name, (passwd, changes) in IMAGES.items():
        files = {"bin/busybox": (program, 0o755)}
        if passwd is not None:
            files["etc/passwd"] = (passwd, 0o644)
        raw = archive(files, {f"bin/{applet}": "busybox" for applet in APPLETS})
        client.import_image_from_data(raw, repository=PREFIX + name, tag="1", changes=[*changes, "ENV PATH=/bin"])

    def launched(name: str) -> Session:
        return controller.launched(name, session_cluster_size=2, session_image=f"{PREFIX}{name}:1")

    try:
        with ThreadPoolExecutor(2) as threads:
            yield dict(zip(IMAGES, threads.map(launched, IMAGES), strict=True))
    finally:
        controller.clean()
        for name in IMAGES:
            client.remove_image(f"{PREFIX}{name}:1", force=True)


@pytest.mark.parametrize("image", IMAGES)
def test_answers_as_work(sessions: dict[str, Session], image: str) -> None:
    session = sessions[image]
    for answer in (session.say("main1", "ssh sub1 id"), session.say("sub1", "id")):
        assert answer.startswith("uid=1000(work) gid=1000(work)")
    assert session.say("sub1", "ssh main1 'pwd; echo $HOME $BACKENDAI_CLUSTER_HOST'").split() == ["/home/work"] * 2 + [
        "main1"
    ]
    assert session.say("main1", "echo x >a && scp -q a sub1:b && ssh sub1 cat b") == "x"
    assert session.containers()["sub1"]["Config"]["Image"] == f"{PREFIX}{image}:1"
