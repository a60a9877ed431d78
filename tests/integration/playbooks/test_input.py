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

# Variable, value and error. Each is refused at another place; the rules have unit tests.
CASES: list[tuple[str, Any, str]] = [
    ("session_cluster_size", 0, "session_cluster_size: '0': must be a whole number from 1 to 1000."),
    (
        "session_mount",
        [{"source": "/tmp", "target": "/data"}],
        "session_mount (from -e): unknown; did you mean session_mounts?",
    ),
    (
        "session_mounts",
        [{"source": "/nowhere/at/all", "target": "/data"}],
        "session_mounts: '/nowhere/at/all': must exist on every agent of the session; it does not exist or does not answer on localhost.",
    ),
    ("session_name", "abc", "session_name: 'abc': must have 4 to 64 letters, digits,"),
    ("session_shm", "65m", "session_shm: '65m': must be at most session_memory, which is 64m."),
    ("session_environment", {"A": "<% rnk %>"}, "session_environment: A: '<% rnk %>': the text between"),
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
