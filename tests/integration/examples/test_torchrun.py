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
TRAINED = r"^(\S+): rank (\d) of (\d) on (\S+): .* weights (\w+),"
LINE = r"rank (\d) of 3 on (\S+): loss 0\.000\d+$"
HINT = "torchrun: without options it trains in this container alone; session_torchrun makes it use all 2"


def shown(session: Session, host: str) -> str:
    """What a login at a terminal shows."""
    return session.ssh(host, "", "-tt", said="exit\n").text


def check_three_hosts(session: Session) -> None:
    """The training of examples/three_hosts, which its own test replaces: the ranks agree, and rank 0 saves the model."""
    file = ["-e", "@examples/three_hosts/session.yml"]
    given = {"session_name": session.name, "session_copy_target": "/tmp", "session_copy_containers": []}
    session.controller.play("session_copy", *file, **given).check()
    said = session.say("main1", "everywhere torchrun /tmp/train.py; ls /tmp/model.pt")
    assert sorted(re.findall(LINE, said, re.MULTILINE)) == [("0", "main1"), ("1", "sub1"), ("2", "sub2")], said
    assert said.endswith("/tmp/model.pt")


@pytest.mark.parametrize(("mode", "size"), [("none", 2), ("static", 3)])
def test_torchrun_in_every_container(controller: Controller, image: Callable[[str], str], mode: str, size: int) -> None:
    """One training over three containers, or two trainings, which a login at a terminal mentions."""
    asked = {**ASKED, "session_cluster_size": size, "session_torchrun": mode}
    session = controller.launched(f"run-{mode}", session_image=image("pytorch"), **asked)
    assert (HINT in shown(session, "sub1")) == (mode == "none")
    assert HINT not in session.ssh("sub1", "sh -lc true").text
    command = "torchrun /usr/local/bin/train.py 1"
    found = re.findall(TRAINED, session.say("main1", f"everywhere {command}"), re.MULTILINE)
    hosts = ["main1", "sub1", "sub2"][:size]
    assert sorted(host for _name, _rank, _size, host, _sum in found) == hosts
    ranks = {(name, rank, size) for name, rank, size, _host, _sum in found}
    if mode == "none":
        assert ranks == {(name, "0", "1") for name in hosts}
    else:
        assert ranks == {("main1", "0", "3"), ("sub1", "1", "3"), ("sub2", "2", "3")}
        assert len({checksum for *_rest, checksum in found}) == 1
        check_three_hosts(session)
    controller.terminate(session.name).check()
