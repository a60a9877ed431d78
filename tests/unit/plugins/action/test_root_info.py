# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a user can become root, on every ansible-core: a refusal is a result or an exception there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure, AnsibleError

from ansible_collections.cluster.compute.plugins.action import root_info

PREMATURE = "Premature end of stream waiting for become success.\n>>> Standard Error\nsudo: a password is required"


def asked(answer: dict[str, Any] | Exception) -> dict[str, Any]:
    """The result of the action where the host answers this."""

    class Answered(root_info.ActionModule):  # type: ignore[misc]
        def _low_level_execute_command(self, command: str) -> dict[str, Any]:
            assert command == "id -u"
            if isinstance(answer, Exception):
                raise answer
            return answer

    task = SimpleNamespace(
        check_mode=False, diff=False, args={}, async_val=0, delegate_to=None, action="root_info", name="", _uuid=""
    )
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir="/tmp/none"))
    result: dict[str, Any] = Answered(task, connection, None, None, None, None).run()
    return result


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (AnsibleError(PREMATURE), "sudo: a password is required"),
        ({"rc": 1, "stdout": "", "stderr": "sudo: a password is required\n"}, "sudo: a password is required"),
        ({"rc": 1, "stdout": "no sudo\r\n", "stderr": ""}, "no sudo"),
        (
            {"rc": 1, "stdout": "", "stderr": "sudo: not\x1b[31m found\nShared connection to a1 closed.\n"},
            "sudo: not[31m found",
        ),
        ({"rc": 0, "stdout": "1000\n", "stderr": ""}, "1000"),
        ({"rc": 1, "stdout": "", "stderr": ""}, "no reason was given"),
    ],
)
def test_a_user_who_cannot_become_root_is_a_result_with_the_reason(answer: Any, reason: str) -> None:
    result = asked(answer)
    assert (result["is_root"], result["reason"]) == (False, reason)
    assert not result.get("failed")


def test_root_is_root() -> None:
    result = asked({"rc": 0, "stdout": "0\r\n", "stderr": "warning: no tty"})
    assert (result["is_root"], result["reason"]) == (True, "")


def test_a_lost_host_is_a_failure() -> None:
    assert "cannot be reached: no route" in asked(AnsibleConnectionFailure("no route"))["msg"]
