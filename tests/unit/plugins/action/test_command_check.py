# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The first task of each playbook."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from ansible import context
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.utils.context_objects import CLIArgs
from ansible.vars.hostvars import HostVars
from ansible.vars.manager import VariableManager
from warm_playbook import run_of_checkout

from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError
from ansible_collections.cluster.compute.plugins.plugin_utils._settings.known_names import PREFIXES
from ansible_collections.cluster.compute.plugins.plugin_utils._variables import known_names_check

ROOT = Path(__file__).resolve().parents[4]
PLAYBOOKS = sorted((ROOT / "playbooks").glob("*.yml"))
WITHOUT_AGENTS = {"session_exec.yml", "session_copy.yml"}
# Their work is on the controller alone.
HERE = {*WITHOUT_AGENTS, "queue_timer.yml"}
IMPORT = "ansible.builtin.import_playbook"


@pytest.fixture(autouse=True)
def command_line(monkeypatch: pytest.MonkeyPatch) -> Json:
    """The extra variables (-e)."""
    extra_vars: Json = {}
    monkeypatch.setattr(known_names_check, "load_extra_vars", lambda _loader: extra_vars)
    return extra_vars


def check(folder: Path, inventory: Json, agents: bool = True) -> None:
    """Check the command as Ansible has read this inventory, with the variables of files beside it."""
    (folder / "hosts.yml").write_text(yaml.dump(inventory))
    loader = DataLoader()
    hosts = InventoryManager(loader=loader, sources=[str(folder / "hosts.yml")])
    hostvars = HostVars(hosts, VariableManager(loader=loader, inventory=hosts), loader)
    groups = hosts.get_groups_dict()
    own = {"hostvars": hostvars, "groups": groups, "inventory_hostname": "localhost", "playbook_dir": "/playbooks"}
    templar = SimpleNamespace(template=lambda value: value)
    action: Any = SimpleNamespace(_loader=loader, _templar=templar, task_vars=own)
    known_names_check.check_command(action, agents)


def site(**variables: Any) -> Json:
    return {"agents": {"hosts": {"n1": {}, "n2": variables}}, "others": {"hosts": {"web": {"session_mount": 1}}}}


def test_a_misspelled_variable_of_the_command_line_is_refused(tmp_path: Path, command_line: Json) -> None:
    command_line["session_cluser_size"] = "3"
    message = r"^session_cluser_size \(from -e\): unknown; did you mean session_cluster_size\? docs/variables.md "
    with pytest.raises(ComputeError, match=message):
        check(tmp_path, site())


@pytest.mark.parametrize("place", ["inline", "group_vars", "host_vars"])
def test_a_misspelled_variable_of_the_inventory_is_refused(tmp_path: Path, place: str) -> None:
    path = {"group_vars": "agents.yml", "host_vars": "n2.yml"}.get(place)
    if path:
        (tmp_path / place).mkdir()
        (tmp_path / place / path).write_text("session_mount: []\n")
    hosts = "n1, n2" if place == "group_vars" else "n2"
    with pytest.raises(
        ComputeError, match=rf"^session_mount \(from the inventory, host {hosts}\): unknown; did you mean "
    ):
        check(tmp_path, site() if path else site(session_mount=[]))


def test_known_variables_and_those_of_other_hosts_are_accepted(tmp_path: Path) -> None:
    check(tmp_path, site(session_mounts=[], agent_users=["bob"], other_mount=1))


def test_names_of_other_software_can_be_ignored(tmp_path: Path) -> None:
    with pytest.raises(
        ComputeError, match=r"^agent_user \(from the inventory, host n2\): unknown; did you mean agent_users\?"
    ):
        check(tmp_path, site(agent_user="monitor"))
    check(tmp_path, site(agent_user="monitor", session_ignored_variables=["agent_user"]))
    check(tmp_path, site(agent_user="monitor", session_ignored_variables="agent_user"))


