# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which container proves which others: every container once, by main1 or by a container that main1 proves."""

from __future__ import annotations

import subprocess

import pytest
from samples import plan, request

from ansible_collections.cluster.compute.plugins.plugin_utils._proof import (
    GROUP,
    MOST_WORKERS,
    SCRIPT,
    START,
    Group,
    Proof,
)


def proof(placement: str, cpus: float = 1, memory: str = "256m") -> Proof:
    return Proof.of(plan(request(cluster_size=len(placement), cpus=cpus, memory=memory, shm="1m"), placement))


@pytest.mark.parametrize("placement", ["a", "aa", "a" * 17, "a" * 18, "a" * 200, "a" * 5 + "b" * 30 + "c", "abc" * 20])
def test_every_container_is_proved_once_after_the_one_that_proves_it(placement: str) -> None:
    proved = ["main1"]
    for prover, name in proof(placement).pairs("main1"):
        assert prover in proved
        proved.append(name)
    others = ["sub%d" % number for number in range(1, len(placement))]
    assert sorted(proved) == sorted(["main1", *others])


def test_main1_proves_a_small_session_itself() -> None:
    assert proof("a" * 4 + "b" * 13).groups == tuple(Group("sub%d" % number) for number in range(1, 17))


def test_a_group_of_a_large_session_is_on_one_agent() -> None:
    placement = "a" * 5 + "b" * 30
    groups = proof(placement).groups
    assert [len(group.members) + 1 for group in groups] == [4, GROUP, 30 - GROUP]
    for group in groups:
        agents = {placement[int(name[3:])] for name in (group.head, *group.members)}
        assert len(agents) == 1


@pytest.mark.parametrize(
    ("cpus", "memory", "workers"),
    [(1, "256m", MOST_WORKERS), (0.3, "256m", 2), (0.05, "256m", 1), (4, "16m", 2), (4, "8m", 1), (4, "23m", 5)],
)
def test_a_small_container_opens_few_connections_at_the_same_time(cpus: float, memory: str, workers: int) -> None:
    found = proof("a" * 40, cpus, memory)
    assert {found.workers, *(group.workers for group in found.groups)} == {workers}


def test_the_command_names_the_groups() -> None:
    command = Proof((Group("sub1", ("sub2", "sub3"), 4), Group("sub4")), 8).command("abc", 58)
    assert command == START + " abc 58 8 sub1:4:sub2,sub3 sub4"


def test_the_script_is_a_script_of_any_shell() -> None:
    assert "@" not in SCRIPT.replace('"$@"', "").replace("openssh.com", "").replace("aes128-gcm@", "")
    subprocess.run(["sh", "-n"], input=SCRIPT, text=True, check=True)
