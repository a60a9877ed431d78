# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules that are built while a task waits for its host."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.plugin_utils._coming_modules import building, share


class Action:
    """The part of an action plugin that builds a module: it leaves a file of the module's name, with the interpreter."""

    def __init__(self, folder: Path, error: Exception | None = None) -> None:
        self._folder = folder
        self._error = error

    def _configure_module(self, name: str, args: Any, task_vars: Any) -> None:
        (self._folder / name).write_text(task_vars["ansible_python_interpreter"])
        if self._error:
            raise self._error


def built(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_modules_are_built_by_another_process_without_a_search_for_an_interpreter(tmp_path: Path) -> None:
    with building(Action(tmp_path), ["schedule", "containers"], {"ansible_python_interpreter": "auto"}):  # type: ignore[arg-type]
        pass
    known = ["cluster.compute.schedule", "cluster.compute.containers"]
    assert built(tmp_path) == dict.fromkeys(known, sys.executable)


def test_a_module_that_cannot_be_built_does_not_fail_the_task_that_waits(tmp_path: Path) -> None:
    with building(Action(tmp_path, OSError("no space left")), ["schedule", "containers"], {}):  # type: ignore[arg-type]
        pass
    assert len(built(tmp_path)) == 2


def test_an_error_of_the_block_is_raised_and_nothing_is_built_without_names(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="lost"), building(Action(tmp_path), [], {}):  # type: ignore[arg-type]
        raise ValueError("lost")
    assert built(tmp_path) == {}


@pytest.mark.parametrize(
    ("hosts", "shares"),
    [
        (["x"], [["a", "b"]]),
        (["x", "y"], [["b"], ["a"]]),
        (["x", "y", "z"], [[], ["a"], ["b"]]),
    ],
)
def test_each_module_is_built_for_one_host_of_the_play(hosts: list[str], shares: list[list[str]]) -> None:
    plays = [{"inventory_hostname": host, "ansible_play_hosts_all": hosts} for host in hosts]
    assert [share(["a", "b"], variables) for variables in plays] == shares


def test_a_host_outside_the_play_builds_nothing() -> None:
    assert share(["a"], {"inventory_hostname": "other", "ansible_play_hosts_all": ["x"]}) == []
    assert share(["a"], {}) == []
