# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The role agent makes a Swarm of hosts of which only some need root for their engine: Ansible runs it with stand-ins for its steps."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from one_role import run_role

# The engine of one host is for root alone. A worker joins what the head has created, with its token.
STEP = """
import json, os
from ansible.plugins.action import ActionBase

PLAN = {"steps": {"head": "init", "other": "join"}, "refused": {}, "lead": "head", "cluster": "", "address": "", "managers": []}

class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        call, own = self._task.args["call"], task_vars["inventory_hostname"]
        host = self._task.delegate_to or own
        needs_root = host == os.environ["NEEDS_ROOT"]
        is_in_swarm = call.startswith("swarm.") and call != "swarm.plan_join"
        if is_in_swarm and needs_root and not self._task.become:
            return {"failed": True, "msg": host + ": permission denied"}
        if is_in_swarm and not needs_root and self._task.become:
            return {"failed": True, "msg": host + ": no password for sudo"}
        LOG = os.environ["STEPS"]
        done = open(LOG).read().split() if os.path.exists(LOG) else []
        if (call, own) in (("swarm.join", "other"), ("swarm.describe", "other")) and "head:swarm.join" not in done:
            return {"failed": True, "msg": "there is no Swarm yet"}
        with open(LOG, "a") as log:
            log.write(host + ":" + call + "\\n")
        return {
            "settings.of_agent": {"swarm": True, "become": True, "is_head": own == "head", "head": "head", "swarm_manager": False,
                                  "agents": ["other", "head"], "docker": ["docker"], "swarm_addresses": [], "state_dir": "/"},
            "runtime.examine": {"engine": True, "sdk": True, "has_users": True, "is_root": needs_root, "swarm": {}, "firewalls": []},
            "swarm.plan_join": {"plan": PLAN},
            "swarm.describe": {"tokens": {"worker": "secret"}},
            "root.check": {"is_root": True, "lines": ["fit"]},
        }.get(call, {"changed": True})
"""


@pytest.mark.parametrize("needs_root", ["head", "other"])
def test_a_host_joins_the_swarm_of_a_head_with_other_rights(needs_root: str, tmp_path: Path) -> None:
    """The other host comes first in the inventory."""
    play = "- hosts: agents\n  gather_facts: false\n  roles: [cluster.compute.agent]\n"
    (tmp_path / "play.yml").write_text(play)
    hosts = "".join(f"{name} ansible_connection=local\n" for name in ("other", "head"))
    (tmp_path / "hosts").write_text(f"[agents]\n{hosts}[all:vars]\nansible_python_interpreter={sys.executable}\n")
    own = {"STEPS": str(tmp_path / "steps"), "NEEDS_ROOT": needs_root}
    code, text = run_role(["-i", "hosts", "play.yml", "--tags", "swarm"], tmp_path, own, STEP)
    assert code == 0, text
    steps = (tmp_path / "steps").read_text().split()
    assert [step for step in steps if ":swarm." in step and ":swarm.plan" not in step] == [
        "head:swarm.join",
        "head:swarm.describe",
        "other:swarm.join",
    ]
