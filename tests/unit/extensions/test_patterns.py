# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The patterns: the required files, and surveys that ask for declared variables with their own defaults and rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.cluster.compute.plugins.module_utils._planning.settings import VARIABLES

ROOT = Path(__file__).resolve().parents[3]
PATTERNS = sorted((ROOT / "extensions/patterns").iterdir())
DECLARED = {variable.full_name: variable for variable in VARIABLES}
# Variables of playbooks/sessions.yml itself.
OF_THE_PLAYBOOK = {"sessions_format"}
# The playbook of the collection that a template's playbook imports, and the entry point of its role.
ENTRY_POINTS = {"launch.yml": "main", "list.yml": "list", "end.yml": "terminate"}
REQUIRED = {"name", "description", "playbook", "survey"}
QUESTION = {"type", "question_name", "question_description", "variable", "required"}
TYPES = {"text", "textarea", "password", "integer", "float", "multiplechoice", "multiselect"}


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
    assert question["type"] in TYPES
    assert bool(question.get("choices")) == (question["type"] == "multiplechoice")
    if question["variable"] in OF_THE_PLAYBOOK:
        return
    variable = DECLARED[question["variable"]]
    assert ENTRY_POINTS[playbook] in variable.read_by
    for answer in (question["default"], *question.get("choices", ())) if "default" in question else ():
        variable.normal_form(answer)
    if "default" in question and variable.default is not None:
        assert variable.normal_form(question["default"]) == variable.normal_form("")
