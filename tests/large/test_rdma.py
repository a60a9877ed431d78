# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""RDMA between two emulated machines: soft-RoCE on the network between them, and tools for RDMA in containers of one session."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from agents_lab import REFERENCE
from controller import run
from machine_lab import WHOLE_KERNEL, Machine, install, pair

IMAGE = "cluster-compute-test/rdma:1"
DOCKERFILE = f"""
FROM {REFERENCE}
RUN apt-get update && apt-get install -y --no-install-recommends ibverbs-providers rdmacm-utils perftest ucx-utils
"""
PORT = "modprobe rdma_ucm && modprobe rdma_rxe && rdma link add rxe0 type rxe netdev eth1"
SESSION = {"session_name": "train", "session_cluster_size": 2, "session_cpus": 1, "session_memory": "512m"}
HOST = {**SESSION, "session_image": IMAGE, "session_rdma": True, "session_network": "host"}
WITHOUT = "machine2 has no RDMA device for session_rdma"


@pytest.fixture(scope="module")
def machines(engine_host: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Machine, Machine]]:
    folder = tmp_path_factory.mktemp("m")
    (folder / "Dockerfile").write_text(DOCKERFILE)
    run(["docker", "build", "--tag", IMAGE, str(folder)], timeout=600).check()
    made = pair(folder)
    try:
        install(folder / "root", WHOLE_KERNEL)
        for machine in made:
            machine.make(folder / "root")
        with ThreadPoolExecutor(len(made)) as threads:
            list(threads.map(start, made))
        made[0].write_inventory(made[1])
        made[0].play("provision_agents").check()
        yield made
    finally:
        for machine in made:
            machine.stop()
        run(["docker", "image", "rm", IMAGE])


def start(machine: Machine) -> None:
    machine.start()
    machine.load(REFERENCE, IMAGE)
    machine.says(PORT)


def test_the_doctor_says_what_a_session_would_use(machines: tuple[Machine, Machine]) -> None:
    found = machines[0].play("check_agents").check().text
    assert "rxe0:1 RoCE v2, not on the fabric" in found
    assert "RoCE v2 with session_rdma and session_network: host" in found


def test_a_session_waits_for_a_port_of_the_private_network(machines: tuple[Machine, Machine]) -> None:
    private = {**HOST, "session_name": "other", "session_network": "private"}
    shown = " ".join(machines[0].play("cluster_session", "--check", **private).check().text.split())
    for name in ("machine1", "machine2"):
        reason = "rxe0:1 is RoCE, which works only with session_fabric or session_network: host"
        assert f"{name} has no port for session_rdma: {reason}" in shown


def test_a_session_waits_for_a_second_host_with_a_port(machines: tuple[Machine, Machine]) -> None:
    first, second = machines
    second.says("rdma link delete rxe0")
    waiting = first.play("cluster_session", **{**HOST, "session_name": "other"})
    assert f"session_network: host needs 2 agents, 1 is eligible; {WITHOUT}" in waiting.text
    second.says("rdma link add rxe0 type rxe netdev eth1")
    first.play("cluster_session", **{**HOST, "session_name": "other"}).check()
    assert first.ssh("other", "main1", "ssh sub1 printenv UCX_NET_DEVICES") == "rxe0:1"
    first.play("terminate", session_name="other").check()


@pytest.fixture(scope="module")
def session(machines: tuple[Machine, Machine]) -> Iterator[Machine]:
    """The first machine, whose user has a session on the network of both."""
    first, _second = machines
    first.play("cluster_session", **HOST).check()
    yield first
    first.play("terminate", session_name="train").check()
    label = "--filter label=cluster.compute.session"
    for machine in machines:
        assert not machine.says(f"docker ps --all --quiet {label}; docker network ls --quiet {label}")


def between(session: Machine, server: str, client: str) -> tuple[str, int]:
    """What a client in main1 says of a server in sub1, and the packets that the port of sub1 receives meanwhile."""
    count = "cat /sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_pkts"
    before = int(session.ssh("train", "sub1", count))
    # A client that comes before the server listens fails at once.
    script = (
        f"ssh -n sub1 'timeout 100 {server}' >/dev/null 2>&1 & timeout 100 sh -c 'until {client}; do sleep 1; done'"
    )
    said = session.ssh("train", "main1", script)
    return said, int(session.ssh("train", "sub1", count)) - before


def test_the_ports_are_named_in_every_login(session: Machine) -> None:
    said = session.ssh("train", "main1", "env; ssh sub1 env").splitlines()
    assert said.count("UCX_NET_DEVICES=rxe0:1") == said.count("NCCL_IB_HCA==rxe0:1") == 2


def test_rping_sends_data_from_a_container_to_another_one(session: Machine) -> None:
    said, packets = between(session, "rping -s -C 20", "rping -c -a sub1 -C 20 -v")
    assert said.count("ping data: rdma-ping-") == 20
    assert packets > 20


def test_ib_write_bw_writes_into_the_memory_of_another_container(session: Machine) -> None:
    """It does not read the variables, so it gets their device."""
    device = "-d ${UCX_NET_DEVICES%:*}"
    said, packets = between(session, f"ib_write_bw {device} -n 500", f"ib_write_bw {device} -n 500 sub1")
    assert "Link type       : Ethernet" in said
    assert packets > 500 * (65536 // 4096)


def test_ucx_sends_by_rdma_from_a_container_to_another_one(session: Machine) -> None:
    """UCX compares the receiver's GID where network cards write it, and soft-RoCE does not."""
    program = "env UCX_TLS=rc_verbs,ud_verbs UCX_UD_VERBS_ETH_DGID_CHECK=n ucx_perftest"
    said, packets = between(session, program, f"{program} sub1 -t tag_bw -n 100 -s 4096 -w 5")
    assert re.search("^Final: +100 ", said, re.MULTILINE), said
    assert packets > 100
