# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A running session gets another size: its containers stay, the next subs are added or the last ones removed, and all names follow."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from controller import SMALL, Controller, Done, Session

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.archives import pack_archive
from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh.member_files import _SHELL, _WRITE

# What a login reads of the members, without the runtime's own programs.
READ = (
    "echo $BACKENDAI_CLUSTER_SIZE $BACKENDAI_CLUSTER_HOSTS $WORLD_SIZE; cut -d' ' -f1 /etc/mpi/hostfile | paste -sd,;"
    "paste -sd, /etc/cluster-compute/hostnames; /opt/cluster-compute/bin/discover_hosts | cut -d: -f1 | sort | paste -sd,"
)


def names(size: int) -> list[str]:
    return ["main1", *(f"sub{index}" for index in range(1, size))]


def started(session: Session) -> dict[str, tuple[str, int]]:
    return {host: (one["State"]["StartedAt"], one["State"]["Pid"]) for host, one in session.containers().items()}


def hosts_of(text: str) -> list[str]:
    """The members that a text of /etc/hosts names."""
    return sorted(line.split()[1] for line in text.splitlines() if line.startswith("10."))


def check_members(session: Session, size: int, *, writes_hosts: bool = True) -> None:
    """Every container knows exactly these members, by every way that programs use."""
    expected = names(size)
    assert list(session.containers()) == expected
    assert [one["hostname"] for one in session.document["containers"]] == expected
    joined = ",".join(expected)
    everyone = [f"{size} {joined} {size}", joined, joined, ",".join(sorted(expected))]
    logins = "; ".join(f"ssh {other} hostname" for other in expected)
    looks = [READ, "cat /etc/hosts", logins, "cut -d, -f1 .ssh/known_hosts"]
    for host in expected:
        said, hosts, reached, pinned = session.say(host, "; echo ==; ".join(looks)).split("==\n")
        assert said.splitlines() == everyone, host
        assert not writes_hosts or hosts_of(hosts) == sorted(expected)
        assert reached.split() == expected
        assert set(expected) <= set(pinned.split())


def check_stayed(before: dict[str, tuple[str, int]], after: dict[str, tuple[str, int]], hosts: Sequence[str]) -> None:
    assert {host: after[host] for host in hosts} == {host: before[host] for host in hosts}


def resize(controller: Controller, name: str, size: int, *arguments: str, **variables: Any) -> Done:
    """The command of the launch, with another size."""
    return controller.launch(name, *arguments, session_cluster_size=size, **variables)


def check_repair(controller: Controller, session: Session, size: int) -> None:
    """A repair after a growth restores the names: the engine writes /etc/hosts at each start as at the creation of the container."""
    controller.client.kill(session.containers()["sub1"]["Id"])
    assert "sub1 brought back" in resize(controller, session.name, size).check().text
    check_members(session, size)


@pytest.fixture(scope="module")
def pair(controller: Controller) -> Session:
    """A session that no test changes."""
    return controller.launched("full", session_cluster_size=2)


def test_three_five_two(controller: Controller) -> None:
    session = controller.launched("grows", session_cluster_size=3)
    began, address = started(session), session.addresses
    session.say("main1", "nohup sh -c 'while :; do date +%s%N >beat; sleep 0.1; done' >/dev/null 2>&1 &")

    would = resize(controller, "grows", 5, "--check", "--diff").check().text
    assert "RUNNING, sub3, sub4 would be added" in would
    assert any(line.startswith("+") and "sub4" in line for line in would.splitlines()), would
    assert started(session) == began

    grown = resize(controller, "grows", 5).check().text
    assert "Session grows: RUNNING, sub3, sub4 added" in grown
    assert "Programs that run keep their environment, with the former size" in grown
    check_members(session, 5)
    check_stayed(began, started(session), names(3))
    assert session.addresses[:3] == address
    env = session.containers()["sub4"]["Config"]["Env"]
    assert {"BACKENDAI_CLUSTER_SIZE=5", "BACKENDAI_CLUSTER_IDX=4", "WORLD_RANK=4"} <= set(env)
    assert "BACKENDAI_CLUSTER_SIZE=3" in session.containers()["main1"]["Config"]["Env"]
    [listed] = controller.sessions()
    assert (listed["size"], listed["degraded"]) == (5, [])
    assert controller.everywhere("grows", "hostname").check().text.count("CHANGED") == 5
    assert resize(controller, "grows", 5).check().changed == 0
    check_repair(controller, session, 5)

    grown_at = started(session)
    assert "RUNNING, sub2, sub3, sub4 would be removed" in resize(controller, "grows", 2, "--check").check().text
    shrunk = controller.play("cluster_session", session_name="grows", session_cluster_size=2, session_scale=True)
    assert "Session grows: RUNNING, sub2, sub3, sub4 removed" in shrunk.check().text
    check_members(session, 2)
    check_stayed(grown_at, started(session), names(2))
    assert session.say("main1", "cat beat; sleep 0.5; cat beat").split()[0] != session.say("main1", "cat beat")
    assert [row[1:3] for row in controller.rows() if row[0] == "grows"] == [("RUNNING", 0)]
    assert sum(line.startswith("container") for line in controller.engine("grows")) == 2


