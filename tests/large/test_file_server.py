# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A data folder on a file server that squashes root, over two hosts; and a file server that does not answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from agents_lab import Agents, Lab
from controller import SMALL
from nfs_lab import CLIENTS, EXPORT, FOLDER, FileServer

UID = 4321
WIDE: dict[str, Any] = {
    **SMALL,
    "session_cpus": 2,
    "session_cluster_size": 2,
    "session_cluster_mode": "multi-node",
    "session_agents": list(CLIENTS),
    "session_agents_policy": "strict",
    "session_user": {"uid": UID, "gid": UID},
}
LOST = r"session_mounts: '?/srv/nas/\w+'?: .*does not answer on agent[12]"


def mounts(name: str) -> dict[str, Any]:
    return {**WIDE, "session_mounts": [{"source": f"{FOLDER}/{name}", "target": "/data"}]}


@pytest.fixture(scope="module")
def server(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileServer]:
    made = FileServer(lab, tmp_path_factory.mktemp("server"))
    try:
        made.start()
        yield made
    finally:
        made.remove()


@pytest.fixture
def stopped(server: FileServer) -> Iterator[FileServer]:
    """The server, which goes on after the test."""
    try:
        yield server
    finally:
        server.go_on()


@pytest.mark.parametrize("mode", ["700", "755"])
def test_containers_on_two_hosts_write_as_the_user_of_the_session(
    agents: Agents, server: FileServer, mode: str
) -> None:
    """With mode 700, root of the hosts cannot even list the folder."""
    name = f"own{mode}"
    server.say(f"install -d -o {UID} -g {UID} -m {mode} {EXPORT}/{name}")
    data = agents.launched(name, **mounts(name))
    assert data.say("sub1", "echo kept >/data/after; ssh main1 cat /data/after") == "kept"
    agents.terminate(name).check()
    assert server.say(f"cd {EXPORT}/{name}; stat -c '%u %g %n' *; cat after") == f"{UID} {UID} after\nkept\n"


def test_a_folder_of_another_user_is_named_with_what_to_do(agents: Agents, server: FileServer) -> None:
    server.say(f"install -d -o 1 -g 1 -m 755 {EXPORT}/others")
    launched = agents.launch("others", **mounts("others")).check()
    assert f"user (uid {UID}) cannot write to {FOLDER}/others on agent1: set session_user" in " ".join(
        launched.text.split()
    )
    agents.terminate("others").check()


def test_a_lost_server_ends_a_launch_with_one_sentence_and_nothing_is_left(agents: Agents, stopped: FileServer) -> None:
    stopped.say(f"install -d -o {UID} -g {UID} {EXPORT}/lost")
    before = agents.held()
    stopped.stop()
    refused = agents.launch("lost", **mounts("lost"))
    assert refused.code == 2
    assert re.search(LOST, refused.message), refused.text
    assert agents.held() == before


def test_a_repair_with_a_lost_server_names_the_folder(agents: Agents, lab: Lab, stopped: FileServer) -> None:
    stopped.say(f"install -d -o {UID} -g {UID} {EXPORT}/mend")
    before = agents.held()
    agents.launched("mend", **mounts("mend"))
    killed = "docker kill $(docker ps --quiet --filter label=cluster.compute.session.name=mend)"
    lab.shell("agent2", killed).check()
    stopped.stop()
    failed = agents.launch("mend", **mounts("mend"))
    assert failed.code == 2
    assert re.search(LOST, failed.message), failed.text
    stopped.go_on()
    agents.launch("mend", **mounts("mend")).check()
    agents.terminate("mend").check()
    assert agents.held() == before
