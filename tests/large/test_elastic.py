# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An elastic training of torchrun goes on through the loss of a container."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import example_images
from controller import Controller, Session

from ansible_collections.cluster.compute.plugins.module_utils._core.waiting import deadline_in, wait_until

PROGRAMS = {"source": str(Path(__file__).parent / "programs"), "target": "/programs", "mode": "ro"}
TRIO: dict[str, Any] = {
    "session_cluster_size": 3,
    "session_cpus": "0.6",
    "session_memory": "768m",
    "session_shm": "256m",
    "session_mounts": [PROGRAMS],
    "session_launch_timeout": 900,
}
ENDED = r"rank (\d) of (\d) ended: (\w+), error (\d+)$"
STEP = r"step (\d+) with \d ranks: (\w+)$"


def written(session: Session) -> str:
    """The log of main1."""
    return str(session.controller.client.logs(session.containers()["main1"]["Id"]).decode())


def test_an_elastic_training_survives_the_loss_of_a_container(
    controller: Controller,
) -> None:
    """A container is killed, the same command brings it back, it rejoins, and every step's result is that of an undisturbed run."""
    variables = {
        **TRIO,
        "session_image": example_images.build(controller.client, "pytorch"),
        "session_torchrun": "elastic",
        "session_torchrun_nodes": "1:3",
        "session_command": "everywhere --rejoin 600 torchrun /programs/elastic.py 1200 0.04",
    }
    session = controller.launched("elastic", **variables)
    assert wait_until(lambda: "step 200 with 3 ranks" in written(session), deadline_in(180)), written(session)
    controller.client.kill(session.containers()["sub1"]["Id"])
    controller.launch("elastic", **variables).check()
    repaired = written(session)
    assert wait_until(lambda: len(re.findall(ENDED, written(session), re.MULTILINE)) == 3, deadline_in(300)), written(
        session
    )
    controller.launch("elastic", session_wait_result=True, **variables).check()
    text = written(session)
    assert "everywhere: sub1 is lost" in text
    assert re.search(r"sub1: rank \d of 3 begins at step [1-9]", text), text
    assert "with 3 ranks" in text[len(repaired) :], text
    ended = re.findall(ENDED, text, re.MULTILINE)
    assert [size for _rank, size, _sum, _error in ended] == ["3"] * 3, text
    undisturbed = session.say("main1", "everywhere torchrun --rdzv-id=undisturbed /programs/elastic.py 1200 0")
    assert {found[2:] for found in re.findall(ENDED, undisturbed, re.MULTILINE)} == {found[2:] for found in ended}
    steps = dict(re.findall(STEP, undisturbed, re.MULTILINE))
    assert len(set(steps.values())) == 12, undisturbed
    assert set(re.findall(STEP, text, re.MULTILINE)) <= steps.items(), text
    controller.terminate("elastic").check()
