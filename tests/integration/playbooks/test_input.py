# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bad input is refused before anything changes, with a sentence that names the variable, the value and the rule."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from controller import Controller, Done

SIZE = "must be a whole number from 1 to 1000"
NAME = "must have 4 to 64 letters, digits, '-', '_' or '.', and must start and end with a letter or digit"
VARIABLE = "must have letters, digits and '_' only, and must not start with a digit"
TARGET = "must be an absolute path without '.' and '..' that the session does not use itself"
AMOUNT = "must be a number with an optional unit b, k, m, g or t, as in 512m or 16g"

# Variable, value and error: the variable, the value as it is shown, the rule.
CASES: list[tuple[str, Any, str]] = [
    ("session_cluster_size", 0, f"session_cluster_size: '0': {SIZE}."),
    ("session_cluster_size", -1, f"session_cluster_size: '-1': {SIZE}."),
    ("session_cluster_size", "three", f"session_cluster_size: 'three': {SIZE}."),
    ("session_cluster_size", 10**6, f"session_cluster_size: '1000000': {SIZE}."),
    ("session_cluster_mode", "galaxy", "session_cluster_mode: 'galaxy': must be one of: single-node, multi-node."),
    ("session_name", "abc", f"session_name: 'abc': {NAME}."),
    ("session_name", "a" * 65, f"session_name: '{'a' * 65}': {NAME}."),
    ("session_name", "two words", f"session_name: 'two words': {NAME}."),
    ("session_name", "a/../b/c", f"session_name: 'a/../b/c': {NAME}."),
    ("session_name", "-dash", f"session_name: '-dash': {NAME}."),
    ("session_name", "line\nbreak", f"session_name: 'line\\nbreak': {NAME}."),
    ("session_name", "break\n", f"session_name: 'break\\n': {NAME}."),
    (
        "session_mount",
        [{"source": "/tmp", "target": "/data"}],
        "session_mount (from -e): unknown; did you mean session_mounts?",
    ),
    ("session_shm", "2g", "session_shm: '2g': must be at most session_memory, which is 64m."),
    ("session_memory", "1x", f"session_memory: '1x': {AMOUNT}."),
    ("session_cpus", 0, "session_cpus: '0': must be at least 0.01."),
    (
        "session_environment",
        {"BACKENDAI_ME": "1"},
        "session_environment: 'BACKENDAI_ME': must not start with BACKENDAI_: the session sets these variables.",
    ),
    ("session_environment", {"A\nB": "1"}, f"session_environment: 'A\\nB': {VARIABLE}."),
    ("session_environment", {"A=B": "1"}, f"session_environment: 'A=B': {VARIABLE}."),
    (
        "session_environment",
        {"A": "1\n2"},
        "session_environment: A: '1\\n2': must not contain newlines or control characters.",
    ),
    (
        "session_mounts",
        [{"source": "/nowhere/at/all", "target": "/data"}],
        "session_mounts: '/nowhere/at/all': must exist on every agent of the session; it does not exist or does not answer on localhost.",
    ),
    ("session_mounts", [{"source": "/tmp", "target": "data"}], f"session_mounts: 'data': {TARGET}."),
    (
        "session_environment",
        {"A": "<% rank %"},
        "session_environment: A: '<% rank %': the text between <% and %> must be a valid expression over rank, local_rank, role, index, hostname, size, hosts, gpu_ids; the error is:",
    ),
    ("session_launch_timeout", 0, "session_launch_timeout: '0': must be a whole number from 1 to 2147483647."),
    ("session_environment", {"A": "<% rnk %>"}, "session_environment: A: '<% rnk %>': the text between"),
    (
        "session_environment",
        {"A": "<% ''.__class__ %>"},
        "session_environment: A: \"<% ''.__class__ %>\": the text between",
    ),
]


@pytest.fixture(scope="module")
def unwanted(tmp_path_factory: pytest.TempPathFactory, engine_host: str) -> Iterator[Controller]:
    made = Controller(tmp_path_factory.mktemp("unwanted") / "own", engine_host)
    yield made
    made.clean()


@pytest.fixture(scope="module")
def answers(unwanted: Controller) -> list[Done]:
    """Each case in a command of its own, several at a time."""

    def ask(case: tuple[str, Any, str]) -> Done:
        variable, value, _told = case
        return unwanted.launch(**{"name": "refused", "session_cluster_size": 2, variable: value})

    with ThreadPoolExecutor(3) as threads:
        return list(threads.map(ask, CASES))


def _label(case: tuple[str, Any, str]) -> str:
    return f"{case[0]}={case[1]!r}"[:60]


@pytest.mark.parametrize("number", range(len(CASES)), ids=[_label(case) for case in CASES])
def test_refused(answers: list[Done], number: int) -> None:
    print(answers[number].message)
    assert answers[number].code == 2
    assert answers[number].message.startswith(CASES[number][2])
    assert answers[number].changed == 0


@pytest.mark.usefixtures("answers")
def test_nothing_was_touched(unwanted: Controller) -> None:
    """No container, no network and no artifacts exist, and the store has no session."""
    assert unwanted.everything() == ({}, {}, [])
    assert unwanted.rows() == []


def test_a_name_in_use(controller: Controller) -> None:
    controller.launched("in-use")
    before = controller.everything()
    refused = controller.launch("in-use", session_cluster_size=2, session_memory="65m")
    assert refused.code == 2
    assert refused.message == (
        "session_name: 'in-use': is used by a RUNNING session with other settings (size, memory): "
        "end that session with terminate.yml, or choose another name."
    )
    assert controller.everything() == before


def test_a_folder_of_the_host(controller: Controller, tmp_path: Path) -> None:
    """A source that exists is mounted, the same in every container."""
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(0o777)
    mounts = [{"source": str(folder), "target": "/data"}, f"{folder}:/seen:ro"]
    session = controller.launched("mounted", session_cluster_size=2, session_mounts=mounts)
    session.say("main1", "echo shared >/data/file")
    assert session.say("main1", "ssh sub1 cat /data/file /seen/file").split() == ["shared", "shared"]
    assert session.ssh("sub1", "touch /seen/new").code != 0
