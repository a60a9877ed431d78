# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The session file of examples/, as it is, and one whose paths are relative to it."""

from __future__ import annotations

import json
from pathlib import Path

from controller import Controller, Done, Session, run, run_playbook

PATHS = """\
session_name: paths
session_cpus: 0.2
session_memory: 64m
session_shm: 16m
session_artifacts: sessions
session_secrets:
  - {name: token, file: keys/token.txt}
sessions_file: lists/sessions.json
session_copy_source: data.txt
"""


def play(controller: Controller, playbook: str, file: Path) -> Done:
    """A playbook with a session file, whose variables have precedence over the test's own."""
    command = [*controller.command(playbook), "-e", f"@{file}"]
    return run_playbook(command, controller.environment).check()


def test_the_common_variables_launch_a_session_as_they_are(controller: Controller) -> None:
    file = Path("examples/session.yml")
    assert "Session work: RUNNING" in play(controller, "cluster_session", file).text
    session = Session(controller, "work")
    said = session.say("main1", "everywhere hostname")
    assert sorted(said.splitlines()) == ["main1: main1", "sub1: sub1", "sub2: sub2"]
    play(controller, "terminate", file)
    assert session.containers() == {}


def test_paths_in_a_session_file_are_relative_to_it(controller: Controller, tmp_path: Path) -> None:
    """The playbooks run in another directory."""
    file = tmp_path / "train.yml"
    file.write_text(PATHS)
    for folder in ("keys", "lists"):
        (tmp_path / folder).mkdir()
    (tmp_path / "keys/token.txt").write_text("secret")
    (tmp_path / "data.txt").write_text("copied")
    play(controller, "cluster_session", file)
    play(controller, "session_copy", file)
    config = str(tmp_path / "sessions/paths/ssh_config")
    said = run(["ssh", "-F", config, "main1", "cat /run/secrets/token data.txt"]).check().text
    assert said == "secretcopied"
    play(controller, "sessions", file)
    listed = json.loads((tmp_path / "lists/sessions.json").read_text())
    assert [session["name"] for session in listed["sessions"]] == ["paths"]
    play(controller, "terminate", file)
