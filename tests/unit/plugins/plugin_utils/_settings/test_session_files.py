# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Relative paths in a session file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible import context
from ansible.parsing.dataloader import DataLoader
from samples import plan, request, running_row
from warm_playbook import run_of_checkout

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.session_json import SessionDocument
from ansible_collections.cluster.compute.plugins.plugin_utils._client.session_dir import DOCUMENT, Artifacts
from ansible_collections.cluster.compute.plugins.plugin_utils._settings.session_files import located

TEXT = """\
session_artifacts: sessions
sessions_page: www/sessions.html
sessions_metrics: www/sessions.prom
session_exec_command: ./run
session_secrets:
  - {name: token, file: token.txt}
  - {name: key, file: ~/key}
  - {name: word, value: w}
"""


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that sets the ``-e`` options of a command in a directory with a session file."""
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/train.yml").write_text(TEXT)
    monkeypatch.chdir(tmp_path)

    def give(*options: str) -> None:
        monkeypatch.setattr(context, "CLIARGS", {"extra_vars": options})

    return give


def where(variable: str, value: Any) -> Any:
    return located(variable, value, DataLoader())


@pytest.mark.parametrize("path", ["jobs/train.yml", "{}/jobs/train.yml", "./jobs/../jobs/train.yml"])
def test_a_path_is_relative_to_the_session_file(given: Any, tmp_path: Path, path: str) -> None:
    given("session_name=train", "@" + path.format(tmp_path))
    assert where("session_artifacts", "sessions") == f"{tmp_path}/jobs/sessions"
    assert where("sessions_page", "www/sessions.html") == f"{tmp_path}/jobs/www/sessions.html"
    assert where("sessions_metrics", "www/sessions.prom") == f"{tmp_path}/jobs/www/sessions.prom"


@pytest.mark.parametrize("path", ["/srv/sessions", "~/sessions", "", None])
def test_an_absolute_path_and_an_empty_one_stay(given: Any, path: Any) -> None:
    given("@jobs/train.yml")
    assert where("session_artifacts", path) == path


def test_a_file_of_a_secret_is_relative_to_the_session_file(given: Any, tmp_path: Path) -> None:
    given("@jobs/train.yml")
    secrets = [{"name": "token", "file": "token.txt"}, {"name": "key", "file": "~/key"}, {"name": "word", "value": "w"}]
    assert where("session_secrets", secrets) == [
        {"name": "token", "file": f"{tmp_path}/jobs/token.txt"},
        {"name": "key", "file": "~/key"},
        {"name": "word", "value": "w"},
    ]


@pytest.mark.parametrize("secrets", ["token.txt", ["token.txt"], [{"name": "token", "file": 3}]])
def test_what_the_rule_of_secrets_refuses_stays(given: Any, secrets: Any) -> None:
    given("@jobs/train.yml")
    assert where("session_secrets", secrets) == secrets


@pytest.mark.parametrize("option", ["session_artifacts=mine", '{"session_artifacts": "mine"}'])
def test_a_path_of_the_command_line_stays(given: Any, tmp_path: Path, option: str) -> None:
    """The last option gives the value, as in Ansible."""
    given("@jobs/train.yml", option)
    assert where("session_artifacts", "mine") == "mine"
    given(option, "@jobs/train.yml")
    assert where("session_artifacts", "sessions") == f"{tmp_path}/jobs/sessions"


def test_the_last_session_file_counts(given: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.yml").write_text("session_artifacts: mine\n")
    given("@jobs/train.yml", "@mine.yml")
    assert where("session_artifacts", "mine") == f"{tmp_path}/mine"
    assert where("sessions_page", "www/sessions.html") == f"{tmp_path}/jobs/www/sessions.html"


def test_other_variables_have_no_paths_of_the_controller(given: Any) -> None:
    given("@jobs/train.yml")
    assert where("session_exec_command", "./run") == "./run"


def test_a_variable_of_the_inventory_stays(given: Any) -> None:
    given("@jobs/train.yml")
    assert where("usage_file", "usage.csv") == "usage.csv"


def test_a_relative_path_with_a_template_is_relative_to_its_file_too(checkout: Path, tmp_path: Path) -> None:
    """The role gives the variable as an option of the action."""
    made = plan(request(), "a")
    document = SessionDocument.of_plan(made, running_row(made), [])
    Artifacts(str(tmp_path / "base"), made.session.name).write_json(DOCUMENT, document.to_json())
    given = {"session_name": made.session.name, "place": "results", "session_copy_source": "{{ place }}/last"}
    (tmp_path / "copy.yml").write_text(json.dumps({**given, "session_artifacts": str(tmp_path / "base")}))
    words = ["playbooks/session_copy.yml", "-e", f"@{tmp_path}/copy.yml", "--check"]
    code, text = run_of_checkout("playbook", words, checkout)
    assert (code, f"{tmp_path}/results/last would be copied to" in " ".join(text.split())) == (0, True), text
