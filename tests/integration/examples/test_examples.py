# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples, each with the command from its documentation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from controller import Controller, Session, run_playbook
from parallel_shells import check_tools

RANK = r"rank (\d) of 3 on (\S+): loss (\S+) -> (\S+), weights (\w+), 2 workers, (\d+) KiB in /dev/shm"
RING = r"^rank (\d) of (\d) on (\S+): ring (\d+), all-reduce of 1000000: 0 wrong$"
TORCHRUN = (
    "torchrun --nnodes=$WORLD_SIZE --node-rank=$RANK --master-addr=$MASTER_ADDR --master-port=$MASTER_PORT "
    "/usr/local/bin/train.py"
)


def launch(controller: Controller, example: str, name: str, image: str) -> Session:
    """Launch an example with the image of this run."""
    variables = {"session_name": name, "session_image": image, "session_launch_timeout": 900}
    command = controller.command("cluster_session", "-e", f"@examples/{example}/session.yml", **variables)
    run_playbook(command, controller.environment).check()
    return Session(controller, name)


def written(session: Session, host: str = "main1") -> str:
    """A container's log, without the lines of PID 1."""
    lines = session.controller.client.logs(session.containers()[host]["Id"]).decode().splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("cluster-compute: "))


def check_training(text: str) -> None:
    """All ranks took part, the loss decreased, all weights are equal, and batches used /dev/shm."""
    found = sorted(re.findall(RANK, text))
    assert [rank[:2] for rank in found] == [("0", "main1"), ("1", "sub1"), ("2", "sub2")], text
    assert all(float(last) < float(first) / 2 for _rank, _host, first, last, _sum, _shared in found)
    assert len({rank[4] for rank in found}) == 1
    assert all(int(rank[5]) > 256 for rank in found)


@pytest.fixture(scope="module")
def train(controller: Controller, image: Callable[[str], str]) -> Iterator[Session]:
    yield launch(controller, "pytorch", "train", image("pytorch"))
    controller.terminate("train").check()


@pytest.fixture(scope="module")
def ring(controller: Controller, image: Callable[[str], str]) -> Session:
    return launch(controller, "mpi", "ring", image("mpi"))


def test_pytorch_trains_with_the_variables_alone(train: Session) -> None:
    check_training(written(train))


@pytest.mark.large
def test_pytorch_trains_through_torchrun(controller: Controller, train: Session) -> None:
    """Each container runs its own torchrun, started by Ansible: no rank reaches another by SSH."""
    check_training(controller.everywhere("train", TORCHRUN).check().text)


def test_mpi_runs_programs_in_c_and_python(ring: Session) -> None:
    """One slot for each container, though each has half a CPU; two programs, both with the right sums."""
    found = re.findall(RING, written(ring), re.MULTILINE)
    assert sorted(found) == sorted(
        [(str(rank), "3", host, "3") for rank, host in enumerate(("main1", "sub1", "sub2"))] * 2
    )


def test_mpi_uses_the_network_of_the_session(ring: Session) -> None:
    """The vector of 8 MB is sent over eth0, the interface in the session's network."""
    count = "cat /sys/class/net/eth0/statistics/tx_bytes"
    before = int(ring.say("sub1", count))
    output = ring.say("main1", "mpirun ring")
    assert len(re.findall(RING, output, re.MULTILINE)) == 3
    assert "Read -1" not in output
    assert int(ring.say("sub1", count)) - before > 8_000_000


def test_mpi_passes_the_environment_to_its_processes(ring: Session) -> None:
    output = ring.say(
        "main1", "mpirun sh -c 'echo $BACKENDAI_CLUSTER_HOST $RANK $GLOO_SOCKET_IFNAME $(hostname) $(id -un)'"
    )
    assert sorted(output.splitlines()) == [
        "main1 0 eth0 main1 work",
        "sub1 1 eth0 sub1 work",
        "sub2 2 eth0 sub2 work",
    ]


def test_common_ssh_tools_need_no_option_and_no_prompt(ring: Session) -> None:
    check_tools(ring)


def test_tensorflow_reduces_over_all_workers(controller: Controller, image: Callable[[str], str]) -> None:
    flow = launch(controller, "tensorflow", "tensorflow", image("tensorflow"))
    hosts = ("main1", "sub1", "sub2")
    wanted = [f"worker {index} of 3 at {host}:12345: all-reduce 3" for index, host in enumerate(hosts)]
    assert sorted(written(flow).splitlines()) == wanted
    controller.terminate("tensorflow").check()


@pytest.mark.large
def test_hpc_challenge_succeeds(controller: Controller, image: Callable[[str], str]) -> None:
    hpcc = launch(controller, "hpcc", "hpcc", image("hpcc"))
    text = written(hpcc)
    assert {"Success=1", "CommWorldProcs=4"} <= set(text.splitlines())
    assert "FAILED" not in text
    controller.terminate("hpcc").check()
