# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action plugins of the role ``agent``: they read the registered results of other hosts and decide on the controller."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.action import agent_info
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.action import ComputeAction


def act(action: type[ComputeAction], args: Json, task_vars: Json, answer: Json | Exception | None = None) -> Any:
    """The result of an action whose module returns this answer; ``called`` of the result are the module's options."""
    called: list[Json] = []

    class Played(action):  # type: ignore[misc, valid-type]
        def module(self, name: str, args: Json, task_vars: Json) -> Json:
            called.append(args)
            if isinstance(answer, Exception):
                raise answer
            return dict(answer or {})

    task = SimpleNamespace(check_mode=False, diff=False, args=args, async_val=0, delegate_to=None)
    templar = SimpleNamespace(template=lambda value: value)
    made = Played(task, None, None, None, templar, None)
    made.task_vars = task_vars
    return SimpleNamespace(result=made.act(), called=called)


@pytest.mark.parametrize(("options", "sentence"), [({}, "name"), ({"name": "a1", "nonsense": 3}, "nonsense")])
def test_a_wrong_option_is_no_lost_agent(options: Json, sentence: str) -> None:
    with pytest.raises(ComputeError, match=sentence):
        act(agent_info.ActionModule, options, {}, {"failed": True, "msg": "the module refuses its options"})
