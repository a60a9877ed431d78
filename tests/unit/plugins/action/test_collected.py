# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What actions collect from earlier tasks."""

from __future__ import annotations

import pytest
from played import played

from ansible_collections.cluster.compute.plugins.action import queue_failures
from ansible_collections.cluster.compute.plugins.module_utils._core.documents import Json


@pytest.mark.parametrize(
    ("args", "failed", "failures"),
    [
        ({"failure": "launch", "session": "train"}, {"msg": "No agent answers."}, ["train: No agent answers."]),
        ({"failure": "launch", "session": "train", "previous": ["one"]}, {}, ["one", "train: it was not launched."]),
        ({"failure": "termination", "previous": ["one"]}, {"msg": "It is not there."}, ["one", "It is not there."]),
        ({"failure": "termination"}, {}, ["a session could not be terminated."]),
        ({"failure": "upkeep"}, {}, ["the store could not be kept in order."]),
        ({}, {"msg": "That of an earlier play."}, []),
    ],
)
def test_failures_of_a_pass_are_kept_in_order(args: Json, failed: Json, failures: list[str]) -> None:
    result = played(queue_failures.ActionModule).act(args, {"ansible_failed_result": failed})
    assert result == {"changed": False, "failures": failures, "unrepaired": ""}


@pytest.mark.parametrize(
    ("why", "sentence"),
    [
        ({"msg": "App web ends with exit code 3."}, "Session train was not repaired: App web ends with exit code 3."),
        ({"msg": "Session train was not repaired: a is lost."}, "Session train was not repaired: a is lost."),
        ({}, "Session train was not repaired: an agent failed."),
    ],
)
def test_a_repair_that_fails_is_shown_and_fails_no_pass(why: Json, sentence: str) -> None:
    args: Json = {"failure": "repair", "session": "train", "previous": ["one"]}
    result = played(queue_failures.ActionModule).act(args, {"ansible_failed_result": why})
    assert result == {"changed": False, "failures": ["one"], "unrepaired": sentence}
