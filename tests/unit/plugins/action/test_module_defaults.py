# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``module_defaults`` reach the actions that carry out steps: a real playbook on an engine that is not there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml
from warm_playbook import run_of_checkout

TASK = {"cluster.compute.network": {"state": "absent", "sessions": ["x"]}}


@pytest.mark.parametrize("key", ["cluster.compute.network", "group/cluster.compute.compute"])
def test_the_defaults_of_a_module_and_of_the_group_reach_its_action(checkout: Path, tmp_path: Path, key: str) -> None:
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "connection": "local",
        "vars": {"ansible_python_interpreter": sys.executable},
        "module_defaults": {key: {"docker_host": "unix:///nowhere/default.sock"}},
        "tasks": [TASK],
    }
    playbook = tmp_path / "defaults.yml"
    playbook.write_text(yaml.safe_dump([play]))
    _code, text = run_of_checkout("playbook", ["-i", "localhost,", str(playbook)], checkout)
    assert "does not answer at unix:///nowhere/default.sock" in " ".join(text.split())
