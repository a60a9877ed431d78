# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A day of two owners, one of them hostile: alice launches, queues, runs commands, copies files and ends her sessions as if she were alone.

Mallory first has the front end alone, and later also the group of the engine: containers and labels of any kind, and the session store.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from front_end_lab import ASKED, FrontEnd
from ordinary_user import OrdinaryUser, second_user
from own_objects import LABEL

NAME = "train"
MARK = "the result of alice"
SMALL_ASKED = ["lifetime=900", *ASKED]


@pytest.fixture(scope="module")
def owners(front_end: FrontEnd) -> Iterator[tuple[OrdinaryUser, OrdinaryUser]]:
    with second_user(front_end.service) as alice, second_user(front_end.service) as mallory:
        front_end.let_in(alice, mallory)
        yield alice, mallory


@contextmanager
def session(front_end: FrontEnd, owner: OrdinaryUser, name: str, *words: str) -> Iterator[None]:
    """A running session of an owner, which also goes when the test fails."""
    try:
        launched = front_end.asked(owner, "launch", name, *words, *SMALL_ASKED).check()
        assert f"Session {name}: RUNNING" in launched.text
        yield
    finally:
        front_end.asked(owner, f"end {name}")


def state(front_end: FrontEnd, owner: OrdinaryUser) -> list[tuple[Any, ...]]:
    """What the engine knows of the containers of an owner: each, since when it runs."""
    client = front_end.controller.client
    listed = client.containers(all=True, filters={"label": f"{LABEL}.owner={owner.account.pw_name}"})
    inspected = [client.inspect_container(one["Id"]) for one in listed if one["Names"] != [f"/{FORGED}"]]
    return sorted((one["Id"], one["State"]["StartedAt"], json.dumps(one["Config"]["Labels"])) for one in inspected)


def works(front_end: FrontEnd, alice: OrdinaryUser) -> None:
    """What alice does all day with her session."""
    assert front_end.asked(alice, f"exec {NAME} -- cat result").check().text == f"{MARK}\n"
    assert front_end.asked(alice, f"enter {NAME} -- hostname").check().text.split() == ["main1"]
    assert MARK in front_end.asked_by_sudo(alice, "copy-from", NAME, "result").check().text
    listed = front_end.asked(alice, "list").check().text
    assert NAME in listed
    assert "\x1b" not in listed
    front_end.asked(alice, f"logs {NAME}").check()


def store(front_end: FrontEnd, statement: str, *values: object) -> list[Any]:
    """Run a statement in the session store, as a user who can write its file."""
    with closing(sqlite3.connect(front_end.service.home / "state/sessions.db", timeout=30)) as opened, opened:
        return opened.execute(statement, values).fetchall()


def test_a_hostile_caller_of_the_front_end_changes_nothing(
    front_end: FrontEnd, owners: tuple[OrdinaryUser, OrdinaryUser]
) -> None:
    alice, mallory = owners
    with session(front_end, alice, NAME):
        front_end.asked(alice, f"exec {NAME} --", f"'echo {MARK} >result'").check()
        before = state(front_end, alice)
        _try_odd_names(front_end, alice, mallory)
        _try_every_variable(front_end, alice, mallory)
        _try_links(front_end, mallory)
        try:
            _flood(front_end, mallory)
            works(front_end, alice)
            # The queue of mallory does not stand before alice, whose quota has room.
            with session(front_end, alice, "late"):
                assert front_end.asked(alice, "exec late -- hostname").check().text == "main1\n"
        finally:
            for number in range(3):
                front_end.asked(mallory, f"end flood-{number}")
        assert front_end.asked(alice, f"exec {NAME} -- cat result").check().text == f"{MARK}\n"
        assert state(front_end, alice) == before
    assert front_end.asked(alice, f"enter {NAME}").code != 0


