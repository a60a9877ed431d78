# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One task that works on many hosts: their variables, lost hosts, the live count, and the end of ansible-playbook."""

from __future__ import annotations

import json
import os
import sys
import threading
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from expressions import trusted
from played import played
from warm_playbook import run_of_checkout

from ansible_collections.cluster.compute.plugins.action import network
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts import connection as other_hosts
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.call import Call, as_sent
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.transfer_watch import TERMINAL

ROOT = Path(__file__).resolve().parents[5]


class Host:
    """A host that answers with its options, or is lost."""

    closed: list[str]

    def __init__(self, _action: object, name: str) -> None:
        self.name = name

    def step(self, call: Call[Json]) -> Json:
        if self.name == "lost":
            raise AnsibleConnectionFailure("no route to host")
        return {"changed": False, "asked": [call.step, call.params]}

    def close(self) -> None:
        Host.closed.append(self.name)


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> other_hosts.OtherHosts:
    Host.closed = []
    monkeypatch.setattr(other_hosts, "OtherHost", Host)
    return other_hosts.OtherHosts(played(network.ActionModule))


def test_each_host_is_asked_in_order_and_closed(hosts: other_hosts.OtherHosts) -> None:
    results = hosts.counted(
        ["b", "a"], lambda host: hosts.step(host, Call("containers.created", {"network": True}, as_sent))
    )
    assert list(results) == ["b", "a"]
    assert results["a"]["asked"] == ["containers.created", {"network": True}]
    hosts.close()
    assert sorted(Host.closed) == ["a", "b"]


def test_hosts_are_closed_at_the_same_time(hosts: other_hosts.OtherHosts, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each may remove a directory over a slow connection, or over one that is lost."""
    both = threading.Barrier(2)
    monkeypatch.setattr(Host, "close", lambda _host: both.wait(10))
    hosts.each(["a", "b"], hosts.host)
    hosts.close()


def test_the_hosts_that_have_ended_are_counted(
    hosts: other_hosts.OtherHosts, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(TERMINAL, "agents", str(tmp_path / "agents"))
    monkeypatch.setattr(other_hosts, "PARALLEL", 1)
    seen = []

    hosts.counted(["a", "b", "c"], lambda _host: seen.append((tmp_path / "agents").read_text()))
    assert seen == ["0 3", "1 3", "2 3"]
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_begun_after_the_end_of_ansible_playbook(
    hosts: other_hosts.OtherHosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getppid", lambda: -1)  # 1 may be the parent of the tests themselves
    with pytest.raises(ComputeError, match=r"ansible-playbook has ended, so nothing is begun on a\."):
        hosts.each(["a"], lambda host: hosts.step(host, Call("containers.created", {}, as_sent)))


def test_threads_know_the_task_and_share_no_stack_of_ansible(hosts: other_hosts.OtherHosts) -> None:
    """Ansible's broker of accesses has one object for each thread."""
    task, broker = ContextVar("TaskContext"), ContextVar("AnsibleAccessContext")
    task.set("launch")
    broker.set([])
    assert hosts.each(["a", "b"], lambda _host: (task.get(), broker.get(None))) == [("launch", None)] * 2


def test_threads_template_at_the_same_time(hosts: other_hosts.OtherHosts) -> None:
    templar = Templar(DataLoader(), variables={"number": 1, "text": trusted("{{ number }}" * 20)})
    text = trusted("{{ text }}-{{ text }}")
    templar.template(text)

    def templated(_host: str) -> set[str]:
        own = templar.copy_with_new_env()
        return {str(own.template(text)) for _time in range(50)}

    assert hosts.each([str(number) for number in range(8)], templated) == [{"1" * 20 + "-" + "1" * 20}] * 8


PLAY = """
- hosts: all
  gather_facts: false
  vars:
    agent_docker_host: "unix:///nowhere/{{ inventory_hostname }}-{{ number }}"
  tasks:
    - cluster.compute.agent_step:
        call: image.distribute
        params:
          name: train:1
          needing: %s
          asked: %s
      run_once: true
      register: result
      ignore_errors: true
    - ansible.builtin.copy:
        content: "{{ result | to_json }}"
        dest: "{{ playbook_dir }}/result.json"
        mode: "0600"
      run_once: true
"""


# A sudo that takes one password, and its user's own rights.
SUDO = """#!{python}
import os, sys
prompt, command = sys.argv[sys.argv.index("-p") + 1], sys.argv[-3:]
os.write(2, prompt.encode())
sys.exit("Sorry, try again.") if os.read(0, 100) != b"secret\\n" else os.execvp(command[0], command)
"""


def play(folder: Path, agents: str, *more: str) -> Any:
    (folder / "play.yml").write_text(PLAY % (agents, agents))
    common = f"ansible_connection=local ansible_python_interpreter={sys.executable}"
    (folder / "hosts.ini").write_text(f"a number=1 {common}\nb number=2 {common}\n")
    arguments = ["-i", str(folder / "hosts.ini"), str(folder / "play.yml"), *more]
    code, text = run_of_checkout("playbook", arguments, ROOT)
    assert code == 0, text
    return json.loads((folder / "result.json").read_text())


def test_variables_of_the_play_and_of_each_host_hold(tmp_path: Path) -> None:
    """A play's own variables are not in ``hostvars``."""
    result = play(tmp_path, "[a, b]")
    assert result["failed"]
    assert "/nowhere/a-1" in result["msg"]
    assert "/nowhere/b-2" in result["msg"]


def test_a_host_that_the_inventory_lacks_is_refused(tmp_path: Path) -> None:
    assert "the inventory has no host 'c'" in play(tmp_path, "[a, c]")["msg"]


def test_the_password_that_ansible_asks_for_reaches_every_host(tmp_path: Path) -> None:
    sudo, password = tmp_path / "sudo", tmp_path / "password"
    sudo.write_text(SUDO.format(python=sys.executable))
    sudo.chmod(0o700)
    password.write_text("secret\n")
    result = play(
        tmp_path, "[b]", "--become", "--become-password-file", str(password), "-e", f"ansible_become_exe={sudo}"
    )
    assert "/nowhere/b-2" in result["msg"]
