# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tasks that open and close a firewall, over a program that answers as ufw does in a login with German messages."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from warm_playbook import run_of_checkout

TASKS = Path(__file__).resolve().parents[3] / "roles/agent/tasks/firewall.yml"
RECAP = "from ansible import constants; constants.DEFAULT_STDOUT_CALLBACK = 'default'"
UFW = """#!/bin/sh
active=Aktiv skipping='Bestehende Regel wird nicht hinzugefügt' absent='Regel existiert nicht'
[ "$LC_ALL" != C ] || active=active skipping='Skipping adding existing rule' absent='Could not delete non-existent rule'
case $1 in
status) echo "Status: $active" ;;
allow) grep -s -q -x "$*" {rules} && echo "$skipping" || echo "$*" >>{rules} ;;
delete)
    shift
    grep -s -q -x "$*" {rules} || { echo "$absent" && exit 0; }
    grep -v -x "$*" {rules} >{rules}.new
    mv {rules}.new {rules}
    ;;
esac
"""


def test_ufw_is_understood_in_any_language_when_an_agent_joins_and_leaves(tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    programs = {"ufw": UFW.replace("{rules}", str(rules)), "firewall-cmd": "#!/bin/sh\nexit 252\n"}
    for name, script in programs.items():
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    given: dict[str, Any] = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "__agent_swarm_ports": [{"port": 2377, "protocol": "tcp"}, {"port": 7946, "protocol": "udp"}],
        "__agent_firewall_peers": ["192.0.2.2"],
    }
    # One after the other, as if each were this host at another time.
    hosts = {"opens": False, "opens-again": False, "closes": True, "closes-again": True}
    inventory = {"all": {"hosts": {name: {"__agent_is_leaving": leaves} for name, leaves in hosts.items()}}}
    (tmp_path / "hosts.yml").write_text(json.dumps(inventory))
    opened = ["allow proto tcp from 192.0.2.2 to any port 2377", "allow proto udp from 192.0.2.2 to any port 7946"]
    left = f"lookup('file', '{rules}').splitlines() == ([] if __agent_is_leaving else {opened})"
    tasks = [{"ansible.builtin.include_tasks": str(TASKS)}, {"ansible.builtin.assert": {"that": left}}]
    play = {"hosts": "all", "serial": 1, "gather_facts": False, "vars": given, "tasks": tasks}
    (tmp_path / "play.json").write_text(json.dumps([play]))
    # As sshd of a host accepts it from the controller.
    login = {"LC_ALL": "C.UTF-8", "LANG": "de_DE.UTF-8", "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    code, text = run_of_checkout("playbook", ["-i", "hosts.yml", "play.json"], tmp_path, login, RECAP)
    changes = re.findall(r"^(\S+) +: .*changed=(\d)", text, re.MULTILINE)
    assert dict(changes) == {"opens": "1", "opens-again": "0", "closes": "1", "closes-again": "0"}, text
    assert code == 0, text
