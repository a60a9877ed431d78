# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The wait for the command of a batch session, on a scripted play."""

from __future__ import annotations

from pathlib import Path

import pytest
from conducted import changes_of, conducted
from samples import decision, plan, request

from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import SessionError
from ansible_collections.cluster.compute.plugins.plugin_utils._session.launch import run_to_the_end
from ansible_collections.cluster.compute.plugins.plugin_utils._session.launch_spec import Launch, LaunchSpec
from ansible_collections.cluster.compute.plugins.plugin_utils._settings.settings import Settings


def test_the_end_after_a_command_is_about_its_own_session(tmp_path: Path) -> None:
    """The user may have ended the session meanwhile, and launched another of the same name."""
    asked = LaunchSpec(request(command="train", on_failure="terminate"), Settings(wait_result=True))
    made = plan(asked.request)
    main = made.main
    gone = {"hostname": "main1", "agent": main.agent, "state": "missing", "exit_code": None, "oom_killed": False}
    row = {"id": made.session.id, "name": "train", "owner": "alice", "state": "TERMINATED", "reason": "ended by alice"}
    script = {
        "batch.start": {"begun": True},
        "batch.wait": {"exit_code": None, "oom_killed": False, "reason": "", "begun": True, "dead": [gone]},
        "logs.read": {"logs": []},
        "report.collect": {"agent": {"name": main.agent, "reachable": True}},
        "session.record": {"changed": False, "session": row, "remove": [], "waiting": 0},
    }
    play = conducted(script, main.agent, session_artifacts=str(tmp_path))
    with pytest.raises(SessionError, match="main1"):
        run_to_the_end(play, Launch(asked, decision("placed")), made)
    ends = [one for one in changes_of(play) if one["state"] == "terminating"]
    assert [one["id"] for one in ends] == [made.session.id]


def test_a_result_that_another_command_has_recorded_counts(tmp_path: Path) -> None:
    """PID 1 has ended the session, and that command has removed main1 before this one has seen the exit code."""
    asked = LaunchSpec(request(command="train", terminate_when_done=True), Settings(wait_result=True))
    made = plan(asked.request)
    gone = {"hostname": "main1", "agent": made.main.agent, "state": "missing", "exit_code": None, "oom_killed": False}
    row = {"id": made.session.id, "name": "train", "owner": "alice", "state": "TERMINATED", "reason": "the end"}
    script = {
        "batch.start": {"begun": True},
        "batch.wait": {"exit_code": None, "oom_killed": False, "reason": "", "begun": True, "dead": [gone]},
        "logs.read": {"logs": []},
        "report.collect": {"agent": {"name": made.main.agent, "reachable": True}},
        "session.record": {"changed": False, "session": {**row, "result": "SUCCESS"}, "remove": [], "waiting": 0},
    }
    play = conducted(script, made.main.agent, session_artifacts=str(tmp_path))
    run_to_the_end(play, Launch(asked, decision("placed")), made)
