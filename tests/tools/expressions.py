# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Expressions of roles, evaluated as Ansible evaluates them in a playbook."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

ROLES = Path(__file__).resolve().parents[2] / "roles"


def rendered(role: str, name: str, **given: Any) -> Any:
    """The value of a variable that a role defines in its ``vars`` or in a task, with these variables."""
    own = _own(role)
    return Templar(loader=DataLoader(), variables={**own, **given}).template(own[name])


def evaluated(expression: str, **given: Any) -> Any:
    """The value of an expression, with these variables."""
    return Templar(loader=DataLoader(), variables=given).template(trusted(expression))


@functools.cache
def _own(role: str) -> dict[str, Any]:
    return {key: trusted(value) for found in _variables(ROLES / role) for key, value in found.items()}


def _variables(role: Path) -> Iterator[dict[str, Any]]:
    yield yaml.safe_load((role / "vars/main.yml").read_text())
    for path in sorted(role.glob("tasks/*.yml")):
        yield from _of_tasks(yaml.safe_load(path.read_text()))


def _of_tasks(tasks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for task in tasks:
        yield task.get("vars") or {}
        for part in ("block", "rescue", "always"):
            yield from _of_tasks(task.get(part) or [])


def trusted(value: Any) -> Any:
    """A text as one of a playbook, which ansible-core marks since 2.19."""
    try:
        from ansible.template import trust_as_template
    except ImportError:
        return value
    return trust_as_template(value) if isinstance(value, str) else value
