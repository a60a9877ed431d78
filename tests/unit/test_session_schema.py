# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Session files, and the schema with which editors check them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator
from session_schema import SCHEMA, schema

from ansible_collections.cluster.compute.plugins.module_utils._shared.planning import catalogue
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.variable import LAUNCH
from ansible_collections.cluster.compute.plugins.plugin_utils._settings.settings import VARIABLES, check_variables
from ansible_collections.cluster.compute.plugins.plugin_utils._variables.request_variables import make_requests

ROOT = Path(__file__).resolve().parents[2]
VALIDATOR = Draft7Validator(json.loads(schema()))
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("roles/*/README.md"), *ROOT.glob("examples/**/*.md")]
FENCED = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
HEADER = "# yaml-language-server: $schema="


def faults(content: Any) -> list[str]:
    return [error.message for error in VALIDATOR.iter_errors(content)]


def is_of_session(content: Any) -> bool:
    return isinstance(content, dict) and any(str(name).startswith("session_") for name in content)


FILES = [path for path in sorted(ROOT.glob("examples/**/*.yml")) if is_of_session(yaml.safe_load(path.read_text()))]
BLOCKS = {
    f"{page.relative_to(ROOT)}:{number}": block
    for page in sorted(PAGES)
    for number, block in enumerate(FENCED.findall(page.read_text()))
}


def test_the_schema_is_the_generated_one() -> None:
    """``make variables`` writes it."""
    assert SCHEMA.read_text() == schema()
    Draft7Validator.check_schema(json.loads(schema()))


def test_every_variable_is_described() -> None:
    properties = json.loads(schema())["properties"]
    assert list(properties) == [variable.full_name for variable in VARIABLES]
    assert [name for name, found in properties.items() if re.search(r"\b[OVCEMP]\(", json.dumps(found))] == []


@pytest.mark.parametrize("variable", VARIABLES, ids=lambda variable: str(variable.full_name))
def test_a_default_is_accepted(variable: Any) -> None:
    assert variable.default is None or faults({variable.full_name: variable.default}) == []


def check_session(content: dict[str, Any]) -> None:
    """The schema accepts it, and so do the rules of a launch."""
    assert faults(content) == []
    values = catalogue.with_environment(content, catalogue.SHIPPED)
    for secret in values.get("session_secrets", []):
        secret["file"] = f"/{secret['file']}"
    check_variables(LAUNCH, values)
    make_requests(values, 1)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_session_file_begins_with_the_path_of_the_schema_and_is_accepted(path: Path) -> None:
    first, text = path.read_text().split("\n", 1)
    assert first.startswith(HEADER)
    assert (path.parent / first[len(HEADER) :]).resolve() == SCHEMA
    check_session(yaml.safe_load(text))


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.name == "session.yml"], ids=lambda path: path.parent.name
)
def test_a_session_file_of_an_example_has_the_command_that_launches_it(path: Path) -> None:
    command = f"# ansible-playbook playbooks/cluster_session.yml -e @{path.relative_to(ROOT)}"
    assert command in path.read_text().splitlines()


def test_examples_have_session_files() -> None:
    assert len(FILES) >= 10


@pytest.mark.parametrize("block", BLOCKS)
def test_variables_in_a_page_are_accepted(block: str) -> None:
    content = yaml.safe_load(BLOCKS[block])
    assert not is_of_session(content) or faults(content) == []


def test_the_commented_variables_of_the_first_example_are_accepted() -> None:
    """Without the mark before them, they are a session file, too."""
    text = (ROOT / "examples/session.yml").read_text()
    assert text.count("\n# session_") > 10
    content = yaml.safe_load(re.sub(r"(?m)^# (?=session_| )", "", text))
    assert content.keys() > yaml.safe_load(text).keys()
    check_session({**content, "session_image": "lab"})


@pytest.mark.parametrize(
    "content",
    [
        {"session_cluster_size": 3, "session_cpus": 0.5, "session_memory": "16g", "session_wait_result": True},
        {"session_memory": 1 << 30, "session_cluster_size": "3", "session_wait_result": "yes", "session_gpus": "0.5"},
        {"session_cluster_size": "{{ groups['agents'] | length }}", "session_cluster_mode": "{{ mode }}"},
        {"session_mounts": ["/srv/data:/data", {"source": "/srv", "target": "/srv", "mode": "ro"}]},
        {"session_apps": ["jupyterlab", {"name": "web", "port": 80, "command": "run", "ready": 80}]},
        {"session_apps": "jupyterlab", "session_agents": "node1,node2", "session_environment": "A=1\nB=2"},
        {"agent_users": ["alice"], "my_own": {"anything": 1}, "sessions_format": "json"},
    ],
)
def test_what_the_playbooks_accept_is_accepted(content: dict[str, Any]) -> None:
    assert faults(content) == []


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ({"session_mount": []}, "'session_mount' does not match any of the regexes: '^(?!session_|sessions_)'"),
        ({"sessions_formats": "json"}, "'sessions_formats' does not match"),
        ({"session_cluster_size": "three"}, "'three' does not match '^[0-9]+$"),
        ({"session_cluster_size": 3.5}, "3.5 is not of type 'integer', 'string'"),
        ({"session_cluster_size": 0}, "0 is less than the minimum of 1"),
        ({"session_priority": 101}, "101 is greater than the maximum of 100"),
        ({"session_wait": -1}, "-1 is less than the minimum of 0"),
        ({"session_wait_result": "perhaps"}, "'perhaps' does not match"),
        ({"session_command": ["python", "train.py"]}, "['python', 'train.py'] is not of type 'string'"),
        ({"session_cluster_mode": "many-nodes"}, "'many-nodes' is not valid under any of the given schemas"),
        ({"session_environment": {"DEBUG": True}}, "True is not of type 'string', 'number'"),
        ({"session_mounts": [{"source": "/srv"}]}, "'target' is a required property"),
        ({"session_mounts": [{"source": "/srv", "target": "/srv", "ro": True}]}, "Additional properties"),
        ({"session_secrets": ["token"]}, "'token' is not of type 'object'"),
        ({"session_user": {"uid": "me"}}, "'me' does not match"),
        ([], "[] is not of type 'object'"),
    ],
)
def test_a_wrong_name_type_or_value_is_refused(content: Any, fault: str) -> None:
    assert [message for message in faults(content) if message.startswith(fault)], faults(content)