def test_a_name_of_a_session_file_is_refused_with_its_file(
    tmp_path: Path, command_line: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "train.yml"
    file.write_text("name: train\ncluster_size: 3\n")
    monkeypatch.setattr(context, "CLIARGS", CLIArgs({"extra_vars": [f"@{file}", "sesion_owner=bob"]}))
    command_line.update(name="train", cluster_size=3, sesion_owner="bob")
    with pytest.raises(ComputeError) as refused:
        check(tmp_path, site())
    for message in (
        f"cluster_size (from {file}): unknown; did you mean session_cluster_size?",
        f"name (from {file}): unknown; did you mean session_name?",
        "sesion_owner (from -e): unknown; did you mean session_owner?",
    ):
        assert message in refused.value.message


def test_a_name_that_a_template_reads_is_accepted(tmp_path: Path, command_line: Json) -> None:
    command_line.update(run=7, session_name="train-{{ run }}", rack=2)
    check(tmp_path, site(agent_resource_group="rack{{ rack | default(1) }}"))
    command_line["runs"] = 8
    with pytest.raises(ComputeError, match=r"^runs \(from -e\): unknown"):
        check(tmp_path, site(agent_resource_group="rack{{ rack | default(1) }}"))


def test_a_playbook_of_a_user_has_variables_of_its_own(
    tmp_path: Path, command_line: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    for playbook, code in ((str(tmp_path / "mine.yml"), 0), ("cluster.compute.cluster_session", 1)):
        monkeypatch.setattr(context, "CLIARGS", CLIArgs({"args": [playbook]}))
        command_line.update(dataset="mnist")
        if code:
            with pytest.raises(ComputeError, match=r"^dataset \(from -e\): unknown"):
                check(tmp_path, site())
        else:
            check(tmp_path, site())


def test_an_inventory_without_agents_is_refused_unless_none_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    message = (
        "The inventory has no host in the group agents: name one with -i FILE or ANSIBLE_INVENTORY{}. "
        "For this machine alone: -i /playbooks/inventory/local.yml."
    )
    with pytest.raises(ComputeError) as refused:
        check(tmp_path, {"all": {"hosts": {"web": {}}}})
    assert str(refused.value) == message.format("")
    Path("hosts.yml").touch()
    with pytest.raises(ComputeError) as refused:
        check(tmp_path, {"all": {"hosts": {"web": {}}}})
    assert str(refused.value) == message.format(", as in -i hosts.yml")
    check(tmp_path, {"all": {"hosts": {"web": {}}}}, agents=False)


def test_a_hundred_agents_are_checked_in_a_moment(tmp_path: Path) -> None:
    variables = {"ansible_host": "192.0.2.1", "agent_cpus": 4, "agent_users": ["bob"], "image_tag": "x"}
    inventory = {"agents": {"hosts": {f"n{number}": variables for number in range(100)}}}
    check(tmp_path, inventory)
    begun = time.process_time()
    check(tmp_path, inventory)
    assert time.process_time() - begun < 1.0  # with the inventory itself, which Ansible has read anyway


@pytest.mark.parametrize("playbook", PLAYBOOKS, ids=lambda path: str(path.name))
def test_every_playbook_begins_with_the_check(playbook: Path) -> None:
    play = yaml.safe_load(playbook.read_text())[0]
    if IMPORT in play:
        play = yaml.safe_load((playbook.parent / play[IMPORT]).read_text())[0]
    (first, *_others) = play.get("pre_tasks") or play["tasks"]
    asked = first["cluster.compute.agent_step"]
    assert asked["call"] == "command.check"
    needs_agents = asked.get("params", {}).get("agents", True)
    assert (needs_agents is False) == (playbook.name in WITHOUT_AGENTS)
    # A limit to one agent must not leave a misspelled variable unseen.
    assert play["hosts"] == ("localhost" if playbook.name in HERE else "localhost:agents")


@pytest.mark.parametrize("playbook", PLAYBOOKS, ids=lambda path: str(path.name))
def test_every_play_is_linear_whatever_the_settings_of_ansible(playbook: Path) -> None:
    """The actions run once for all hosts, which other strategies refuse."""
    plays = [play for play in yaml.safe_load(playbook.read_text()) if IMPORT not in play]
    assert {play["strategy"] for play in plays} <= {"ansible.builtin.linear"}


def test_an_inventory_that_does_not_exist_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "CLIARGS", CLIArgs({"inventory": ["n1,", "/nowhere/hosts.yml"]}))
    with pytest.raises(ComputeError, match=r"^There is no inventory /nowhere/hosts\.yml: name one with -i FILE"):
        check(tmp_path, {"all": {"hosts": {"web": {}}}})


def test_a_limit_to_an_agent_leaves_no_misspelled_variable_unseen(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("[agents]\nn1 ansible_connection=local\nn2 ansible_connection=local\n")
    words = ["-i", str(tmp_path / "hosts"), "playbooks/terminate.yml", "--limit", "n2", "-e", "session_nam=train"]
    code, text = run_of_checkout("playbook", words, checkout)
    assert "session_nam (from -e): unknown; did you mean session_name?" in " ".join(text.split())
    assert code == 2


@pytest.mark.parametrize("playbook", PLAYBOOKS, ids=lambda path: str(path.name))
def test_no_variable_of_a_play_hides_one_of_the_inventory(playbook: Path) -> None:
    known = known_names_check.DECLARED | known_names_check.of_roles()
    assert not known & {name for play in yaml.safe_load(playbook.read_text()) for name in play.get("vars") or ()}


def test_the_results_of_playbooks_and_roles_are_known_names() -> None:
    lists = [*ROOT.glob("roles/*/tasks/*.yml"), *ROOT.glob("playbooks/tasks/*.yml")]
    blocks = [one for path in lists for one in yaml.safe_load(path.read_text()) or ()]
    blocks += [
        one for path in PLAYBOOKS for play in yaml.safe_load(path.read_text()) for one in play.get("tasks") or ()
    ]
    tasks = [task for one in blocks for task in one.get("block", [one])]
    names = {name for task in tasks for name in [task.get("register", ""), *task.get("ansible.builtin.set_fact", ())]}
    assert {name for name in names if name.startswith(PREFIXES)} == known_names_check.RESULTS
