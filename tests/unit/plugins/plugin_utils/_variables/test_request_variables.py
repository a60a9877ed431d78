# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The variables of the playbooks as the actions check them."""

from __future__ import annotations

import json
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from ansible import context
from ansible.parsing.dataloader import DataLoader
from played import played
from samples import exactly, request

from ansible_collections.cluster.compute.plugins.action import session, session_apps
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError, InputError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.catalogue import Environment
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.holder import login
from ansible_collections.cluster.compute.plugins.plugin_utils._settings.settings import Settings
from ansible_collections.cluster.compute.plugins.plugin_utils._variables import request_variables
from ansible_collections.cluster.compute.plugins.plugin_utils._variables.request_variables import (
    LaunchVariables,
    apps_change,
    check_release,
    checked_settings,
    launch_variables,
    make_requests,
)


@pytest.fixture(autouse=True)
def command_line(monkeypatch: pytest.MonkeyPatch) -> Json:
    """The extra variables (-e)."""
    extra_vars: Json = {}
    monkeypatch.setattr(request_variables, "load_extra_vars", lambda _loader: extra_vars)
    return extra_vars


def of_task(given: dict[str, Any]) -> Json:
    """The variables of a task, which are named without their prefix here."""
    hostvars = given.pop("hostvars", {})
    task_vars = {"session_" + name: value for name, value in given.items()}
    return {**task_vars, "hostvars": hostvars, "ansible_play_hosts_all": ["node1", "node2"]}


def check(playbook: str, **given: Any) -> Settings:
    return checked_settings(played(session.ActionModule, variables=of_task(given)), playbook)


def launch(**variables: Any) -> LaunchVariables:
    given = {"name": "train", "owner": "alice", "image": "reference", **variables}
    return launch_variables(played(session.ActionModule, variables=of_task(given)), {})


def test_a_checked_request_is_in_its_normal_form() -> None:
    mounts = [{"source": "/data", "target": "/d"}, {"source": "cache", "target": "/c"}]
    result = launch(cluster_size="3", mounts=mounts)
    assert result.requests == [request(cluster_size=3, mounts=mounts, image="cluster-compute/reference:1")]


def test_a_source_of_a_mount_may_name_the_owner() -> None:
    mounts = [{"source": "/srv/users/<% owner %>", "target": "/d"}, "home-<%owner%>:/h"]
    sources = [mount.source for mount in launch(mounts=mounts).requests[0].mounts]
    assert sources == ["/srv/users/alice", "home-alice"]
    assert launch(mounts="/srv/<% owner %>:/d").requests[0].mounts[0].source == "/srv/alice"


def test_variables_of_another_session_are_used_where_none_is_given() -> None:
    given = {"session_name": "", "session_cpus": 2, "session_command": "", "session_like": "train"}
    other = {"session_name": "train", "session_cpus": 4, "session_memory": "2g", "session_command": "work"}
    (found,) = launch_variables(played(session.ActionModule, variables={**given, "hostvars": {}}), other).requests
    assert (found.name, found.millicpus, found.memory, found.command) == ("train", 2000, 2 << 30, "work")


def test_each_value_has_its_origin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "train.yml"
    file.write_text("session_memory: 2g\nsession_image: lab\nsession_cpus: 1\n")
    options = (f"@{file}", "session_cpus=2 session_shm=", '{"session_gpus": 0}')
    monkeypatch.setattr(context, "CLIARGS", {"extra_vars": options})
    action = played(session.ActionModule)
    action.given, action._loader = {"session_gpus": 1}, DataLoader()
    given = {"session_cpus": 2, "session_memory": "2g", "session_image": "lab", "session_shm": "", "session_gpus": 0}
    site = {
        "session_owner": "alice",
        "session_preset": "small",
        "session_like": "former",
        "session_environment": {"A": 1},
    }
    own = {"lab": {"versions": {"1": "own/lab:1"}, "command": "work", "environment": {"B": "2"}}}
    action.task_vars = {**given, **site, "session_environments": own, "hostvars": {}}
    other = {"session_name": "former", "session_cpus": 2, "session_memory": "2g", "session_bootstrap": "prepare"}
    found = launch_variables(action, other).origins
    assert {
        name: found[name] for name in found if name not in ("session_environments", "session_like", "session_preset")
    } == {
        "session_name": "session former",
        "session_bootstrap": "session former",
        "session_cpus": "command line",
        "session_memory": str(file),
        "session_image": f"{file}, environment lab",
        "session_command": "environment lab",
        "session_environment": "inventory or playbook, environment lab",
        "session_owner": "inventory or playbook",
        "session_gpus": "task",
        "session_shm": "preset small",
    }


