# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A data folder on a file server that squashes root, over two hosts; and a file server that does not answer."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents_lab import Agents, Lab
from controller import SMALL, Done, Session
from nfs_lab import CLIENTS, EXPORT, FOLDER, FileServer

UID = 4321
NUMBERS = itertools.count()
WIDE: dict[str, Any] = {
    **SMALL,
    "session_cpus": 2,
    "session_cluster_size": 2,
    "session_cluster_mode": "multi-node",
    "session_agents": list(CLIENTS),
    "session_agents_policy": "strict",
    "session_user": {"uid": UID, "gid": UID},
}
WAITS = r"wait\.sub1: on agent[12] a program waits for /srv/nas/wait, which does not answer; run the end again when its file server is back"
LOST = r"session_mounts: '?/srv/nas/\w+'?: .*does not answer on agent[12]"


def words(done: Done) -> str:
    """The output in one line, as warnings are broken into lines."""
    return " ".join(done.text.split())


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


def test_a_folder_that_a_host_has_mounted_read_only_is_named_with_what_to_do(
    agents: Agents, lab: Lab, server: FileServer
) -> None:
    server.say(f"install -d -o {UID} -g {UID} {EXPORT}/fixed; echo kept >{EXPORT}/fixed/file")
    script = f"mount --internal-only --options remount,%s {FOLDER}"
    try:
        for agent in CLIENTS:
            lab.shell(agent, script % "ro").check()
        launched = agents.launch("fixed", **mounts("fixed")).check()
        assert f"No container can write to {FOLDER}/fixed: agent1 has mounted it read-only; mount it there" in words(
            launched
        )
        refused = agents.play(
            "session_exec", session_name="fixed", session_exec_command="cat /data/file; echo new >/data/new"
        )
        assert "kept" in refused.text
        assert "Read-only file system" in refused.text
    finally:
        for agent in CLIENTS:
            lab.shell(agent, script % "rw").check()
    agents.terminate("fixed").check()


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


@pytest.fixture
def left(agents: Agents, stopped: FileServer) -> Iterator[Session]:
    """A session that runs and whose server is lost. After the test, the server is back and the session has ended."""
    name = f"left{next(NUMBERS)}"
    stopped.say(f"install -d -o {UID} -g {UID} {EXPORT}/{name}; echo kept >{EXPORT}/{name}/file")
    made = agents.launched(name, **mounts(name))
    stopped.stop()
    try:
        yield made
    finally:
        stopped.go_on()
        agents.terminate(name).check()


def lost(session: Session, agent: str) -> str:
    return f"session_mounts: {FOLDER}/{session.name}: it does not answer on {agent}; check the file server"


def test_a_list_with_a_lost_server_names_the_folder_and_shows_the_session(agents: Agents, left: Session) -> None:
    listed = agents.play("sessions", session_name=left.name).check()
    assert all(lost(left, agent) in words(listed) for agent in CLIENTS)
    assert re.search(rf"{left.name} .*RUNNING", listed.text), listed.text
    assert "does not answer at" not in listed.text


def test_a_pass_over_the_queue_with_a_lost_server_goes_on(agents: Agents, left: Session) -> None:
    try:
        assert "PENDING" in agents.launch("later", **WIDE).check().text
        passed = agents.play("schedule").check()
        assert ("later", "PENDING") in agents.states()
    finally:
        agents.terminate("later").check()
    assert lost(left, "agent1") in words(passed)
    assert "does not answer at" not in passed.text


def test_logs_need_no_server(agents: Agents, left: Session) -> None:
    shown = agents.play("session_logs", session_name=left.name).check()
    assert all(host in shown.text for host in ("main1", "sub1")), shown.text


def test_a_change_of_the_apps_with_a_lost_server_ends_with_one_sentence(agents: Agents, left: Session) -> None:
    app = {"name": "web", "port": 8000, "command": "sleep 600"}
    refused = agents.play("session_apps", session_name=left.name, session_apps=[app])
    assert refused.code == 2
    assert lost(left, "agent1") in refused.message, refused.text


def test_the_doctor_names_the_folder_of_a_lost_server(agents: Agents, left: Session) -> None:
    checked = agents.play("check_agents", agent_check_seconds=0)
    for agent in CLIENTS:
        assert re.search(rf"warn +folders +{agent} +no answer from {FOLDER}/{left.name} ", checked.text), checked.text
    assert re.search(r"ok +folders +agent3 ", checked.text), checked.text


def test_a_command_that_waits_for_a_lost_server_ends_at_its_timeout(agents: Agents, left: Session) -> None:
    ended = agents.play("session_exec", session_name=left.name, session_exec_command="echo it runs").check()
    assert "it runs" in ended.text
    late = {"session_exec_command": "cat /data/file", "session_exec_timeout": 3}
    refused = agents.play("session_exec", session_name=left.name, **late)
    assert refused.code == 2
    assert re.search(r"no end within 3 s", refused.message), refused.text


@pytest.mark.parametrize("direction", ["from", "to"])
def test_a_copy_that_waits_for_a_lost_server_ends_at_its_timeout(
    agents: Agents, left: Session, direction: str, tmp_path: Path
) -> None:
    (tmp_path / "new").write_text("new")
    ends = {"from": ("/data/file", str(tmp_path)), "to": (str(tmp_path / "new"), "/data")}[direction]
    variables = dict(zip(("session_copy_source", "session_copy_target"), ends, strict=True))
    refused = agents.play(
        "session_copy", session_name=left.name, session_copy_direction=direction, session_copy_timeout=3, **variables
    )
    assert refused.code == 2
    assert "not complete when session_copy_timeout was over" in refused.message, refused.text


@pytest.mark.parametrize("more", [{}, {"session_command": "sleep 600"}], ids=["cluster", "batch"])
def test_the_end_of_a_session_needs_no_server_if_no_program_waits(
    agents: Agents, stopped: FileServer, more: dict[str, Any]
) -> None:
    before = agents.held()
    stopped.say(f"install -d -o {UID} -g {UID} {EXPORT}/calm")
    agents.launched("calm", **mounts("calm"), **more)
    stopped.stop()
    ended = agents.terminate("calm").check()
    assert f"session_mounts: {FOLDER}/calm: it does not answer on agent1" in words(ended)
    assert agents.held() == before


def test_an_end_names_the_containers_that_wait_for_a_lost_server_and_another_end_completes_it(
    agents: Agents, stopped: FileServer
) -> None:
    before = agents.held()
    stopped.say(f"install -d -o {UID} -g {UID} {EXPORT}/wait; echo kept >{EXPORT}/wait/file")
    session = agents.launched("wait", **mounts("wait"))
    stopped.stop()
    session.say("sub1", "cat /data/file >/dev/null 2>&1 & sleep 1")
    ended = agents.terminate("wait")
    assert ended.code == 2
    assert re.search(WAITS, ended.message), ended.text
    assert not any("main1" in one for held in agents.held().values() for one in held)
    assert re.search(WAITS, words(agents.terminate("wait").check()))
    stopped.go_on()
    agents.terminate("wait").check()
    assert agents.held() == before
