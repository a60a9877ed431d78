# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A user's playbook that was written for release 1.0.0, with every variable that its docs list, runs unchanged."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from controller import PLAYBOOK, ROOT, Controller, Done, Session, run

# Kept as it was written for 1.0.0: do not adapt it to a later release.
LAUNCH = """
- name: Launch the training of tonight
  hosts: agents
  gather_facts: false
  any_errors_fatal: true
  roles:
    - role: cluster.compute.session
      vars:
        session_count: 1
        session_cluster_size: 3
        session_cluster_mode: multi-node
        session_image: cluster-compute/reference:1
        session_cpus: 0.2
        session_memory: 64m
        session_shm: 16m
        session_gpus: 0
        session_cpu_pinning: false
        session_resource_group: default
        session_agents: []
        session_agents_policy: preferred
        session_strategy: spread
        session_priority: 20
        session_environment:
          SHARD: "shard-<% rank %>-of-<% size %>"
          MASTER_PORT: 29500
        session_mounts:
          - {source: "{{ data_folder }}", target: /data}
          - {source: "{{ data_folder }}", target: /reference, mode: ro}
        session_apps:
          - {name: notebook, port: 8888}
        session_command: echo $SHARD > /data/result; sleep 600
        session_command_timeout: 3600
        session_terminate_when_done: false
        session_bootstrap: |
          echo prepared > /tmp/bootstrap
        session_on_failure: keep
        session_user: {uid: 1234, gid: 1234}
        session_network_encrypted: false
        session_wait: 0
        session_launch_timeout: 600
        session_verify_timeout: 60
        session_bootstrap_timeout: 300
        session_wait_result: false
        session_queue_policy: backfill
        session_queue_age_bound: 3600
        session_provision: false
        session_pull: missing
        session_pull_timeout: 1800
        session_registry_username: ""
        session_registry_password: ""
"""
SHOW = """
- name: List the sessions of the user
  ansible.builtin.import_playbook: cluster.compute.sessions
  vars:
    session_ended_too: true
    sessions_format: json
    sessions_file: "{{ data_folder }}/sessions.json"

- name: Show the logs
  ansible.builtin.import_playbook: cluster.compute.session_logs
  vars:
    session_logs_containers: [main1]
    session_logs_tail: 20
"""
END = """
- name: End the session
  ansible.builtin.import_playbook: cluster.compute.terminate
"""


@pytest.fixture(scope="module")
def session(controller: Controller, tmp_path_factory: pytest.TempPathFactory) -> Session:
    data = tmp_path_factory.mktemp("data")
    data.chmod(0o777)
    controller.variables["data_folder"] = str(data)
    controller.common.write_text(json.dumps(controller.variables))
    play(controller, LAUNCH).check()
    return Session(controller, "tonight")


def play(controller: Controller, text: str) -> Done:
    path = controller.folder / "written_for_1.0.0.yml"
    path.write_text(text)
    command = [PLAYBOOK, str(path), "-e", f"@{controller.common}", "-e", "session_name=tonight"]
    return run(command, cwd=ROOT, env=controller.environment)


def test_the_session_has_what_the_playbook_asks_for(session: Session) -> None:
    assert session.say(
        "main1", "ssh sub2 'cat /tmp/bootstrap; id -u; echo $SHARD $MASTER_PORT; cat /reference/result'"
    ) == ("prepared\n1234\nshard-2-of-3 29500\nshard-0-of-3")
    assert [app["name"] for app in session.document["apps"]] == ["ssh", "notebook"]


def test_a_second_run_changes_nothing(session: Session) -> None:
    before = session.controller.engine()
    play(session.controller, LAUNCH).check()
    assert session.controller.engine() == before


def test_it_is_shown_and_ended(session: Session) -> None:
    play(session.controller, SHOW).check()
    listed: dict[str, Any] = json.loads(Path(session.controller.variables["data_folder"], "sessions.json").read_text())
    assert [(row["name"], row["state"]) for row in listed["sessions"]] == [("tonight", "RUNNING")]
    play(session.controller, END).check()
    assert session.controller.engine() == {}


def test_no_variable_of_the_launch_is_missing() -> None:
    """The variables of the launch in docs/variables.md of 1.0.0 are those above and those of the test's controller."""
    (launch,) = yaml.safe_load(LAUNCH)
    used = set(launch["roles"][0]["vars"]) | {
        "session_name",
        "session_owner",
        "session_network_pool",
        "session_port_range",
    }
    declared = yaml.safe_load((ROOT / "roles/session/meta/argument_specs.yml").read_text())["argument_specs"]["main"]
    assert used <= set(declared["options"])
    assert not [name for name in used if not re.fullmatch("session_[a-z_]+", name)]
