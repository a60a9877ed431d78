# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The variables of the playbooks: what is declared, read and described."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request import REQUEST_VARIABLES, Request
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.variable import Variable
from ansible_collections.cluster.compute.plugins.plugin_utils._settings.known_names import AGENT_VARIABLES
from ansible_collections.cluster.compute.plugins.plugin_utils._settings.settings import (
    KEPT,
    VARIABLES,
    Settings,
    read_by,
)

ROOT = Path(__file__).resolve().parents[2]
DECLARED = {variable.full_name: variable for variable in VARIABLES}
# Results that the playbooks leave for later tasks.
RESULTS = {
    "session_launched",
    "session_ended",
    "session_scheduled",
    "session_listed",
    "session_copied",
    "session_executed",
    "session_logs_read",
    "session_policy",
    "session_usage",
    "session_apps_changed",
    "session_environments_listed",
}
# No variables: playbooks, files, modules and the group of a session in an inventory.
NAMES = {
    "session_logs",
    "session_mount",  # a misspelled name
    "session_json",
    "session_info",
    "session_train",
    "session_apps",
    "session_exec",
    "session_copy",
    "session_logs_info",
    "session_queue",
}


@pytest.mark.parametrize("variable", VARIABLES, ids=lambda variable: str(variable.name))
def test_a_default_is_valid(variable: Variable) -> None:
    if variable.default == "":
        return
    normal = variable.normal_form("")
    assert not variable.choices or normal in variable.choices
    holder = Request("train", "alice") if variable in REQUEST_VARIABLES else Settings()
    assert normal == getattr(holder, variable.field)


def test_a_pass_over_the_queue_reads_what_waiting_sessions_keep() -> None:
    assert {variable.full_name for variable in KEPT} <= {variable.full_name for variable in read_by("schedule")}
    assert "session_cluster_size" not in {variable.full_name for variable in read_by("schedule")}


def test_playbooks_read_declared_variables_alone_and_each_has_a_default() -> None:
    paths = [*ROOT.glob("playbooks/*.yml"), *ROOT.glob("playbooks/tasks/*.yml")]
    templates = re.findall(r"{{ (.*) }}", "".join(path.read_text() for path in paths))
    read = {name for text in templates for name in re.findall(r"(?<![\w.])session_[a-z_]+", text)} - RESULTS
    assert read <= DECLARED.keys()
    without = [text for text in templates for name in read if re.search(rf"\b{name}\b", text)]
    assert without
    assert [text for text in without if "default(" not in text] == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: str(page.name))
def test_pages_name_declared_variables_alone(page: Path) -> None:
    named = set(re.findall(r"(?<![\w./-])session_[a-z_]+(?![\w.]*\.(?:yml|json|md|py))", page.read_text()))
    assert named - RESULTS - NAMES - set(DECLARED) == set()


def test_the_guide_has_the_declared_defaults() -> None:
    """Where a cell is a value: others explain how a default is found."""
    rows = re.findall(r"^\| `(\w+)`[^|]*\| `([^`|]+)` \|", (ROOT / "docs" / "variables.md").read_text(), re.MULTILINE)
    found = {name: yaml.safe_load(text) for name, text in rows if name in DECLARED}
    assert len(found) > 20
    assert found == {name: DECLARED[name].default for name in found}


def test_the_reference_has_every_variable() -> None:
    rows = re.findall(r"^\| (`\w+`[^|]*) \|", (ROOT / "docs" / "variables.md").read_text(), re.MULTILINE)
    described = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert {*DECLARED, *AGENT_VARIABLES} - described == set()
