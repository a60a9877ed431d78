# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.topology import (
    local_ranks,
    members,
    replicas,
)


def test_members_come_in_numeric_order() -> None:
    names = [member.hostname for member in members(12)]
    assert names == ["main1"] + ["sub%d" % index for index in range(1, 12)]
    assert names.index("sub9") < names.index("sub10")


@given(st.integers(1, 1000))
def test_ranks_count_from_zero_and_indexes_from_one(size: int) -> None:
    everyone = members(size)
    assert [member.rank for member in everyone] == list(range(size))
    assert [member.index for member in everyone] == [1, *range(1, size)]
    assert [member.role for member in everyone] == ["main"] + ["sub"] * (size - 1)


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        (["main"], "main:1"),
        (["main", "sub"], "main:1,sub:1"),
        (["main", *["sub"] * 11], "main:1,sub:11"),
        (["main", "ps", "sub", "ps"], "main:1,ps:2,sub:1"),
        ([], ""),
    ],
)
def test_replicas(roles: list[str], expected: str) -> None:
    assert replicas(roles) == expected


@pytest.mark.parametrize(
    ("agents", "expected"),
    [("a", [0]), ("aaa", [0, 1, 2]), ("aabb", [0, 1, 0, 1]), ("abab", [0, 0, 1, 1]), ("abca", [0, 0, 0, 1]), ("", [])],
)
def test_local_ranks(agents: str, expected: list[int]) -> None:
    assert local_ranks(agents) == expected


@given(st.lists(st.sampled_from("abc")))
def test_local_ranks_are_a_count_on_every_agent(agents: list[str]) -> None:
    ranks = local_ranks(agents)
    for name in set(agents):
        mine = [rank for agent, rank in zip(agents, ranks, strict=True) if agent == name]
        assert mine == list(range(agents.count(name)))
