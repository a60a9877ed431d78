# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What pages, specifications and lists of requirements say is what the code does: names, defaults, commands and tables."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.cluster.compute.plugins.module_utils._shared.constants import REFERENCE_IMAGE
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.catalogue import (
    SHIPPED,
    with_environment,
)
from ansible_collections.cluster.compute.plugins.plugin_utils._settings.settings import (
    VARIABLES,
    check_variables,
    read_by,
)

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted(path for folder in ("docs", "examples", "extensions") for path in (ROOT / folder).rglob("*.md")),
]
ROLES = sorted(path.parents[1] for path in (ROOT / "roles").glob("*/meta/argument_specs.yml"))
PLAYBOOKS = sorted((ROOT / "playbooks").glob("*.yml"))
FENCE = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(
    r"^(?:\$ )?(?:\w+=\S+ )*\S*(?:ansible-playbook|(?<![-/])\bcluster-compute) (?:.*\\\n)*.*", re.MULTILINE
)
INLINE = re.compile(r"`(cluster-compute [^`\n]+)`")
SESSION_FILE = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
# The playbook that a verb of ``cluster-compute`` runs.
VERBS = {
    "up": "cluster_session",
    "scale": "cluster_session",
    "down": "terminate",
    "ls": "sessions",
    "logs": "session_logs",
    "exec": "session_exec",
    "cp": "session_copy",
    "commit": "session_commit",
    "ssh": "",
    "open": "",
    "restart": "session_restart",
    "show": "sessions",
    "why": "sessions",
    "queue": "sessions",
    "doctor": "check_agents",
    "usage": "usage",
    "env": "environments",
    "hosts": "provision_agents",
    "init": "",
    "completion": "",
}
INVENTORY = re.compile(r"^export ANSIBLE_INVENTORY=\S+$", re.MULTILINE)
# The short name of a playbook in the declaration of variables, if it is not the last word of its own.
SHORT_NAMES = {"cluster_session": "main", "sessions": "list"}
RULES = {variable.full_name for variable in VARIABLES}
# What a sample leaves out.
LEFT_OUT = "…"


@dataclass(frozen=True)
class Command:
    """A command of ``ansible-playbook`` or ``cluster-compute`` on a page."""

    page: str
    text: str
    names_inventory: bool

    @property
    def playbook(self) -> str:
        if self.verb:
            return VERBS.get(self.verb, "")
        return next((Path(word).stem for word in self.words if word.startswith("playbooks/")), "")

    @property
    def verb(self) -> str:
        """The verb of ``cluster-compute``: the first word that is neither an option nor its value."""
        words = self.words
        if not words[0].endswith("cluster-compute"):
            return ""
        pairs = pairwise(words)
        return next((word for before, word in pairs if word[0] != "-" and before not in ("-e", "-i")), "")

    @property
    def words(self) -> list[str]:
        words = shlex.split(self.text.removeprefix("$ ").replace("\\\n", " "), comments=True)
        # A command for the containers follows.
        return words[: words.index("--")] if "--" in words else words

    @property
    def variables(self) -> dict[str, Any]:
        """The variables that the command has in itself."""
        given: dict[str, Any] = {}
        words = self.words
        for option, value in pairwise(words):
            if option not in ("-e", "--extra-vars") or value.startswith("@"):
                continue
            given |= json.loads(value) if value.startswith("{") else dict([value.split("=", 1)])
        return given


def commands() -> Iterator[Command]:
    """The commands of all pages, and whether each has an inventory: its own, or one that the page has exported before."""
    for page in PAGES:
        text = page.read_text()
        for block in FENCE.finditer(text):
            for found in COMMAND.finditer(block[1]):
                before = text[: block.start(1) + found.start()]
                named = "cluster-compute " in found[0] or " -i " in found[0] or bool(INVENTORY.search(before))
                yield Command(str(page.relative_to(ROOT)), found[0], named)
        for line in INLINE.findall(FENCE.sub("", text)):
            yield Command(str(page.relative_to(ROOT)), line, True)


