# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Actions whose steps are played from a script; everything else of them is real."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.action import ComputeAction
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.call import Call

Answer = Json | Exception
# The connection of a host on which no process stays for further steps. Releases of ansible-core ask it in different ways.
NO_PIPELINING = SimpleNamespace(
    is_pipelining_enabled=lambda _is_async: False,
    get_option=lambda _name: False,
    has_pipelining=False,
    always_pipeline_modules=False,
    become=None,
)


def task_of(module: str, args: Json, *, check: bool, diff: bool) -> Any:
    """A task of this module, as its action sees it."""
    of_run = {"check_mode": check, "diff": diff, "async_val": 0, "delegate_to": None}
    return SimpleNamespace(args=args, action=module, resolved_action=None, name="", _uuid="", **of_run)


def played(
    action: type[ComputeAction],
    *answers: Answer,
    args: Json | None = None,
    variables: Json | None = None,
    check: bool = False,
    diff: bool = False,
) -> Any:
    """An action whose steps give these answers, one after the other, the last one for ever; ``asked`` are their parameters."""

    module = action.__module__.rpartition(".")[2]

    class Played(action):  # type: ignore[misc, valid-type]
        def step(self, call: Call[Json], agent: str = "") -> Json:
            asked.append(json.loads(json.dumps(call.params)))
            answer = answers[min(len(asked), len(answers)) - 1]
            if isinstance(answer, Exception):
                raise answer
            return dict(answer)

    asked: list[Json] = []
    made = Played(
        task_of(module, args or {}, check=check, diff=diff),
        None,
        None,
        None,
        SimpleNamespace(template=lambda text: text),
        None,
    )
    made.asked, made.task_vars = asked, variables or {}
    return made
