# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Agents of two architectures in one pool, by playbooks: stub engines say what their hosts are, and have an image for them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "bench"))

from many_agents import ManyAgents

SPREAD = {
    "session_cpus": 1,
    "session_memory": "64m",
    "session_cluster_mode": "multi-node",
    "session_strategy": "spread",
}
ARM = ("agent002", "agent003", "agent004")


@pytest.fixture(scope="module")
def pool() -> Iterator[ManyAgents]:
    with ManyAgents(5) as made:
        for name in ARM:
            made.engine(name).machine = "aarch64"
        yield made


def used(pool: ManyAgents) -> dict[str, int]:
    found = {name: len(pool.engine(name).containers) for name in pool.names}
    return {name: count for name, count in found.items() if count}


def test_a_session_of_the_reference_image_runs_on_one_architecture(pool: ManyAgents) -> None:
    """Six containers need three agents of two CPUs: there are as many of ARM, and two of x86."""
    pool.play("cluster_session.yml", {**SPREAD, "agent_cpus": 2, "session_cluster_size": 6})
    assert used(pool) == dict.fromkeys(ARM, 2)
    pool.end()
    assert used(pool) == {}


def test_a_session_that_only_both_together_could_hold_waits_with_the_reason(pool: ManyAgents) -> None:
    text = pool.play("cluster_session.yml", {**SPREAD, "agent_cpus": 2, "session_cluster_size": 8}).text
    reason = "a session runs on one architecture, and none has room for all 8 containers: aarch64 for 6, x86_64 for 4"
    assert reason in " ".join(text.split())
    assert used(pool) == {}
    pool.end()


def test_the_list_names_the_architecture_of_each_agent(pool: ManyAgents) -> None:
    text = pool.play("sessions.yml", {"session_name": ""}).text
    assert dict(re.findall(r"(agent\d+) +(x86_64|aarch64) ", text)) == {
        name: "aarch64" if name in ARM else "x86_64" for name in pool.names
    }


def test_one_agent_of_the_head_s_architecture_and_each_other_one_build_an_environment(pool: ManyAgents) -> None:
    text = pool.play("build_environments.yml", {"environments": "[lab]"}, "--check").text
    changes = dict(re.findall(r"(agent\d+) +: ok=\d+ +changed=(\d)", text))
    assert [name for name in pool.names if int(changes[name])] == ["agent001", *ARM]
