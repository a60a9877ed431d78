# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules that are built while a task waits for its host."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.plugin_utils._coming_modules import building, share


class Action:
    """The part of an action plugin that builds a module."""

    def __init__(self, error: Exception | None = None) -> None:
        self.built: list[tuple[str, Any]] = []
        self._error = error
        self.has_begun = threading.Event()

    def _configure_module(self, name: str, args: Any, task_vars: Any) -> None:
        self.built.append((name, task_vars["ansible_python_interpreter"]))
        self.has_begun.set()
        if self._error:
            raise self._error


def test_modules_are_built_during_the_block_without_a_search_for_an_interpreter() -> None:
    action = Action()
    with building(action, ["schedule", "containers"], {"ansible_python_interpreter": "auto"}):  # type: ignore[arg-type]
        assert action.has_begun.wait(10)
    assert [name for name, _python in action.built] == ["cluster.compute.schedule", "cluster.compute.containers"]
    assert "auto" not in [python for _name, python in action.built]


def test_a_module_that_cannot_be_built_does_not_fail_the_task_that_waits() -> None:
    action = Action(OSError("no space left"))
    with building(action, ["schedule", "containers"], {}):  # type: ignore[arg-type]
        pass
    assert len(action.built) == 2


def test_an_error_of_the_block_is_raised_and_nothing_is_built_without_names() -> None:
    action = Action()
    with pytest.raises(ValueError, match="lost"), building(action, [], {}):  # type: ignore[arg-type]
        raise ValueError("lost")
    assert action.built == []


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