def _try_odd_names(front_end: FrontEnd, alice: OrdinaryUser, mallory: OrdinaryUser) -> None:
    """Every verb with the name itself is refused in test_front_end.py."""
    owner = alice.account.pw_name
    for verb in ("ssh-config {}", "known-hosts {}", "exec {} -- cat result"):
        for name in (f"../{owner}/{NAME}", f"{owner}.{NAME}"):
            refused = front_end.asked(mallory, verb.format(name))
            assert refused.code != 0
            assert MARK not in refused.text
    front_end.asked(mallory, "end '*'")


def _try_every_variable(front_end: FrontEnd, alice: OrdinaryUser, mallory: OrdinaryUser) -> None:
    """Neither limits, nor templates in JSON, nor what belongs to others. test_front_end.py tries the other variables and checks the messages."""
    owner, home = alice.account.pw_name, front_end.service.home
    for words in (
        ["pids=4194304000"],
        [f"""'mounts=[{{"source": "{home}/sessions/{owner}/{NAME}", "target": "/h"}}]'"""],
        [f"""'mounts=[{{"source": "{owner}-{NAME}", "target": "/h", "type": "volume"}}]'"""],
        ["""'environment={"A": "<% ().__class__.__mro__ %>"}'"""],
        ["""'environment={"A": "<% \\"a\\"|center(10**9) %>"}'"""],
        ["""'apps=[{"name": "x", "port": 22, "public": true, "preferred_port": 22, "command": "x"}]'"""],
    ):
        refused = front_end.asked(mallory, "launch", "evil", *words, *SMALL_ASKED)
        assert refused.code != 0, words
        assert "Traceback" not in refused.text
    evil = store(front_end, "SELECT state FROM session WHERE owner = ? AND name = 'evil'", mallory.account.pw_name)
    assert {state for (state,) in evil} <= {"ERROR"}


def _try_links(front_end: FrontEnd, mallory: OrdinaryUser) -> None:
    """A link that her own session makes in her data folder leads to no folder of the host."""
    folder = front_end.pool / mallory.account.pw_name
    folder.mkdir()
    folder.chmod(0o1777)
    mounted = """'mounts=[{"source": "%s", "target": "/data"}]'"""
    with session(front_end, mallory, "links", mounted % folder):
        front_end.asked(mallory, "exec links --", "'ln -s /etc /data/link'").check()
    refused = front_end.asked(mallory, "launch", "evil", mounted % f"{folder}/link", *SMALL_ASKED)
    assert refused.code != 0
    assert f"must have no symbolic link below {front_end.pool}" in " ".join(refused.text.split())


def _flood(front_end: FrontEnd, mallory: OrdinaryUser) -> None:
    """The two sessions that she may have and one that waits, with the highest priority; one writes escapes and megabytes to its log."""
    noise = "'command=yes $(printf \"\\033]0;owned\\007\") | head -c 4000000; sleep 600'"
    front_end.asked(mallory, "launch", "flood-0", "priority=10", noise, *SMALL_ASKED)
    for number in range(1, 3):
        front_end.asked(mallory, "launch", f"flood-{number}", "priority=10", *SMALL_ASKED)
    logged = front_end.asked(mallory, "logs flood-0").text
    assert "\x1b]" not in logged


FORGED = "cluster-compute-test-forged"


def test_a_member_of_the_engines_group_makes_no_command_of_alice_do_something_else(
    front_end: FrontEnd, owners: tuple[OrdinaryUser, OrdinaryUser]
) -> None:
    """She is root of the agents and writes the store: she can end what is hers and alice's, and no more than that."""
    alice, _mallory = owners
    mark = front_end.service.home / "OWNED"
    with session(front_end, alice, NAME):
        front_end.asked(alice, f"exec {NAME} --", f"'echo {MARK} >result'").check()
        before = state(front_end, alice)
        with _hostile_labels(front_end, alice), session(front_end, alice, "late"):
            works(front_end, alice)
        _forge_plan(front_end, alice, str(mark))
        _forge_request(front_end, alice)
        assert state(front_end, alice) == before
    assert not mark.exists()


