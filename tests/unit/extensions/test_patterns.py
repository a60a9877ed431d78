# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The patterns: the required files, and surveys that ask for declared variables with their own defaults and rules."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError
from ansible_collections.cluster.compute.plugins.plugin_utils._settings.settings import SHIPPED, VARIABLES

ROOT = Path(__file__).resolve().parents[3]
PATTERNS = sorted((ROOT / "extensions/patterns").iterdir())
DECLARED = {variable.full_name: variable for variable in VARIABLES}
# Variables of playbooks/sessions.yml itself.
OF_THE_PLAYBOOK = {"sessions_format"}
# The playbook of the collection that a template's playbook imports, by its name in the declaration of variables.
PLAYBOOKS_OF = {"launch.yml": "main", "list.yml": "list", "end.yml": "terminate"}
REQUIRED = {"name", "description", "playbook", "survey"}
QUESTION = {"type", "question_name", "question_description", "variable", "required"}
# The types of questions for the type of a variable.
TYPES = {
    "str": {"text", "textarea", "multiplechoice"},
    "int": {"integer"},
    "float": {"float", "integer"},
    "bool": {"multiplechoice"},
    "list": {"textarea"},
    "dict": {"textarea"},
}
# What a launch asks for wherever people launch sessions from a form.
DIALOG = "name image resource_group cluster_size cluster_mode count preset cpus memory shm gpus mounts environment apps command lifetime"


def definition(pattern: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((pattern / "meta/pattern.json").read_text())
    return loaded


def templates() -> list[tuple[Path, dict[str, Any]]]:
    found = [(path, definition(path)["aap_resources"]["controller_job_templates"]) for path in PATTERNS]
    return [(path, template) for path, each in found for template in each]


def questions() -> list[tuple[str, dict[str, Any]]]:
    return [(template["playbook"], one) for _path, template in templates() for one in template["survey"]["spec"]]


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda path: str(path.name))
def test_a_pattern_has_the_documented_layout(pattern: Path) -> None:
    found = definition(pattern)
    assert found["name"] == pattern.name
    assert len(found["title"]) <= 64
    assert not found["short_description"].endswith(".")
    assert (pattern / "README.md").is_file()
    resources = found["aap_resources"]
    assert {"name", "description"} <= set(resources["controller_project"])
    assert {"name", "description", "image_name"} <= set(resources["controller_execution_environment"])
    assert [one["playbook"] for one in resources["controller_job_templates"] if one.get("primary")] == ["launch.yml"]


@pytest.mark.parametrize(("pattern", "template"), templates(), ids=str)
def test_a_job_template_has_its_playbook_and_the_specification_of_its_survey(
    pattern: Path, template: dict[str, Any]
) -> None:
    assert set(template) >= REQUIRED
    resources = definition(pattern)["aap_resources"]
    assert template["execution_environment"] == resources["controller_execution_environment"]["name"]
    assert set(template["labels"]) <= set(resources["controller_labels"])
    playbook = pattern / "playbooks" / template["playbook"]
    assert playbook.is_file()
    options = yaml.safe_load(playbook.with_suffix(".meta.yml").read_text())["argument_specs"]["main"]["options"]
    survey = {one["variable"]: one for one in template["survey"]["spec"]}
    assert set(options) == set(survey)
    for name, option in options.items():
        assert str(option.get("default", "")).lower() == survey[name].get("default", "").lower(), name
        assert option.get("choices", survey[name].get("choices")) == survey[name].get("choices"), name


@pytest.mark.parametrize(
    ("playbook", "question"), questions(), ids=lambda value: value if isinstance(value, str) else value["variable"]
)
def test_a_question_asks_for_a_variable_that_the_playbook_reads(playbook: str, question: dict[str, Any]) -> None:
    assert set(question) >= QUESTION
    assert bool(question.get("choices")) == (question["type"] == "multiplechoice")
    if question["variable"] in OF_THE_PLAYBOOK:
        return
    variable = DECLARED[question["variable"]]
    assert question["type"] in TYPES[variable.type]
    assert question.get("choices", []) == (["false", "true"] if variable.type == "bool" else list(variable.choices))
    assert PLAYBOOKS_OF[playbook] in variable.read_by
    for answer in (question["default"], *question.get("choices", ())) if "default" in question else ():
        variable.normal_form(answer)
    if "default" in question and variable.default is not None:
        assert variable.normal_form(question["default"]) == variable.normal_form("")


LIMITED = [
    pytest.param(one, id=one["variable"])
    for _playbook, one in questions()
    if one["type"] in ("integer", "float") and "default" in one
]


@pytest.mark.parametrize("question", LIMITED)
def test_the_form_has_the_limits_of_the_variable(question: dict[str, Any]) -> None:
    check = DECLARED[question["variable"]].normal_form
    assert [check(question[limit]) for limit in ("min", "max")] == [question["min"], question["max"]]
    for beyond in (question["min"] - 1, question["max"] + 1):
        with pytest.raises(InputError):
            check(beyond)


def test_the_form_of_a_launch_is_complete_and_takes_further_variables() -> None:
    [launch] = [template for _path, template in templates() if template["playbook"] == "launch.yml"]
    asked = {one["variable"] for one in launch["survey"]["spec"]}
    assert {"session_" + name for name in DIALOG.split()} <= asked
    assert launch["ask_variables_on_launch"] is True
    [image] = [one for one in launch["survey"]["spec"] if one["variable"] == "session_image"]
    assert [name for name in ("lab", "pytorch", "tensorflow", "mpi") if name not in image["question_description"]] == []


def test_amounts_that_the_form_leaves_empty_are_those_of_the_preset() -> None:
    """An answer with a default would replace the amounts of the preset."""
    amounts = [one for _playbook, one in questions() if one["variable"].partition("_")[2] in SHIPPED["small"]]
    assert [(one["required"], "default" in one) for one in amounts] == [(False, False)] * 4


def test_the_execution_environment_of_the_page_has_this_collection_and_a_release_that_it_supports() -> None:
    page = (ROOT / "extensions/patterns/cluster_sessions/README.md").read_text()
    [block] = re.findall(r"^ *```yaml\n(.*?)```", page, re.MULTILINE | re.DOTALL)
    dependencies = yaml.safe_load(block)["dependencies"]
    assert dependencies["ansible_core"]["package_pip"] in (ROOT / "requirements.txt").read_text().splitlines()
    galaxy = yaml.safe_load((ROOT / "galaxy.yml").read_text())
    [collection] = dependencies["galaxy"]["collections"]
    assert collection == {"name": f"{galaxy['namespace']}.{galaxy['name']}", "version": f">={galaxy['version']}"}
