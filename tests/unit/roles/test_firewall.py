# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tasks that open and close a firewall, over a program that answers as ufw does in a login with German messages."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

TASKS = Path(__file__).resolve().parents[3] / "roles/agent/tasks/firewall.yml"
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
        "ansible_python_interpreter": sys.executable,
        "__agent_swarm_ports": [{"port": 2377, "protocol": "tcp"}, {"port": 7946, "protocol": "udp"}],
        "__agent_firewall_peers": ["192.0.2.2"],
    }
    tasks = [{"ansible.builtin.include_tasks": str(TASKS)}]
    play = {"hosts": "localhost", "connection": "local", "gather_facts": False, "vars": given, "tasks": tasks}
    (tmp_path / "play.json").write_text(json.dumps([play]))
    command = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", "localhost,", str(tmp_path / "play.json")]
    # As sshd of a host accepts it from the controller.
    login = {"LC_ALL": "C.UTF-8", "LANG": "de_DE.UTF-8", "ANSIBLE_STDOUT_CALLBACK": "default"}
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", **login}
    opened = ["allow proto tcp from 192.0.2.2 to any port 2377", "allow proto udp from 192.0.2.2 to any port 7946"]
    for leaves, left in (("false", opened), ("true", [])):
        for changed in (1, 0):
            again = [*command, "-e", "{__agent_is_leaving: %s}" % leaves]
            done = subprocess.run(again, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path)
            assert re.search(r"changed=(\d)", done.stdout + done.stderr)[1] == str(changed), done.stdout  # type: ignore[index]
        assert rules.read_text().splitlines() == left
