# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kept result of a check: it counts for the same agents, for a time, and only if this user wrote it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.plugin_utils._client import last_check
from ansible_collections.cluster.compute.plugins.plugin_utils._settings.agent_checks import AgentChecks

AGENTS = {"agent1": "192.0.2.1", "agent2": "192.0.2.2"}
UNFIT = {"agent2": "swarm on agent2: in no Swarm"}
UNGUARDED = ["agent1"]
DAMAGED_TIME = json.dumps({"agents": AGENTS, "unfit": {}, "unguarded": [], "time": "now"})


def test_it_is_kept_privately_and_read_again(tmp_path: Path) -> None:
    base = tmp_path / "own"
    assert last_check.write_last_check(str(base), AGENTS, UNFIT, UNGUARDED) == ""
    assert last_check.write_last_check(str(base), AGENTS, UNFIT, UNGUARDED) == ""
    assert (base / last_check.NAME).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in base.iterdir()] == [last_check.NAME]
    assert last_check.read_last_check(str(base), AGENTS, 60) == AgentChecks(UNFIT, UNGUARDED, "0 s")


def test_it_counts_for_some_of_the_agents(tmp_path: Path) -> None:
    last_check.write_last_check(str(tmp_path), AGENTS, UNFIT, UNGUARDED)
    assert last_check.read_last_check(str(tmp_path), {"agent1": "192.0.2.1"}, 60) == AgentChecks({}, UNGUARDED, "0 s")


@pytest.mark.parametrize(
    ("agents", "age"),
    [
        ({**AGENTS, "agent3": "192.0.2.3"}, 60),
        ({**AGENTS, "agent2": "198.51.100.2"}, 60),
        (AGENTS, 0),
    ],
)
def test_it_does_not_count_for_other_agents_or_later(tmp_path: Path, agents: dict[str, str], age: float) -> None:
    last_check.write_last_check(str(tmp_path), AGENTS, UNFIT, UNGUARDED)
    assert last_check.read_last_check(str(tmp_path), agents, age) is None


def test_an_old_one_does_not_count(tmp_path: Path) -> None:
    last_check.write_last_check(str(tmp_path), AGENTS, UNFIT, UNGUARDED)
    file = tmp_path / last_check.NAME
    document = json.loads(file.read_text())
    file.write_text(json.dumps({**document, "time": document["time"] - 61}))
    assert last_check.read_last_check(str(tmp_path), AGENTS, 60) is None
    file.write_text(json.dumps({**document, "time": document["time"] + 3600}))
    assert last_check.read_last_check(str(tmp_path), AGENTS, 60) is None


@pytest.mark.parametrize(
    "content",
    ["", "[1]", "{", '{"agents": 3}', '{"agents": {}, "unfit": []}', '{"agents": {}, "unfit": {}}', DAMAGED_TIME],
)
def test_a_damaged_one_does_not_count(tmp_path: Path, content: str) -> None:
    (tmp_path / last_check.NAME).write_text(content)
    assert last_check.read_last_check(str(tmp_path), AGENTS, 60) is None


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    last_check.write_last_check(str(other), AGENTS, UNFIT, UNGUARDED)
    (tmp_path / last_check.NAME).symlink_to(other / last_check.NAME)
    assert last_check.read_last_check(str(tmp_path), AGENTS, 60) is None


def test_a_file_of_another_user_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    last_check.write_last_check(str(tmp_path), AGENTS, UNFIT, UNGUARDED)
    user: Any = last_check.os.geteuid() + 1
    monkeypatch.setattr(last_check.os, "geteuid", lambda: user)
    assert last_check.read_last_check(str(tmp_path), AGENTS, 60) is None


def test_a_folder_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    warning = last_check.write_last_check(str(tmp_path / "file"), AGENTS, UNFIT, UNGUARDED)
    assert warning == f"The result of the check cannot be kept in {tmp_path}/file: File exists."