@cache
def specification(role: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((role / "meta/argument_specs.yml").read_text())["argument_specs"]
    return loaded


@pytest.mark.parametrize("role", ROLES, ids=lambda role: str(role.name))
def test_a_specification_has_the_defaults_of_its_role(role: Path) -> None:
    defaults = yaml.safe_load((role / "defaults/main.yml").read_text())
    specified = [
        (name, option["default"])
        for entry in specification(role).values()
        for name, option in entry["options"].items()
        if "default" in option and name in defaults
    ]
    assert specified
    assert [(name, value) for name, value in specified if value != defaults[name]] == []


def test_the_reference_image_has_one_name() -> None:
    files = [path for folder in ("docs", "examples", "plugins", "roles") for path in (ROOT / folder).rglob("*")]
    texts = [path.read_text() for path in files if path.suffix in (".md", ".py", ".yml") or path.name == "Dockerfile"]
    names = {name for text in texts for name in re.findall(r"cluster-compute/reference:[\w.]+", text)}
    assert names == {REFERENCE_IMAGE}


def test_pages_have_commands() -> None:
    assert len({command.page for command in commands()}) > 25
    assert len([command for command in commands() if command.variables]) > 15


def test_every_verb_of_a_page_exists_and_the_cheat_sheet_has_all() -> None:
    verbs = {(command.page, command.verb) for command in commands() if "ansible-playbook" not in command.text}
    assert sorted((page, verb) for page, verb in verbs if verb not in VERBS) == []
    assert sorted(VERBS.keys() - {verb for page, verb in verbs if page == "docs/cheat_sheet.md"}) == []


def session_files() -> Iterator[tuple[str, dict[str, Any]]]:
    """The samples that have nothing but variables of sessions."""
    for page in PAGES:
        for text in SESSION_FILE.findall(page.read_text()):
            values = next(yaml.safe_load_all(text))
            if isinstance(values, dict) and values.keys() <= RULES:
                yield str(page.relative_to(ROOT)), values


def broken_rule_of_a_file(page: str, values: dict[str, Any]) -> str:
    try:
        check_variables("main", with_environment(values, SHIPPED))
    except InputError as error:
        return f"{page}: {error.message}"
    return ""


def test_every_session_file_of_a_page_passes_the_rules() -> None:
    found = list(session_files())
    assert len(found) > 25
    assert [message for page, values in found if (message := broken_rule_of_a_file(page, values))] == []


def test_a_session_file_that_breaks_a_rule_is_found() -> None:
    assert broken_rule_of_a_file("page.md", {"session_cluster_size": 0}).startswith("page.md: session_cluster_size")


def broken_rule(command: Command) -> str:
    """The message of the first rule that a command breaks."""
    given = {name: value for name, value in command.variables.items() if name in RULES}
    playbook = SHORT_NAMES.get(command.playbook, command.playbook.rpartition("_")[2])
    try:
        # session_apps.yml uses the image of the running session.
        image = {"session_image": "image-of-the-session"} if playbook == "apps" else {}
        check_variables(playbook, with_environment({**given, **image}, SHIPPED))
    except InputError as error:
        return f"{command.page}: {error.message}"
    unread = given.keys() - {variable.full_name for variable in read_by(playbook)} if command.playbook else ()
    return "".join(f"{command.page}: {command.playbook} does not read {name}" for name in sorted(unread))


def test_every_command_passes_the_rules_of_its_variables() -> None:
    assert [text for text in map(broken_rule, commands()) if text] == []


def test_a_command_that_breaks_a_rule_is_found() -> None:
    command = Command("page.md", "ansible-playbook playbooks/cluster_session.yml -e session_name=run", True)
    assert broken_rule(command).startswith("page.md: session_name: 'run': must have 4 to 64 letters")
    command = Command("page.md", "ansible-playbook playbooks/session_apps.yml -e session_image=lab", True)
    assert broken_rule(command) == "page.md: session_apps does not read session_image"


def test_no_command_needs_a_shell_that_leaves_brackets_alone() -> None:
    assert [one.text for one in commands() if re.search(r" -e \w+=\[", one.text)] == []


def test_every_command_has_an_inventory() -> None:
    """Without an inventory, a command is refused."""
    assert [f"{one.page}: {one.text}" for one in commands() if not one.names_inventory] == []


def test_every_table_of_a_sample_has_columns_of_the_code() -> None:
    tree = ast.parse((ROOT / "plugins/plugin_utils/_output/lists.py").read_text())
    columns = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    headers = [
        (str(page.relative_to(ROOT)), re.split(r" {2,}", line))
        for page in PAGES
        for block in FENCE.findall(page.read_text())
        for line in block.splitlines()
        if re.match(r"(SESSION|OWNER|AGENT) {2,}[A-Z…]", line)
    ]
    assert len(headers) >= 3
    unknown = [(page, name) for page, names in headers for name in names if name.lower() not in {*columns, LEFT_OUT}]
    assert unknown == []


def bounds(path: Path) -> dict[str, str]:
    """The lowest version of each package."""
    return dict(re.findall(r"^([\w-]+)[^#\n]*?>=([\d.]+)", path.read_text(), re.MULTILINE))


def test_an_execution_environment_gets_no_older_packages_than_the_requirements() -> None:
    lowest = bounds(ROOT / "requirements.txt")
    own = bounds(ROOT / "meta/ee-requirements.txt")
    assert own.keys() == {"cryptography", "docker", "paramiko"}
    assert own == {name: lowest[name] for name in own}


@pytest.mark.parametrize("role", ROLES, ids=lambda role: str(role.name))
def test_every_entry_point_that_a_role_names_is_specified(role: Path) -> None:
    rows = re.findall(r"^\| (`\w+\.yml`.*?) \|", (role / "README.md").read_text(), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)\.yml`", row)}
    named |= set(re.findall(r"tasks_from: (\w+)\.yml", (role / "README.md").read_text()))
    assert sorted(named - specification(role).keys()) == []
    assert [name for name in specification(role) if not (role / "tasks" / f"{name}.yml").is_file()] == []


def test_every_variable_of_a_playbook_is_specified() -> None:
    """A variable of a play replaces that of an inventory, so what users may set has its default in a specification."""
    found = [
        (path.name, name)
        for path in PLAYBOOKS
        for play in yaml.safe_load(path.read_text())
        for name in play.get("vars") or {}
        if not name.startswith(("__", "ansible_"))
    ]
    assert found == []


def test_pages_for_users_name_no_internal_module() -> None:
    """The architecture is for contributors."""
    pages = [
        page for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))] if page.stem != "architecture"
    ]
    named = {page.name for page in pages if re.search(r"\b(agent|head)_step\b", page.read_text())}
    assert named == set()


def test_every_test_that_the_audit_names_exists() -> None:
    """A "cannot" without a test, or with one that was renamed or moved, proves nothing."""
    page = (ROOT / "docs/develop/audit.md").read_text()
    paths = re.findall(r"`((?:unit|integration|large)/[\w/]+\.py)`(?:: ((?:`test_\w+`(?:, )?)+))?", page)
    assert len(paths) > 60
    lost = []
    for path, tests in paths:
        file = ROOT / "tests" / path
        text = file.read_text() if file.exists() else ""
        lost += [f"{path} {name}" for name in re.findall(r"test_\w+", tests) or [""] if f"def {name}" not in text]
    assert lost == []


def test_lines_that_a_task_shows_stay_a_text() -> None:
    """Before 2.19, ansible-core takes a text that looks like JSON, such as sessions_format=json gives, for a dictionary or a list."""
    files = [path for folder in ("playbooks", "roles") for path in (ROOT / folder).rglob("*.yml")]
    shown = [line for file in files for line in file.read_text().splitlines() if "lines | join(" in line]
    assert shown
    assert [line for line in shown if "| string }}" not in line] == []
