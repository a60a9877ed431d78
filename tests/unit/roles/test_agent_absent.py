# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The role agent removes an agent whose engine is for root alone: Ansible runs it with stand-ins for its steps, docker and sudo."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from one_role import run_role

STEP = """
import os
from ansible.plugins.action import ActionBase

class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        call, is_root = self._task.args["call"], bool(self._task.become)
        if call.startswith("swarm.") and call != "swarm.plan_leave":
            if not is_root:
                return {"failed": True, "msg": "permission denied"}
            with open(os.environ["STEPS"], "a") as log:
                log.write(call + "\\n")
        return {
            "settings.of_agent": {"swarm": True, "become": True, "is_head": False, "head": "head", "agents": ["head", "node"],
                                  "docker": ["docker"], "engine_packages_to_remove": ["the-engine"], "state_dir": "/", "swarm_addresses": []},
            "runtime.examine": {"engine": is_root, "is_root": is_root, "firewalls": ["firewall-cmd"]},
            "swarm.describe": {"swarm": {"state": "active", "manager": False, "node_id": "n1", "name": "node"}},
            "swarm.plan_leave": {"plan": {"staying": [], "keepers": {}, "refused": {}, "peers": {"node": ["192.0.2.2"]}, "port": 4790}},
        }.get(call, {"changed": True})
"""
DOCKER = """#!/bin/sh
[ -n "$AS_ROOT" ] || { echo "permission denied" >&2; exit 1; }
case $* in
*"container ls"*) cat "$CONTAINERS" ;;
*"volume ls"*) echo runtime-1 ;;
*"image inspect"*) echo "0f1e2d3c4b5a6978 1" ;;
*) echo "$*" >>"$STEPS" ;;
esac
"""
FIREWALL = """#!/bin/sh
case $* in
*--add*) exit 1 ;;
*--remove*) echo "$*" >>"$STEPS" ;;
esac
"""
SUDO = """#!/bin/sh
while [ "$1" != /bin/sh ]; do shift; done
AS_ROOT=yes exec "$@"
"""


@pytest.mark.parametrize("containers", ["", "alice.demo.main1 alice.demo.main1\n"])
def test_an_engine_that_needs_root_is_examined_and_cleaned_as_root(containers: str, tmp_path: Path) -> None:
    (tmp_path / "play.yml").write_text("- hosts: all\n  gather_facts: false\n  roles: [cluster.compute.agent]\n")
    for name, script in {"docker": DOCKER, "firewall-cmd": FIREWALL, "sudo": SUDO}.items():
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "containers").write_text(containers)
    own = {"STEPS": str(tmp_path / "steps"), "CONTAINERS": str(tmp_path / "containers")}
    own["PATH"] = f"{tmp_path}:{os.environ['PATH']}"
    command = ["-i", "node,", "-c", "local", "play.yml"]
    command += ["-e", "agent_state=absent", "-e", f"ansible_python_interpreter={sys.executable}"]
    # A machine that is an agent keeps its own rules.
    command += ["-e", f"ansible_become_exe={tmp_path}/sudo", "-e", f"__agent_guard={tmp_path}/guard"]
    library, other = tmp_path / "tmp/cluster-compute-1.library", tmp_path / "tmp/other"
    for path in (library, other):
        path.mkdir(parents=True)
    command += ["-e", f"ansible_remote_tmp={tmp_path}/tmp"]
    code, text = run_role(command, tmp_path, own, STEP)
    if containers:
        assert code != 0, text
        assert "still has containers of sessions (alice.demo.main1)" in text, text
        assert not (tmp_path / "steps").exists()
        return
    assert code == 0, text
    assert (library.exists(), other.exists()) == (False, True)
    rule = '--permanent --remove-rich-rule=rule family="ipv4" source address="192.0.2.2" port port="{}" protocol="{}" accept'
    ports = ((2377, "tcp"), (7946, "tcp"), (7946, "udp"), (4790, "udp"))
    assert (tmp_path / "steps").read_text().splitlines() == [
        "swarm.describe",
        "swarm.leave",
        *(rule.format(*port) for port in ports),
        "volume rm runtime-1",
        "image rm --force cluster-compute/reference:1",
    ]
