# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The documentation of a module has the options that its action takes, with the same types, defaults and choices."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.cluster.compute.plugins.plugin_utils._conduct import reports

PLUGINS = "ansible_collections.cluster.compute.plugins"
ATTRIBUTES = ("type", "elements", "choices", "default", "required")


def documented(module: str) -> dict[str, Any]:
    """The options of a module and of its fragments."""
    document = yaml.safe_load(import_module(f"{PLUGINS}.modules.{module}").DOCUMENTATION)
    options: dict[str, Any] = {}
    for fragment in document["extends_documentation_fragment"]:
        file, _dot, part = fragment[len("cluster.compute.") :].partition(".")
        texts = import_module(f"{PLUGINS}.doc_fragments.{file}").ModuleDocFragment
        options.update(yaml.safe_load(getattr(texts, part.upper() or "DOCUMENTATION")).get("options") or {})
    return {**options, **(document.get("options") or {})}


def described(options: dict[str, Any], parts: str) -> dict[str, Any]:
    """What documentation and specification of options have in common."""
    return {
        name: {
            **{key: one[key] for key in ATTRIBUTES if one.get(key) is not None},
            **({"options": described(one[parts], parts)} if one.get(parts) else {}),
        }
        for name, one in options.items()
    }


def specification(action: str) -> dict[str, Any]:
    found = import_module(f"{PLUGINS}.action.{action}").ActionModule
    return dict(reports.SPEC if action == "agent_info" else found.SPEC)


@pytest.mark.parametrize(
    "action",
    [
        *("agent_check_info", "agent_info", "agent_step", "containers", "head_step", "image", "network"),
        *("policy_info", "session_info", "ssh", "usage_info"),
    ],
)
def test_the_documentation_has_the_options_that_the_action_takes(action: str) -> None:
    assert described(documented(action), "suboptions") == described(specification(action), "options")


def test_every_action_without_variables_is_compared(checkout: Path) -> None:
    compared = test_the_documentation_has_the_options_that_the_action_takes.pytestmark[0].args[1]  # type: ignore[attr-defined]
    actions = {path.stem for path in (checkout / "plugins/action").glob("*.py")}
    own = {name for name in actions if not import_module(f"{PLUGINS}.action.{name}").ActionModule.OPTIONS}
    assert own == set(compared)