def test_environment_variables_of_a_devcontainer_file_are_added() -> None:
    given = {"session_devcontainer": "devcontainer.json", "session_environment": {"A": "1"}, "hostvars": {}}
    other = {"session_name": "train", "session_environment": {"A": "2", "B": "3"}}
    found = launch_variables(played(session.ActionModule, variables=given), other)
    assert found.requests[0].environment == {"A": "1", "B": "3"}
    assert found.origins["session_name"] == "devcontainer.json"
    assert found.origins["session_environment"] == "inventory or playbook, devcontainer.json"


def test_mounts_of_a_devcontainer_file_are_added_where_the_user_mounts_nothing() -> None:
    """A file does not say where the agents have the project: the user mounts it beside what the file mounts."""
    own = ["/srv/<% owner %>/train:/workspaces/train", {"source": "cache", "target": "/cache"}]
    given = {"session_devcontainer": "x.json", "session_name": "train", "session_owner": "alice", "hostvars": {}}
    other = {"session_mounts": [{"source": "theirs", "target": "/cache/"}, {"source": "data", "target": "/data"}]}
    found = launch_variables(played(session.ActionModule, variables={**given, "session_mounts": own}), other)
    mounts = [(mount.source, mount.target) for mount in found.requests[0].mounts]
    assert mounts == [("/srv/alice/train", "/workspaces/train"), ("cache", "/cache"), ("data", "/data")]


@pytest.mark.parametrize(("options", "cpus"), [(("session_preset=tiny",), 100), ((), 8000)])
def test_a_preset_that_the_command_names_replaces_amounts_of_another_session(
    monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], cpus: int
) -> None:
    """A preset of the inventory does not: the other session has had it, too."""
    monkeypatch.setattr(context, "CLIARGS", {"extra_vars": options})
    action = played(session.ActionModule)
    action._loader = DataLoader()
    given = {"session_preset": "tiny", "session_presets": {"tiny": {"cpus": 0.1, "memory": "64m"}}, "hostvars": {}}
    other = {"session_name": "train", "session_cpus": 8, "session_memory": "2g", "session_shm": "1g"}
    mine = {**given, "session_like": "former", "session_memory": "1g"}
    action.task_vars = mine
    found = launch_variables(action, other)
    made = found.requests[0]
    assert (made.millicpus, made.memory, made.shm) == (cpus, 1 << 30, 1 << 30)
    assert found.origins["session_cpus"] == ("preset tiny" if options else "session former")


def test_an_option_has_precedence_over_its_variable_and_over_a_preset() -> None:
    action = played(session.ActionModule)
    action.given = {"session_cpus": 3, "session_memory": "2g"}
    task_vars = {"session_name": "train", "session_cpus": 2, "session_preset": "small", "session_cluster_size": 2}
    action.task_vars = {**task_vars, "hostvars": {}}
    (found,) = launch_variables(action, {}).requests
    assert (found.millicpus, found.memory, found.size) == (3000, 2 << 30, 2)


def test_an_empty_value_means_the_default() -> None:
    (checked,) = launch(name="", owner=None, command="", memory="", image="", cluster_size="").requests
    assert (checked.owner, checked.memory, checked.size) == (login(), 1 << 30, 1)
    assert checked.image == "cluster-compute/reference:1"


