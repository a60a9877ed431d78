# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proof of a large session: a container that main1 reaches proves others in its turn, within its own memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ssh_lab import Lab, make_plan

from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError
from ansible_collections.cluster.compute.plugins.plugin_utils._client.proof import Group, Proof
from ansible_collections.cluster.compute.plugins.plugin_utils._client.ssh import reach


@pytest.fixture
def lab(engine_host: str, tmp_path: Path) -> Iterator[Lab]:
    made = Lab(make_plan("cluster-compute/reference:1", 5, memory="16m"), tmp_path / "artifacts", engine_host)
    try:
        yield made.up()
    finally:
        made.remove()


def test_containers_prove_others_in_turn(lab: Lab) -> None:
    proof = Proof((Group("sub1", ("sub2", "sub3"), 2), Group("sub4")), 2)
    assert reach(lab.door(), proof, 60) == ["main1", "sub1", "sub2", "sub3", "sub4"]

    lab.engine.stop(lab.plan.containers[3].name, 1)
    with pytest.raises(ComputeError, match=r"^sub3 does not accept ssh connections from sub1: .*sub3.*\.$"):
        reach(lab.door(), proof, 8)
    lab.engine.stop(lab.plan.containers[1].name, 1)
    with pytest.raises(ComputeError, match=r"^sub1 does not accept ssh connections from main1: .*sub1.*\.$"):
        reach(lab.door(), proof, 8)
