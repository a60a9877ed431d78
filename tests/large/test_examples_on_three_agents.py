# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples over an overlay network: a container on each of three hosts."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import example_images
import pytest
from agents_lab import NAMES, Agents
from controller import ROOT, Session, run
from parallel_shells import check_tools

TRAINED = r"rank (\d) of 3 on (\S+): loss (\S+) -> (\S+), weights (\w+), 2 workers, (\d+) KiB in /dev/shm"
TORCHRUN = (
    "torchrun --nnodes=$WORLD_SIZE --node-rank=$RANK --master-addr=$MASTER_ADDR --master-port=$MASTER_PORT "
    "/usr/local/bin/train.py"
)
# A host of the lab has two CPUs, so each host holds a single container.
WIDE = {"session_cpus": 2, "session_cluster_size": 3}
COUNT = "cat /sys/class/net/eth0/statistics/tx_bytes /sys/class/net/eth1/statistics/tx_bytes"


@pytest.fixture(scope="module")
def launched(agents: Agents) -> Callable[..., Session]:
    """A function that launches an example; its image is on the controller's engine and is copied to the hosts."""

    def launch(example: str, name: str, **variables: object) -> Session:
        image = example_images.build(agents.client, example)
        typed = {"session_name": name, "session_image": image, "session_launch_timeout": 1200, **variables}
        command = agents.command("cluster_session", "-e", f"@examples/{example}/session.yml", **typed)
        run(command, cwd=ROOT, env=agents.environment, timeout=1200).check()
        return Session(agents, name)

    return launch


def agents_of(session: Session) -> list[str]:
    return [container["agent"] for container in session.document["containers"]]


def sent(session: Session, host: str) -> tuple[int, int]:
    """The bytes sent over the session's network and over docker_gwbridge."""
    own, gateway = session.say(host, COUNT).split()
    return int(own), int(gateway)


def check_training(text: str) -> None:
    found = sorted(re.findall(TRAINED, text))
    assert [rank[:2] for rank in found] == [("0", "main1"), ("1", "sub1"), ("2", "sub2")], text
    assert all(float(last) < float(first) / 2 for _rank, _host, first, last, _sum, _shared in found)
    assert len({rank[4] for rank in found}) == 1


def test_pytorch_trains_over_the_network_of_the_session(agents: Agents, launched: Callable[..., Session]) -> None:
    """With the variables alone and through torchrun, which Ansible starts in each container."""
    train = launched("pytorch", "train", **WIDE)
    assert agents_of(train) == list(NAMES)
    check_training(agents.play("session_logs", session_name="train").check().text)
    before = sent(train, "sub1")
    check_training(agents.everywhere("train", TORCHRUN).check().text)
    after = sent(train, "sub1")
    assert after[0] - before[0] > 100_000
    assert after[1] - before[1] < 10_000
    agents.terminate("train").check()


def test_mpi_and_ssh_tools_use_the_network_of_the_session(
    agents: Agents, launched: Callable[..., Session], tmp_path: Path
) -> None:
    """All ranks on all containers, correct sums, and nothing over docker_gwbridge; then rsync, pdsh, clush, exec and copy."""
    ring = launched("mpi", "ring", **WIDE)
    assert agents_of(ring) == list(NAMES)
    before = sent(ring, "sub1")
    for program in ("ring", "ring.py"):
        output = ring.say("main1", f"mpirun {program}").splitlines()
        assert sorted(output) == [
            f"rank {rank} of 6 on {host}: ring 15, all-reduce of 1000000: 0 wrong"
            for rank, host in enumerate(("main1", "main1", "sub1", "sub1", "sub2", "sub2"))
        ]
    after = sent(ring, "sub1")
    assert after[0] - before[0] > 16_000_000
    assert after[1] - before[1] < 100_000
    check_tools(ring)
    (tmp_path / "data").write_text("shared\n")
    agents.play("session_copy", session_name="ring", session_copy_source=str(tmp_path / "data")).check()
    read = agents.play("session_exec", session_name="ring", session_exec_command="cat data").check().text
    assert all(f"{host}: shared" in read for host in ("main1", "sub1", "sub2"))
    back = {
        "session_copy_direction": "from",
        "session_copy_source": "data",
        "session_copy_target": str(tmp_path / "got"),
    }
    agents.play("session_copy", session_name="ring", **back).check()
    assert (tmp_path / "got" / "sub2" / "data").read_text() == "shared\n"
    agents.terminate("ring").check()


def test_hpc_challenge_succeeds_on_two_hosts(agents: Agents, launched: Callable[..., Session]) -> None:
    """Four ranks, two on each host."""
    hpcc = launched("hpcc", "hpcc", session_cpus=2, session_cluster_size=2)
    assert len(set(agents_of(hpcc))) == 2
    text = agents.play("session_logs", session_name="hpcc").check().text
    assert "Success=1" in text
    assert "CommWorldProcs=4" in text
    assert "FAILED" not in text
    agents.terminate("hpcc").check()