def test_a_limit_of_containers_on_an_agent_allows_several_agents_unless_the_mode_is_given() -> None:
    (checked,) = launch(cluster_size=3, per_agent=1, cluster_mode="").requests
    assert checked.mode == "multi-node"
    with pytest.raises(InputError, match="session_per_agent: 1: contradicts session_cluster_mode single-node"):
        launch(cluster_size=3, per_agent=1, cluster_mode="single-node")


def test_several_sessions_have_numbers() -> None:
    assert [one.name for one in launch(count="3").requests] == ["train-1", "train-2", "train-3"]
    assert [one.name for one in launch(count=1).requests] == ["train"]


SIZE = "must be a whole number from 1 to 1000"
NAME = "must have 4 to 64 letters, digits, '-', '_' or '.', and must start and end with a letter or digit"
VARIABLE = "must have letters, digits and '_' only, and must not start with a digit"
EXPRESSION = "the text between <% and %> must be a valid expression over"

# Variable, value and the beginning of the error: the variable, the value as it is shown, the rule.
REFUSED: list[tuple[str, Any, str]] = [
    ("cluster_size", 0, f"0: {SIZE}."),
    ("cluster_size", "-1", f"'-1': {SIZE}."),
    ("cluster_size", "three", f"'three': {SIZE}."),
    ("cluster_size", "1000000", f"'1000000': {SIZE}."),
    ("cluster_mode", "galaxy", "'galaxy': must be one of: single-node, multi-node."),
    ("name", "abc", f"'abc': {NAME}."),
    ("name", "a" * 65, f"'{'a' * 65}': {NAME}."),
    ("name", "two words", f"'two words': {NAME}."),
    ("name", "a/../b/c", f"'a/../b/c': {NAME}."),
    ("name", "-dash", f"'-dash': {NAME}."),
    ("name", "line\nbreak", f"'line\\nbreak': {NAME}."),
    ("name", "break\n", f"'break\\n': {NAME}."),
    ("shm", "2g", "'2g': must be at most session_memory, which is 1g."),
    ("memory", "1x", "'1x': must be a number with an optional unit b, k, m, g or t, as in 512m or 16g"),
    ("cpus", "0", "'0': must be at least 0.01."),
    ("environment", {"BACKENDAI_ME": "1"}, "'BACKENDAI_ME': must not start with BACKENDAI_: the session sets these"),
    ("environment", {"A\nB": "1"}, f"'A\\nB': {VARIABLE}."),
    ("environment", {"A=B": "1"}, f"'A=B': {VARIABLE}."),
    ("environment", {"A": "1\n2"}, "A: '1\\n2': must not contain newlines or control characters."),
    ("environment", {"A": "<% rank %"}, f"A: '<% rank %': {EXPRESSION}"),
    ("environment", {"A": "<% ''.__class__ %>"}, "A: \"<% ''.__class__ %>\": the text between"),
    ("environment", {"A": "<% nope %>"}, f"A: '<% nope %>': {EXPRESSION}"),
    ("mounts", [{"source": "/tmp", "target": "data"}], "'data': must be an absolute path without '.' and '..'"),
    ("count", 0, "0: "),
    ("wait", "soon", "'soon': "),
    ("queue_policy", "lifo", "'lifo': "),
    ("launch_timeout", 0, "0: must be a whole number from 1 to 2147483647."),
    ("wait_result", "perhaps", "'perhaps': "),
]