@contextmanager
def _hostile_labels(front_end: FrontEnd, alice: OrdinaryUser) -> Iterator[None]:
    """A container with the labels of main1 of alice, one after the other with a value that no reader can use."""
    client = front_end.controller.client
    (main,) = client.containers(filters={"label": [f"{LABEL}.owner={alice.account.pw_name}", f"{LABEL}.name={NAME}"]})
    labels = {
        **main["Labels"],
        f"{LABEL}.name": "forged",
        LABEL: "00000000-0000-4000-8000-000000000000",
        f"{LABEL}.placement": '[["x", 1000000000]]',
        "cluster.compute.container.resources": '{"cpuset": "0-999999999", "gpus": ""}',
        "cluster.compute.container.relay": "\x1b]0;x\x07",
    }
    name = f"{alice.account.pw_name}.forged.main1"
    body = client.create_container_config(main["ImageID"], command=["sleep", "600"], labels=labels)
    made = client.create_container_from_config(body, name)["Id"]
    # Another one has all that is needed to be adopted, and nothing that describes a session.
    partial = {
        name: text for name, text in main["Labels"].items() if not name.endswith((".placement", ".mode", ".subnet"))
    }
    second = client.create_container_from_config(
        client.create_container_config(
            main["ImageID"], command=["sleep", "600"], labels={**partial, "cluster.compute.container": "x"}
        ),
        FORGED,
    )["Id"]
    try:
        yield
    finally:
        for one in (made, second):
            client.remove_container(one, force=True)


def _forge_plan(front_end: FrontEnd, alice: OrdinaryUser, mark: str) -> None:
    """A command of alice for her session reads its plan from the store."""
    key = (alice.account.pw_name, NAME)
    ((text,),) = store(front_end, "SELECT plan FROM session WHERE owner = ? AND name = ? AND state = 'RUNNING'", *key)
    for change in (
        ("containers", 0, "hostname", f"main1\n    ProxyCommand touch {mark}"),
        ("session", "user", "name", f"work\n    ProxyCommand touch {mark}"),
        ("session", "secrets", None, [{"name": "x", "file": "/etc/shadow"}]),
        ("session", "mounts", None, [{"source": "/", "target": "/host"}]),
    ):
        plan = json.loads(text)
        inner: Any = plan[change[0]]
        inner = inner if change[2] is None else inner[change[1]]
        inner[change[1] if change[2] is None else change[2]] = change[3]
        store(
            front_end,
            "UPDATE session SET plan = ? WHERE owner = ? AND name = ? AND state = 'RUNNING'",
            json.dumps(plan),
            *key,
        )
        front_end.asked(alice, "launch", NAME, *SMALL_ASKED)
        front_end.asked(alice, f"enter {NAME} -- true")
    store(front_end, "UPDATE session SET plan = ? WHERE owner = ? AND name = ? AND state = 'RUNNING'", text, *key)


def _forge_request(front_end: FrontEnd, alice: OrdinaryUser) -> None:
    """A session that waits is launched as alice has requested it, or not at all."""
    asked = ["launch", "waits", "cluster_size=2", "command=true", *SMALL_ASKED]
    waits = front_end.asked(alice, *asked).check()
    assert "permits" in " ".join(waits.text.split())
    key = (alice.account.pw_name, "waits")
    ((text,),) = store(
        front_end, "SELECT request FROM session WHERE owner = ? AND name = ? AND state = 'PENDING'", *key
    )
    try:
        changed = {
            **json.loads(text),
            "command": "cat /host/etc/shadow",
            "mounts": [{"source": "/", "target": "/host"}],
        }
        store(
            front_end,
            "UPDATE session SET request = ? WHERE owner = ? AND name = ? AND state = 'PENDING'",
            json.dumps(changed),
            *key,
        )
        works(front_end, alice)
    finally:
        front_end.asked(alice, "end waits")
