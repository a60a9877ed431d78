# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a container: the input of PID 1, whatever its image contains."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from samples import plan, request

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.archives import Entry
from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh.container_files import (
    ImageContents,
    SshFiles,
    file_entries,
)
from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh.rootfs import Tree
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Plan

FOLDER = "/etc/cluster-compute/"
BATCH = plan(request(cluster_size=2, bootstrap="prepare", command="train", command_timeout=3600))


def entries(made: Plan, rank: int, user_key: str = "") -> dict[str, Entry]:
    """The files of one container, by path."""
    hosts = {one.hostname: ("key", "certificate") for one in made.containers}
    texts = ("authority", "known", "pinned", "authorized", "key", "public", "client", "hostfile")
    bundle = SshFiles(*texts, hosts, {"board": "0f"}, user_key=user_key)
    contents = ImageContents(Tree(lambda _path: None))
    listed = file_entries(bundle, made.containers[rank], made.session, {"PATH": "/bin"}, contents)
    return {one.path: one for one in listed}


def test_the_key_for_a_login_is_in_the_home_of_a_main1_with_apps() -> None:
    """It is left out where the home is a mount, as all files of a home."""
    made = plan(request(cluster_size=2))
    key = entries(made, 0, "login")["/home/work/id_container"]
    assert (key.content, key.mode, key.uid, key.optional) == (b"login", 0o600, 1000, True)
    assert "/home/work/id_container" not in entries(made, 1, "login")
    assert "/home/work/id_container" not in entries(made, 0)


@pytest.mark.parametrize(
    ("asked", "restarts"),
    [
        ({"command": "train"}, b""),
        ({"command": "train", "on_failure": "restart"}, b"3\n"),
        ({"command": "train", "on_failure": "restart", "restarts": 0}, b"0\n"),
        ({"on_failure": "restart"}, b""),
    ],
)
def test_a_command_is_started_again_if_the_session_asks_for_it(asked: dict[str, Any], restarts: bytes) -> None:
    made = plan(request(cluster_size=2, **asked))
    assert entries(made, 0)[FOLDER + "restarts"].content == restarts
    assert entries(made, 1)[FOLDER + "restarts"].content == b""


@pytest.mark.parametrize(
    ("made", "rank", "scripts"),
    [
        (BATCH, 0, {"bootstrap": b"prepare", "command": b"train", "timeout": b"3600\n"}),
        (BATCH, 1, {"bootstrap": b"prepare", "command": b"", "timeout": b""}),
        (plan(request()), 0, {"bootstrap": b"", "command": b"", "timeout": b"", "volumes": b""}),
    ],
    ids=["main1", "sub1", "none"],
)
def test_scripts_are_written_over_those_of_an_image(made: Plan, rank: int, scripts: dict[str, bytes]) -> None:
    """An image may be committed from another session's container: without an own file, that session's file would remain."""
    written = entries(made, rank)
    assert {name: written[FOLDER + name].content for name in scripts} == scripts


def test_what_a_container_has_done_lies_in_a_folder_of_its_own() -> None:
    for rank, container in enumerate(BATCH.containers):
        written = entries(BATCH, rank)
        assert written[FOLDER + "container"].content == container.id.encode() + b"\n"
        assert written[FOLDER + "run/" + container.id].is_folder


def test_a_login_mentions_torchrun_in_a_session_of_several_containers() -> None:
    """Only at a terminal, only without the variables of torchrun, and only where there is a torchrun."""
    several, single = (
        entries(made, 0)["/etc/profile.d/00-cluster-compute.sh"].content for made in (BATCH, plan(request()))
    )
    assert single == b"PATH=/bin\nexport PATH\n"
    assert several is not None
    for shell, shown in ((["sh", "-i"], 1), (["sh"], 0), (["env", "PET_NNODES=2", "sh", "-i"], 0)):
        script = "torchrun() { :; }\n" + several.decode() + "exit\n"
        done = subprocess.run(shell, input=script, capture_output=True, text=True, check=False)
        assert done.stdout.count("session_torchrun makes it use all 2") == shown
    absent = subprocess.run(["sh", "-i"], input=several.decode(), capture_output=True, text=True, check=False)
    assert absent.stdout == ""


def test_the_containers_of_a_role_have_its_command() -> None:
    made = plan(
        request(command="train", on_failure="restart", roles=[{"name": "ps", "command": "serve"}, {"name": "data"}])
    )
    found = [entries(made, rank) for rank in range(3)]
    commands = [(files[FOLDER + "command"].content, files[FOLDER + "restarts"].content) for files in found]
    assert commands == [(b"train", b"3\n"), (b"serve", b"3\n"), (b"", b"")]


def test_only_the_first_container_of_a_role_has_its_apps_and_their_tokens() -> None:
    board = {"name": "board", "port": 6006, "command": "exec board"}
    made, other = (plan(request(roles=[{"name": "ps", "size": 2, "apps": apps}])) for apps in ([board], []))
    found = [entries(made, rank) for rank in range(3)]
    lists = [(files[FOLDER + "apps"].content or b"").split(b" ")[0] for files in found]
    assert lists == [b"end\n", b"board", b""]
    assert [path for files in found for path in files if path.endswith("/token")] == [FOLDER + "app/board/token"]
    equipped = [[entries(one, rank)[FOLDER + "equipped"].content for rank in range(3)] for one in (made, other)]
    assert [mine == theirs for mine, theirs in zip(*equipped, strict=True)] == [True, False, True]