@pytest.mark.parametrize(("variable", "value", "message"), REFUSED)
def test_bad_input_is_refused_on_the_controller(variable: str, value: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        launch(**{variable: value})
    assert caught.value.message.startswith(f"session_{variable}: {message}")


def test_the_numbers_of_several_sessions_count_in_the_length_of_a_name() -> None:
    with pytest.raises(InputError, match=r"^session_name: .*must have 4 to 64 letters"):
        launch(name="n" * 64, count=2)


def test_a_designated_agent_must_exist() -> None:
    message = "session_agents: 'nosuch': must be an agent of this play, which are node1, node2."
    with pytest.raises(InputError, match=exactly(message)):
        launch(agents=["node1", "nosuch"])


def test_what_ansible_splits_off_a_value_is_refused(command_line: Json) -> None:
    command_line["_raw_params"] = "before; exit 3"
    with pytest.raises(
        InputError, match=r"^-e: 'before; exit 3': .*-e '\{\"session_command\": \"echo before; exit 3\"\}'\.$"
    ):
        launch(command="echo")


def test_settings_are_returned_and_secrets_are_not() -> None:
    settings = launch(wait_result="yes", registry_username="bot", registry_password="s3cret").settings
    assert (settings.wait_result, settings.registry_username) == (True, "bot")
    assert "s3cret" not in str(settings)


@pytest.mark.parametrize("group", ["default", "gpu", "a100"])
def test_a_resource_group_of_an_agent_is_accepted(group: str) -> None:
    hostvars = {"node1": {"agent_resource_group": ["gpu", "a100"]}}
    assert launch(resource_group=group, hostvars=hostvars).requests[0].group == group


def test_a_resource_group_that_no_agent_has_is_refused() -> None:
    hostvars = {"node1": {"agent_resource_group": "gpu, a100"}, "node2": {"agent_resource_group": ["cpu"]}}
    message = (
        "session_resource_group: 'gpus': must be a resource group of an agent of this play, which are gpu, a100, cpu."
    )
    with pytest.raises(InputError, match=exactly(message)):
        launch(resource_group="gpus", hostvars=hostvars)


def test_the_only_resource_group_of_the_agents_is_chosen() -> None:
    only = {"node1": {"agent_resource_group": "gpu"}, "node2": {"agent_resource_group": ["gpu"]}}
    assert launch(hostvars=only).requests[0].group == "gpu"
    several = {"node1": {"agent_resource_group": "gpu"}, "node2": {"agent_resource_group": "cpu"}}
    assert launch(hostvars=several).requests[0].group == "default"  # the head knows the policy


@pytest.mark.parametrize("playbook", ["terminate", "logs", "restart"])
def test_a_name_is_required(playbook: str) -> None:
    with pytest.raises(InputError, match=r"^session_name: '': must be given"):
        check(playbook)
    check(playbook, name="train")


def test_only_lists_and_logs_are_of_every_owner() -> None:
    check("list", owner="all")
    with pytest.raises(InputError, match=r"^session_owner: 'all': "):
        check("terminate", owner="all", name="train")


def test_a_preset_gives_the_resources() -> None:
    assert launch(preset="medium").requests == launch(cpus=4, memory="16g", shm="2g", gpus=0).requests


def test_a_resource_beside_a_preset_has_precedence_also_if_it_is_the_default() -> None:
    (checked,) = launch(preset="large", cpus=1, memory="").requests
    assert (checked.millicpus, checked.memory, checked.gpus) == (1000, 64 << 30, 1)


def test_the_inventory_may_have_presets_of_its_own() -> None:
    presets = {"tiny": {"cpus": 0.1, "memory": "64m", "shm": "16m"}}
    (checked,) = launch(preset="tiny", presets=presets).requests
    assert (checked.millicpus, checked.memory, checked.shm, checked.gpus) == (100, 64 << 20, 16 << 20, 0)
    with pytest.raises(
        InputError, match=exactly("session_preset: 'small': must be a preset of session_presets: tiny.")
    ):
        launch(preset="small", presets=presets)


@pytest.mark.parametrize(
    ("presets", "message"),
    [
        (["small"], "session_presets: ['small']: must be a dictionary of presets by name."),
        ({"a": 3}, "session_presets.a: 3: must be a dictionary of cpus, memory, shm, gpus."),
        ({"a": {"disk": "1g"}}, "session_presets.a: 'disk': must be one of cpus, memory, shm, gpus."),
        ({"a": {"cpus": 0}}, "session_presets.a.cpus: 0: must be at least 0.01."),
    ],
)
def test_a_wrong_preset_is_refused_also_if_it_is_not_used(presets: Any, message: str) -> None:
    with pytest.raises(InputError, match=exactly(message)):
        launch(presets=presets)


@pytest.mark.parametrize("name", ["sweep-*", "sweep-[1-3]", "sweep-?", "sweep-1"])
def test_the_name_to_terminate_may_be_a_pattern(name: str) -> None:
    assert check("terminate", name=name, many="yes").many is True


@pytest.mark.parametrize("playbook", [launch, partial(check, "logs")])
def test_no_other_name_is_a_pattern(playbook: Any) -> None:
    with pytest.raises(InputError, match="session_name"):
        playbook(name="sweep-*")


def test_a_pattern_has_the_characters_of_names() -> None:
    with pytest.raises(
        InputError,
        match=exactly(
            "session_name: 'a/*': must be a name, or a pattern of a name's characters with '*', '?' and '[…]'."
        ),
    ):
        check("terminate", name="a/*")


@pytest.mark.parametrize("version", ["2.16.14", "2.17.6", "2.17.0rc1", "2.18.0", "2.18.0rc2"])
def test_a_vulnerable_ansible_core_is_refused(version: str) -> None:
    with pytest.raises(ComputeError, match=r"ansible-core .* has CVE-2024-11079, .*; install .*\.$"):
        check_release(version, "3.1.6")


@pytest.mark.parametrize("version", ["2.17.7", "2.17.14", "2.18.1", "2.19.0", "2.20.0.dev0", "3.0"])
def test_other_releases_of_ansible_core_are_accepted(version: str) -> None:
    check_release(version, "3.1.6")


@pytest.mark.parametrize(
    ("image", "name", "port"),
    [("cluster-compute/lab:1.0", "tensorboard", 6006), ("r:4", "rstudio", 8787), ("any:1", "tensorboard", 6006)],
)
def test_the_image_of_a_running_session_gives_apps_their_names(
    image: str, name: str, port: int, tmp_path: Path
) -> None:
    document = {
        "session": {"id": str(uuid4()), "name": "train", "owner": "alice", "image": image, "user": {"name": "work"}},
        **{"network": {"driver": "bridge"}, "containers": [], "apps": []},
    }
    (tmp_path / "train").mkdir()
    (tmp_path / "train/session.json").write_text(json.dumps(document))
    own = {"r": {"versions": {"4": "r:4"}, "apps": [{"name": "rstudio", "port": 8787, "command": "exec r"}]}}
    given = {"name": "train", "artifacts": str(tmp_path), "environments": own}
    [app] = apps_change(played(session_apps.ActionModule, variables=of_task({"apps": name, **given}))).apps
    assert (app.name, app.port) == (name, port)
    with pytest.raises(InputError, match=r"session_apps: 'none': .* has no app of this name, only"):
        apps_change(played(session_apps.ActionModule, variables=of_task({"apps": "none", **given})))


def test_a_numbered_session_needs_a_name_in_quotes() -> None:
    with pytest.raises(InputError, match="must be in quotes"):
        make_requests({"session_name": 5349}, 2)


@pytest.mark.parametrize(
    ("given", "image", "found"),
    [
        ("", "site/lab:2", "mylab"),
        ("", "site/lab:1", "other"),
        ("mylab:1", "site/lab:1", "mylab"),
        ("mylab", "site/unknown:1", "site/unknown:1"),
    ],
)
def test_apps_are_of_the_environment_that_has_the_image_of_the_running_session(
    given: str, image: str, found: str
) -> None:
    """The environments of the site follow the shipped ones in the table. Several environments may have the same image."""
    both = Environment({"1": "site/lab:1", "2": "site/lab:2"})
    table = {"shipped": both, "mylab": both, "other": Environment({"1": "site/lab:1"})}
    assert request_variables._environment_of_running(image, {"session_image": given}, table) == found


@pytest.mark.parametrize(
    ("version", "is_refused"), [("3.1.5", True), ("3.0.99", True), ("3.1.6", False), ("3.2.0rc1", False)]
)
def test_a_release_of_jinja_with_a_hole_in_its_sandbox_is_refused(version: str, is_refused: bool) -> None:
    with pytest.raises(ComputeError, match="CVE-2025-27516") if is_refused else nullcontext():
        check_release("2.18.1", version)
