# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""torchrun without options: over all containers on request, and alone by default."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from controller import Controller, Session

ASKED: dict[str, Any] = {
    "session_cpus": "0.6",
    "session_memory": "768m",
    "session_shm": "256m",
    "session_launch_timeout": 900,
}
TRAINED = r"^(\S+): rank (\d) of (\d) on (\S+): .* weights \w+,"
LINE = r"rank (\d) of 3 on (\S+): loss 0\.000\d+$"
HINT = "torchrun: without options it trains in this container alone; session_torchrun makes it use all %d"


def shown(session: Session, host: str) -> str:
    """What a login at a terminal shows."""
    return session.ssh(host, "", "-tt", said="exit\n").text


def launched(controller: Controller, image: str, mode: str, size: int) -> Session:
    session = controller.launched(
        f"run-{mode}", session_image=image, session_cluster_size=size, session_torchrun=mode, **ASKED
    )
    assert (HINT % size in shown(session, "sub1")) == (mode == "none")
    assert HINT % size not in session.ssh("sub1", "sh -lc true").text
    return session


def test_one_training_over_all_containers(controller: Controller, image: Callable[[str], str]) -> None:
    """The training of examples/three_hosts, which its own test replaces: rank 0 saves the model."""
    session = launched(controller, image("pytorch"), "static", 3)
    file = ["-e", "@examples/three_hosts/session.yml"]
    given = {"session_name": session.name, "session_copy_target": "/tmp", "session_copy_containers": []}
    controller.play("session_copy", *file, **given).check()
    said = session.say("main1", "everywhere torchrun /tmp/train.py; ls /tmp/model.pt")
    assert sorted(re.findall(LINE, said, re.MULTILINE)) == [("0", "main1"), ("1", "sub1"), ("2", "sub2")], said
    assert said.endswith("/tmp/model.pt")
    controller.terminate(session.name).check()


@pytest.mark.large
def test_a_training_in_each_container(controller: Controller, image: Callable[[str], str]) -> None:
    """Two trainings, which a login at a terminal mentions."""
    session = launched(controller, image("pytorch"), "none", 2)
    said = session.say("main1", "everywhere torchrun /usr/local/bin/train.py 1")
    found = re.findall(TRAINED, said, re.MULTILINE)
    assert sorted(found) == [(host, "0", "1", host) for host in ("main1", "sub1")]
    controller.terminate(session.name).check()
