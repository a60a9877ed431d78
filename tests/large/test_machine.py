# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host with Debian's own kernel: systemd manages the engine and its cgroups of version 2, and the kernel mounts NFS.

The tests use the machine one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from agents_lab import REFERENCE
from machine_lab import NAME, Machine, install

SMALL = {"session_cpus": 0.5, "session_memory": "64m", "session_shm": "16m", "session_cluster_size": 2}
SERVER = """
set -e
mkdir -p /srv/nas /mnt/nas
chown 1000:1000 /srv/nas
echo '/srv/nas 127.0.0.1(rw,sync,no_subtree_check,root_squash,fsid=0)' >/etc/exports
systemctl start nfs-server
exportfs -ra
mount -t nfs4 127.0.0.1:/ /mnt/nas
echo from-the-server >/srv/nas/greeting
"""
OPTIONS = {"type": "nfs", "o": "addr=127.0.0.1,rw,nfsvers=4", "device": ":/"}
MOUNTS = [
    {"type": "volume", "source": "nas", "target": "/data", "options": OPTIONS},
    {"source": "/mnt/nas", "target": "/nas"},
]


@pytest.fixture(scope="module")
def machine(engine_host: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    folder = tmp_path_factory.mktemp("m")
    made = Machine(folder / "m")
    try:
        install(folder / "root")
        made.make(folder / "root")
        made.start()
        made.load(REFERENCE)
        made.play("provision_agents").check()
        yield made
    finally:
        made.stop()


def nothing_is_left(machine: Machine) -> bool:
    label = "--filter label=cluster.compute.session"
    return not machine.says(f"docker ps --all --quiet {label}; docker network ls --quiet {label}")


def test_the_doctor_and_a_second_provisioning(machine: Machine) -> None:
    assert machine.says("stat --file-system --format %T /sys/fs/cgroup") == "cgroup2fs"
    assert machine.play("provision_agents").check().changed == 0
    found = machine.play("check_agents").check().text
    assert "version 2, CPU quota, memory limit, swap limit, cpuset, pids limit" in found
    assert "cgroups systemd" in found


def test_a_session_from_the_launch_to_the_end(machine: Machine) -> None:
    machine.play("cluster_session", session_name="train", **SMALL).check()
    assert machine.ssh("train", "main1", "ssh sub1 hostname") == "sub1"
    limits = machine.ssh("train", "main1", "ssh sub1 cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/cpu.max")
    assert limits.split() == [str(64 << 20), "50000", "100000"]
    assert machine.play("cluster_session", session_name="train", **SMALL).check().changed == 0
    machine.says("docker rm --force root.train.sub1")
    assert "sub1 brought back" in machine.play("cluster_session", session_name="train", **SMALL).check().text
    assert "RUNNING" in machine.play("sessions").check().text
    machine.play("terminate", session_name="train").check()
    assert nothing_is_left(machine)


def test_memory_that_runs_out_is_named(machine: Machine) -> None:
    command = {"session_command": "head -c 300m /dev/zero | tail >/dev/null"}
    machine.play("cluster_session", session_name="hungry", **SMALL, **command).check()
    shown = machine.play("terminate", session_name="hungry").check().text
    assert "exit code 137, out of memory" in shown


def test_a_session_survives_a_boot(machine: Machine) -> None:
    machine.play("cluster_session", session_name="train", **SMALL).check()
    machine.reboot()
    machine.play("cluster_session", session_name="train", **SMALL).check()
    assert machine.ssh("train", "main1", "ssh sub1 hostname") == "sub1"
    machine.play("terminate", session_name="train").check()
    assert nothing_is_left(machine)


def test_a_file_server_that_the_kernel_mounts(machine: Machine) -> None:
    machine.says(SERVER)
    mounts = {"session_mounts": MOUNTS}
    machine.play("cluster_session", session_name="train", **SMALL, **mounts).check()
    assert machine.ssh("train", "main1", "cat /data/greeting /nas/greeting").split() == ["from-the-server"] * 2
    machine.ssh("train", "main1", "echo from-main1 >/data/answer")
    assert machine.ssh("train", "sub1", "cat /nas/answer") == "from-main1"

    machine.says("systemctl stop nfs-server")
    listed = machine.play("sessions").check().text
    assert f"/mnt/nas: it does not answer on {NAME}" in listed
    refused = machine.play("cluster_session", session_name="other", **SMALL, **mounts)
    assert refused.code != 0
    assert "does not answer" in refused.message
    # KILL ends some programs that wait for NFS, and others only when the server is back.
    ended = machine.play("terminate", session_name="train")
    assert ended.code == 0 or "run the end again when its file server is back" in ended.message

    machine.says("systemctl start nfs-server")
    machine.shell("timeout 200 cat /mnt/nas/greeting", timeout=250)
    machine.play("terminate", session_name="train")
    assert nothing_is_left(machine)
    machine.says("umount /mnt/nas")
