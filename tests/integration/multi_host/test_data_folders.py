# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A data folder over three hosts: the same in all containers, or refused."""

from __future__ import annotations

from agents_lab import NAMES, Agents, Lab
from controller import SMALL

# A host of the lab has two CPUs, so each host holds a single container.
WIDE = {"session_cpus": 2, "session_cluster_size": 3}


def test_a_folder_that_all_hosts_share_is_the_same_in_all_containers(agents: Agents) -> None:
    mounts = [{"source": "/srv/shared", "target": "/data"}]
    folder = agents.lab.folder / "shared"
    folder.chmod(0o777)
    # Two hosts could hold it.
    apart = {"session_cluster_size": 3, "session_cpus": 0.8, "session_strategy": "spread"}
    multi = {"session_cluster_mode": "multi-node", "session_mounts": mounts}
    data = agents.launched("shared", **{**SMALL, **apart, **multi})
    assert [container["agent"] for container in data.document["containers"]] == list(NAMES)
    assert data.say("sub2", "echo kept >/data/after; ssh sub1 cat /data/after") == "kept"
    agents.terminate("shared").check()
    assert (folder / "after").read_text() == "kept\n"
    assert [path.name for path in folder.iterdir()] == ["after"]


def test_a_folder_that_differs_on_a_host_is_refused(agents: Agents, lab: Lab) -> None:
    """The message names the host, and nothing is created."""
    mounts = [{"source": "/srv/shared", "target": "/data"}]
    lab.shell("agent3", "mount -t tmpfs tmpfs /srv/shared").check()
    try:
        before = agents.held()
        refused = agents.launch(
            "torn", **{**SMALL, **WIDE, "session_cluster_mode": "multi-node", "session_mounts": mounts}
        )
        assert refused.code == 2
        assert "session_mounts: /srv/shared: on agent3 it is another directory than on agent1" in refused.message
        assert agents.held() == before
    finally:
        lab.shell("agent3", "umount /srv/shared").check()
