# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A session whose root file systems are read-only: it works, and leaves no volume behind."""

from __future__ import annotations

from controller import Controller, Session, run

SYSTEM = ("/usr/x", "/bin/x", "/lib/x", "/opt/x", "/root/x", "/var/lib/x", "/x")


def own_volumes(session: Session) -> set[str]:
    """The volumes of its containers, without the SSH runtime."""
    mounts = [mount for container in session.containers().values() for mount in container["Mounts"]]
    return {mount["Name"] for mount in mounts if mount["RW"]}


def test_the_files_of_the_image_stay_as_they_are(controller: Controller) -> None:
    asked = {"session_cluster_size": 2, "session_read_only_root": True}
    session = controller.launched("solid", **asked)
    assert session.say("main1", "ssh sub1 hostname") == "sub1"
    for host, container in session.containers().items():
        tried = [f"touch {path} 2>/dev/null && echo {path}" for path in SYSTEM]
        as_root = ["docker", "-H", controller.host, "exec", "--user=0", container["Id"]]
        assert run([*as_root, "sh", "-c", "; ".join(tried)]).text == ""
        session.say(host, "touch ~/x /tmp/x /var/tmp/x && echo 'echo runs' >/tmp/x && chmod +x /tmp/x && /tmp/x")

    volumes = own_volumes(session)
    assert len(volumes) == 8
    assert controller.launch("solid", **asked).check().changed == 0
    assert own_volumes(session) == volumes

    controller.terminate("solid").check()
    assert not volumes & {volume["Name"] for volume in controller.client.volumes()["Volumes"] or []}
    assert controller.engine() == {}
