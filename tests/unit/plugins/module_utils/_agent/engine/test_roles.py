# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wait for the containers of roles."""

from __future__ import annotations

from typing import Any

import pytest
from samples import plan, request

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.roles import RoleContainers
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ConflictError, EngineError


class Ending:
    """An engine whose containers end between the look at them and the question whether they are ready."""

    def __init__(self, known: list[Any]) -> None:
        self._known, self._state = known, "running"

    def members(self, _session: str) -> dict[str, dict[str, Any]]:
        return {one.id: {"Id": one.hostname, "State": self._state} for one in self._known}

    def execute(self, identity: str, *_given: Any) -> tuple[int, str]:
        self._state = "exited"
        raise ConflictError(f"{identity}: the engine could not run a command: container {identity} is not running.")

    def read_file(self, *_given: Any) -> bytes | None:
        return None

    def inspect(self, _identity: str, _subject: str) -> dict[str, Any]:
        return {"State": {"Status": "exited", "ExitCode": 7}}

    def logs(self, *_given: Any, **_options: Any) -> str:
        return "no such data set\n"


@pytest.mark.parametrize("seconds", [0, 30])
def test_a_container_that_ends_while_it_is_asked_says_why(seconds: int) -> None:
    made = plan(request(roles=[{"name": "worker", "size": 1, "command": "train", "ready": "8000"}]), ["a", "a"])
    engine: Any = Ending(list(made.containers))
    with pytest.raises(EngineError, match=r"on a the container ended with exit code 7 .*no such data set"):
        RoleContainers(engine, made, "a").begun(seconds)
