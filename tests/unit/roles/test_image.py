# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Expressions of the role image."""

from __future__ import annotations

from pathlib import Path

import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

TASKS = Path(__file__).resolve().parents[3] / "roles" / "image" / "tasks"


def test_each_argument_of_a_build_is_an_option_with_its_value() -> None:
    tasks = yaml.safe_load((TASKS / "environment.yml").read_text())
    build = next(
        task for block in tasks for task in block.get("block", ()) if task["name"].startswith("Build the image from")
    )
    expression = trusted(build["vars"]["__image_arguments"])
    given = {"image_build_arguments": {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/wheels"}}
    rendered = Templar(loader=DataLoader(), variables=given).template(expression)
    assert rendered == ["--build-arg=PIP_NO_INDEX=1", "--build-arg=PIP_FIND_LINKS=/wheels"]


def trusted(expression: str) -> str:
    """The expression as one of a playbook, which ansible-core marks since 2.19."""
    try:
        from ansible.template import trust_as_template
    except ImportError:
        return expression
    marked: str = trust_as_template(expression)
    return marked
