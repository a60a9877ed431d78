# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for the value of every variable, before its own rule."""

from __future__ import annotations

import pytest
from samples import exactly

from ansible_collections.cluster.compute.plugins.module_utils._core.errors import InputError
from ansible_collections.cluster.compute.plugins.module_utils._core.plain_value import check_plain
from ansible_collections.cluster.compute.plugins.module_utils._planning.request import REQUEST_VARIABLES
from ansible_collections.cluster.compute.plugins.module_utils._planning.variable import Variable

HUGE, SURROGATE = 10**400, "lone \ud800"


@pytest.mark.parametrize("variable", REQUEST_VARIABLES, ids=lambda variable: variable.name)
@pytest.mark.parametrize(
    "value",
    [
        HUGE,
        -HUGE,
        10**5000,
        float("inf"),
        float("nan"),
        SURROGATE,
        [HUGE],
        {"uid": HUGE, "A": HUGE},
        {"A": [[SURROGATE]]},
        {SURROGATE: 1},
        "x" * (1 << 21),
        [[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]],
    ],
    ids=range(12),
)
def test_values_that_cannot_be_computed_with_are_refused_in_one_sentence(variable: Variable, value: object) -> None:
    with pytest.raises(InputError) as caught:
        variable.check(variable.full_name, value)
    message = caught.value.message
    assert message.startswith("session_")
    assert message.endswith(".")
    assert len(message) < 600
    message.encode()


def test_a_value_that_contains_itself_is_refused() -> None:
    endless: list[object] = []
    endless += [endless, endless]
    with pytest.raises(InputError, match=exactly("session_agents: 'a nested value': must have at most 100000 values.")):
        check_plain("session_agents", endless)