def test_a_growth_that_fails_is_undone(controller: Controller) -> None:
    """The bootstrap script fails in the containers that are added, after some of them have started."""
    script = 'case "$BACKENDAI_CLUSTER_HOST" in sub3) exit 7 ;; esac'
    session = controller.launched("half", session_cluster_size=2, session_bootstrap=script)
    before = started(session), controller.engine("half"), session.document["containers"]
    failed = resize(controller, "half", 4, session_bootstrap=script)
    assert failed.code
    assert "Session half was not changed: " in failed.message
    assert "sub3" in failed.message
    assert (started(session), controller.engine("half"), session.document["containers"]) == before
    check_members(session, 2)
    [row] = [row for row in controller.rows() if row[0] == "half"]
    assert row[1:3] == ("RUNNING", 0)
    assert (
        "Session half: RUNNING, nothing to do" in resize(controller, "half", 2, session_bootstrap=script).check().text
    )


def test_the_files_of_members_are_written_when_logins_are_accepted_again(controller: Controller, pair: Session) -> None:
    """sshd refuses connections while it reads its configuration again; here it is held up before it does."""
    main, client = pair.containers()["main1"]["Id"], controller.client
    [server] = [row[1] for row in client.top(main)["Processes"] if "libexec/sshd -D" in row[-1]]
    os.kill(int(server), signal.SIGSTOP)
    archive = pack_archive([])
    write = ["docker", "exec", "-i", main, *_SHELL, _WRITE, "sh", str(len(archive)), "1000", "1000", ""]
    with subprocess.Popen(write, stdin=subprocess.PIPE) as writing:
        assert writing.stdin
        writing.stdin.write(archive)
        writing.stdin.close()
        try:
            with pytest.raises(subprocess.TimeoutExpired):
                writing.wait(3)
        finally:
            os.kill(int(server), signal.SIGCONT)
        assert writing.wait(60) == 0
    assert pair.say("main1", "hostname") == "main1"


PHASES = {
    "placed": "Placing the session",
    "created": "Creating ",
    "started": "Starting ",
    "followed": "Updating the running containers",
}
# The size of a growth that is killed, and the size of the next command; 0 for an end. A growth by two can be complete in part.
STORIES = [
    ("placed", 3, 3),
    ("created", 4, 2),
    ("started", 3, 0),
    ("started", 4, 4),
    ("started", 3, 2),
    ("followed", 3, 2),
]


def next_command(controller: Controller, phase: str, grown: int, size: int) -> None:
    """Kill a growth, and complete it, undo it, or end the session."""
    name = f"{phase}-{size}"
    session = controller.launched(name, session_cluster_size=2)
    before = started(session)
    controller.killed("cluster_session", PHASES[phase], session_name=name, **{**SMALL, "session_cluster_size": grown})
    if size:
        resize(controller, name, size).check()
        check_members(session, size)
        check_stayed(before, started(session), names(2))
        assert [row[1:3] for row in controller.rows() if row[0] == name] == [("RUNNING", 0)]
    controller.terminate(name).check()
    assert controller.engine(name) == {}


@pytest.fixture(scope="module")
def stories(controller: Controller) -> Iterator[dict[tuple[str, int, int], Future[None]]]:
    """Run all stories, three at a time."""
    with ThreadPoolExecutor(3) as threads:
        yield {story: threads.submit(next_command, controller, *story) for story in STORIES}


@pytest.mark.parametrize("story", STORIES, ids=lambda story: f"{story[0]}-{story[1]}-{story[2]}")
def test_after_a_kill_the_next_command_ends_clean(
    stories: dict[tuple[str, int, int], Future[None]], story: tuple[str, int, int]
) -> None:
    stories[story].result()


def test_a_kill_while_a_session_shrinks(controller: Controller) -> None:
    session = controller.launched("shrinks", session_cluster_size=3)
    controller.killed("cluster_session", "Removing containers", session_name="shrinks", **SMALL, session_cluster_size=2)
    resize(controller, "shrinks", 2).check()
    check_members(session, 2)


def test_one_container_becomes_a_cluster_and_secrets_stay(controller: Controller) -> None:
    """main1 alone trusted only its own name; the variables of secrets are part of a login's environment, too."""
    file = controller.folder / "token"
    file.write_text("s3cret")
    secrets = json.dumps({"session_secrets": [{"name": "token", "file": str(file), "environment": "TOKEN"}]})
    session = controller.launched("single", session_cluster_size=1, session_read_only_root=True)
    resize(controller, "single", 2, session_read_only_root=True).check()
    check_members(session, 2, writes_hosts=False)  # the name server of the engine answers
    controller.launch("secret", "-e", secrets, session_cluster_size=1).check()
    again = controller.play("cluster_session", session_name="secret", session_cluster_size=2, session_scale=True)
    again.check()
    session = Session(controller, "secret")
    check_members(session, 2)
    assert session.say("main1", "echo $TOKEN; ssh sub1 'echo $TOKEN'").split() == ["s3cret", "s3cret"]
