# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The role agent makes a Swarm of hosts of which only some need root for their engine: Ansible runs it with stand-ins for its steps."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from one_role import run_role

PLANNED = {"head": "init", "other": "join"}
# The engine of one host is for root alone. A worker joins what the head has created, with its token.
STEP = """
import json, os
from ansible.plugins.action import ActionBase

PLAN = {"steps": json.loads(os.environ["PLANNED"]), "refused": {}, "lead": "head", "cluster": "", "address": "", "managers": []}

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
        first = "head:swarm.join" in done or "head" not in PLAN["steps"]
        if (call, own) in (("swarm.join", "other"), ("swarm.describe", "other")) and not first:
            return {"failed": True, "msg": "there is no Swarm yet"}
        with open(LOG, "a") as log:
            log.write(host + ":" + call + "\\n")
        return {
            "settings.of_agent": {"swarm": True, "become": True, "is_head": own == "head", "head": "head", "swarm_manager": False,
                                  "agents": ["other", "head"], "docker": ["docker"], "swarm_addresses": [], "state_dir": "/"},
            "runtime.examine": {"engine": True, "sdk": True, "has_users": True, "is_root": needs_root, "swarm": {"node_id": "n1"}, "firewalls": []},
            "swarm.plan_join": {"plan": PLAN},
            "swarm.join": {"changed": True, "swarm": {"node_id": "n2"}},
            "swarm.describe": {"tokens": {"worker": "secret"}},
            "root.check": {"is_root": True, "lines": ["fit"]},
        }.get(call, {"changed": True})
"""


def swarm_steps(
    folder: Path, names: list[str], needs_root: str = "", planned: dict[str, str] = PLANNED, **keywords: int
) -> list[str]:
    """What the role does to Swarms of these hosts, with these keywords of the play."""
    play = {"hosts": "agents", "gather_facts": False, "roles": ["cluster.compute.agent"], **keywords}
    (folder / "play.yml").write_text(json.dumps([play]))
    hosts = "".join(f"{name} ansible_connection=local\n" for name in names)
    (folder / "hosts").write_text(f"[agents]\n{hosts}[all:vars]\nansible_python_interpreter={sys.executable}\n")
    own = {"STEPS": str(folder / "steps"), "NEEDS_ROOT": needs_root, "PLANNED": json.dumps(planned)}
    code, text = run_role(["-i", "hosts", "play.yml", "--tags", "swarm"], folder, own, STEP)
    assert code == 0, text
    steps = (folder / "steps").read_text().split()
    return [step for step in steps if ":swarm." in step and ":swarm.plan" not in step]


@pytest.mark.parametrize("needs_root", ["head", "other"])
def test_a_host_joins_the_swarm_of_a_head_with_other_rights(needs_root: str, tmp_path: Path) -> None:
    """The other host comes first in the inventory."""
    steps = swarm_steps(tmp_path, ["other", "head"], needs_root)
    assert steps == ["head:swarm.join", "head:swarm.describe", "other:swarm.join", "head:swarm.remove_former"]


def test_hosts_join_in_batches_after_the_head(tmp_path: Path) -> None:
    """The second batch asks the head what the first has made. The stand-in lets both ask for the tokens."""
    steps = swarm_steps(tmp_path, ["head", "other"], serial=1)
    assert steps == ["head:swarm.join", *["head:swarm.describe"] * 3, "other:swarm.join", "head:swarm.remove_former"]


@pytest.mark.parametrize("needs_root", ["head", "other"])
def test_a_host_with_another_address_leaves_and_joins_and_its_former_node_is_removed(
    needs_root: str, tmp_path: Path
) -> None:
    steps = swarm_steps(tmp_path, ["head", "other"], needs_root, {"other": "rejoin"})
    assert steps == ["head:swarm.describe", "other:swarm.leave", "other:swarm.join", "head:swarm.remove_nodes"]
