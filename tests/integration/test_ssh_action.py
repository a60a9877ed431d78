# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role ``ssh`` as a playbook runs it, on a real engine."""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
from controller import PLAYBOOK, ROOT, Done, run_playbook
from runtime_lab import find_volume
from ssh_lab import AGENT, Lab, make_plan

REFERENCE = "cluster-compute/reference:1"
# By another name than Ansible's own, the same Python counts as a host's: modules are started, with all that -vvv shows of them.
PYTHONS = [Path(sys.executable).with_name(name) for name in ("python", "python3")]
BOOK = """
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.include_role:
        name: cluster.compute.ssh
      vars:
        ssh_plan: "{{ plan }}"
        ssh_artifacts: "{{ folder }}"
"""


@pytest.fixture
def lab(engine_host: str, tmp_path: Path) -> Iterator[Lab]:
    client = docker.APIClient(base_url=engine_host, version="auto")
    try:
        find_volume(client)
        client.inspect_image(REFERENCE)
    except docker.errors.NotFound as error:
        pytest.fail(f"no agent to test on: {error}")
    made = Lab(make_plan(REFERENCE, 2), tmp_path / "kept here", engine_host)
    yield made
    made.remove()


def play(lab: Lab, tmp_path: Path, *options: str) -> Done:
    playbook = tmp_path / "playbook.yml"
    playbook.write_text(BOOK)
    values: dict[str, Any] = {"plan": lab.plan.to_json(), "folder": str(lab.base)}
    values["ansible_python_interpreter"] = str(next(path for path in PYTHONS if str(path) != sys.executable))
    command = [PLAYBOOK, "-i", AGENT + ",", "-c", "local", str(playbook), *options, "-e", json.dumps(values)]
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_STDOUT_CALLBACK": "default"}
    return run_playbook(command, environment)


def test_a_plan_leads_to_reachable_containers(lab: Lab, tmp_path: Path) -> None:
    planned = play(lab, tmp_path, "--check", "--diff").check()
    assert "changed=1" in planned.text
    assert "main1, sub1:" in planned.text
    assert not lab.base.exists()

    lab.create()
    equipped = play(lab, tmp_path, "-vvv", "--diff")
    assert "changed=1" in equipped.text, equipped.text
    assert sorted(os.listdir(lab.artifacts.folder)) == ["id_container", "identity", "known_hosts", "ssh_config"]

    lab.start()
    again = play(lab, tmp_path, "--diff")
    assert "changed=0" in again.text, again.text
    assert lab.ssh("sub1", "hostname") == "sub1\n"

    secret = (lab.artifacts.read("identity") or b"").decode().split()[0]
    shown = planned.text + equipped.text + again.text
    bundle = base64.b64encode(b'{"authority"').decode()
    assert [word for word in (secret, "OPENSSH PRIVATE", "b3BlbnNzaC1rZXk", bundle) if word in shown] == []


def test_another_controller_is_refused(lab: Lab, tmp_path: Path) -> None:
    lab.create(["main1"])
    lab.install(["main1"])
    lab.start(["main1"])
    lab.artifacts.remove(lab.plan.session.id)
    lab.create(["sub1"])

    refused = play(lab, tmp_path)
    assert refused.code != 0
    assert "runs on agent1 with an identity that this controller does not have" in refused.text
    assert not os.path.exists(lab.config)
