# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A session from the user's side: environment, names, ssh, scp, sftp, prompt and resources."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from controller import LABEL, Controller, Done, Session, run

CPUS = min(2, os.cpu_count() or 1)
SIZES = (3, 1, 11)


@pytest.fixture(scope="module")
def first(controller: Controller) -> Done:
    """The command of the README, for a session of three."""
    amounts = {"session_cpus": CPUS, "session_memory": "96m", "session_shm": "24m"}
    return controller.launch("trio", session_cluster_size=3, **amounts).check()


@pytest.fixture(scope="module")
def trio(controller: Controller, first: Done) -> Session:
    return Session(controller, "trio")


@pytest.fixture(scope="module", params=SIZES)
def session(request: pytest.FixtureRequest, controller: Controller) -> Session:
    """Sessions of three, one, and eleven, whose sub10 comes after sub9."""
    if request.param == 3:
        found: Session = request.getfixturevalue("trio")
        return found
    return controller.launched(f"size-{request.param}", session_cluster_size=request.param)


# Files with the hosts of the session, for launchers and parallel shells.
HOSTS = {
    "HYDRA_HOST_FILE": "/etc/mpi/hydra",
    "MPIR_CVAR_CH4_CMA_ENABLE": "0",
    "PDSH_RCMD_TYPE": "ssh",
    "WCOLL": "/etc/cluster-compute/hostnames",
    "CLUSTERSHELL_CFGDIR": "/etc/cluster-compute/clustershell",
}


def table(session: Session, rank: int) -> dict[str, str]:
    """docs/architecture.md, "Inside a container": the table, repeated."""
    document = session.document
    size, subnet = document["session"]["size"], document["network"]["subnet"]
    hosts = ["main1"] + [f"sub{number}" for number in range(1, size)]
    workers = ", ".join(f'"{host}:12345"' for host in hosts)
    task = f'"task": {{"type": "worker", "index": {rank}}}'
    return {
        "BACKENDAI_CLUSTER_SIZE": str(size),
        "BACKENDAI_CLUSTER_HOSTS": ",".join(hosts),
        "BACKENDAI_CLUSTER_REPLICAS": f"main:1,sub:{size - 1}" if size > 1 else "main:1",
        "BACKENDAI_CLUSTER_HOST": hosts[rank],
        "BACKENDAI_CLUSTER_IDX": str(rank or 1),
        "BACKENDAI_CLUSTER_ROLE": "sub" if rank else "main",
        "BACKENDAI_CLUSTER_LOCAL_RANK": str(rank),
        "BACKENDAI_CLUSTER_MODE": "single-node",
        "BACKENDAI_KERNEL_ID": document["containers"][rank]["id"],
        "BACKENDAI_SESSION_ID": document["session"]["id"],
        "BACKENDAI_SESSION_NAME": session.name,
        "WORLD_SIZE": str(size),
        **dict.fromkeys(("WORLD_RANK", "RANK", "LOCAL_RANK", "NODE_RANK"), str(rank)),
        "MASTER_ADDR": "main1",
        "MASTER_PORT": "12345",
        "TF_CONFIG": f'{{"cluster": {{"worker": [{workers}]}}, {task}}}',
        "OMP_NUM_THREADS": str(max(1, int(document["resources"]["cpus"]))),
        "NCCL_SOCKET_IFNAME": "=eth0",
        "GLOO_SOCKET_IFNAME": "eth0",
        "TP_SOCKET_IFNAME": "eth0",
        "UCX_NET_DEVICES": "eth0",
        "OMPI_MCA_btl_tcp_if_include": subnet,
        "OMPI_MCA_oob_tcp_if_include": subnet,
        "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
        "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
        **HOSTS,
        "NVIDIA_VISIBLE_DEVICES": "void",
        "PRTE_MCA_prte_if_include": subnet,
        "PRTE_MCA_prte_default_hostfile": "/etc/mpi/hostfile",
    }


# Further variables, which an image or a login sets.
LOGIN = {"PATH", "LANG", "HOSTNAME", "HOME", "USER", "LOGNAME", "SHELL", "MAIL", "PWD", "SHLVL", "OLDPWD", "_"}
LOGIN |= {"SSH_CLIENT", "SSH_CONNECTION"}


def variables(lines: str) -> dict[str, str]:
    pairs = (line.split("=", 1) for line in lines.splitlines())
    return {pair[0]: pair[1] for pair in pairs if pair[0] not in LOGIN}


def hosts_of(session: Session) -> list[str]:
    return [one["hostname"] for one in session.document["containers"]]


def test_environment_seen_three_ways(session: Session) -> None:
    containers = session.containers()
    expected = {host: table(session, rank) for rank, host in enumerate(hosts_of(session))}
    assert list(containers) == list(expected)
    given = {host: variables("\n".join(one["Config"]["Env"])) for host, one in containers.items()}
    assert given == expected
    assert variables(session.say("main1", "env")) == expected["main1"]
    everybody = " ".join(expected)
    answers = session.say("main1", f"for host in {everybody}; do ssh $host env; echo ==; done").split("==\n")
    seen = [variables(answer.removesuffix("==")) for answer in answers]
    assert seen == list(expected.values())


def test_addresses_names_and_ports(session: Session) -> None:
    """/etc/hosts has every name, addresses are as planned, only main1 has ports, and its ID is the session's ID."""
    document, containers = session.document, session.containers()
    hosts = sorted(f"{one['address']}\t{one['hostname']}" for one in document["containers"])
    assert document["containers"][0]["id"] == document["session"]["id"]
    loop = f"for host in {' '.join(containers)}; do ssh $host cat /etc/hosts; echo ==; done"
    for text in session.say("main1", loop).split("==")[:-1]:
        assert sorted(line for line in text.splitlines() if line in hosts) == hosts
    for one in document["containers"]:
        inspected = containers[one["hostname"]]
        [network] = inspected["NetworkSettings"]["Networks"].values()
        assert network["IPAddress"] == one["address"]
        assert inspected["Config"]["Labels"]["cluster.compute.container"] == one["id"]
        published = inspected["HostConfig"]["PortBindings"] or {}
        assert list(published) == (["22/tcp"] if one["hostname"] == "main1" else [])
    assert {binding["HostIp"] for binding in containers["main1"]["HostConfig"]["PortBindings"]["22/tcp"]} == {
        "127.0.0.1"
    }


def test_summary_and_documents(controller: Controller, first: Done, trio: Session) -> None:
    assert "Session trio: RUNNING (cluster session, single-node)" in first.text
    assert f"ssh -F {trio.config} main1" in first.text
    assert trio.document["session"]["state"] == "RUNNING"
    assert set(trio.document["timings"]) == {"inform", "schedule", "network", "create", "start", "verify"}
    assert trio.folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in trio.folder.iterdir()} == {0o600}
    listed = controller.play("sessions").check()
    assert re.search(rf"trio +{controller.owner} +RUNNING .*3 single-node", listed.text)


def test_same_command_again_touches_nothing(controller: Controller, trio: Session) -> None:
    before = controller.everything()
    amounts = {"session_cpus": CPUS, "session_memory": "96m", "session_shm": "24m"}
    again = controller.launch("trio", session_cluster_size=3, **amounts).check()
    assert again.changed == 0
    assert "Session trio: RUNNING, nothing to do" in again.text
    assert controller.everything() == before
    checked = controller.launch("trio", "--check", "--diff", session_cluster_size=3, **amounts).check()
    assert checked.changed == 0
    assert controller.everything() == before


def test_ssh_scp_sftp_from_the_controller(trio: Session, tmp_path: Path) -> None:
    sent = tmp_path / "sent"
    sent.write_text("from here\n")
    assert trio.say("main1", "ssh sub1 hostname") == "sub1"
    assert trio.say("sub2", "hostname; id -un").split() == ["sub2", "work"]
    run(["scp", "-q", "-F", trio.config, str(sent), "sub1:there"]).check()
    run(["scp", "-q", "-F", trio.config, "sub1:there", str(tmp_path / "back")]).check()
    assert (tmp_path / "back").read_text() == "from here\n"
    batch = f"get there {tmp_path}/once\nput {tmp_path}/once main\n"
    run(["sftp", "-q", "-F", trio.config, "-b", "-", "sub1"], said=batch).check()
    assert trio.say("sub1", "cat main") == "from here"


def test_ssh_scp_sftp_between_containers(trio: Session) -> None:
    script = (
        "echo one >a; scp -q a sub1:b; scp -q sub1:b sub2:c; echo 'get c d' | sftp -q -b - sub2; ssh sub2 cat c; cat d"
    )
    assert trio.say("main1", script).split()[-2:] == ["one", "one"]
    assert trio.say("sub2", "ssh main1 ssh sub1 ssh sub2 hostname") == "sub2"
    assert trio.say("main1", "ssh main1 hostname") == "main1"


def test_ssh_to_itself_in_a_session_of_one(session: Session) -> None:
    assert session.say("main1", "ssh main1 hostname") == "main1"


def test_prompt(trio: Session) -> None:
    for command in (
        ["ssh", "-tt", "-F", trio.config, "sub1"],
        ["ssh", "-tt", "-F", trio.config, "main1", "ssh -tt sub1"],
    ):
        assert "work@sub1:" in run(command, said="exit\n").text


def test_resources_from_inside(trio: Session) -> None:
    seen = trio.say(
        "sub1",
        "cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/cpu/cpu.cfs_period_us 2>/dev/null || cat /sys/fs/cgroup/cpu.max;"
        "cat /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null || cat /sys/fs/cgroup/memory.max;"
        "df -k /dev/shm | tail -n 1; cat /etc/mpi/hostfile",
    ).split()
    quota, period, memory = (int(word) for word in seen[:3])
    assert (quota / period, memory) == (CPUS, 96 << 20)
    assert seen[4] == str(24 << 10)
    assert seen[-6:] == ["main1", f"slots={CPUS}", "sub1", f"slots={CPUS}", "sub2", f"slots={CPUS}"]
    memory_and_swap = {one["HostConfig"]["MemorySwap"] for one in trio.containers().values()}
    assert memory_and_swap == {96 << 20}


def test_cpu_pinning(controller: Controller) -> None:
    pinned = controller.launched(
        "pinned", session_cluster_size=CPUS, session_cpus=1, session_cpu_pinning=True, agent_cpus=CPUS + 60
    )
    allowed = pinned.say("main1", f"for host in {' '.join(hosts_of(pinned))}; do ssh $host cat /proc/self/status; done")
    cpus = [line.split()[1] for line in allowed.splitlines() if line.startswith("Cpus_allowed_list")]
    assert len(set(cpus)) == CPUS
    assert all(cpu.isdigit() for cpu in cpus)


def test_after_docker_restart(controller: Controller, trio: Session) -> None:
    containers = trio.containers()
    for one in containers.values():
        controller.client.restart(one["Id"], timeout=5)
    hosts = {f"{one['address']}\t{one['hostname']}" for one in trio.document["containers"]}
    for host in containers:
        assert hosts <= set(trio.say("main1", f"ssh {host} cat /etc/hosts").splitlines())
        assert variables(trio.say(host, "env")) == table(trio, list(containers).index(host))


def test_a_swapped_host_key_is_refused(controller: Controller, trio: Session, tmp_path: Path) -> None:
    sub = trio.containers()["sub1"]["Id"]
    chunks, _facts = controller.client.get_archive(sub, "/etc/cluster-compute")
    kept = b"".join(chunks)
    script = "cd /etc/cluster-compute && rm ssh_host_* && ssh-keygen -q -t ed25519 -N '' -f ssh_host_ed25519_key && touch ssh_host_ed25519_key-cert.pub"
    made = controller.client.exec_create(sub, ["/opt/cluster-compute/bin/sh", "-c", script], user="0")
    print(controller.client.exec_start(made["Id"]))
    assert controller.client.exec_inspect(made["Id"])["ExitCode"] == 0
    controller.client.restart(sub, timeout=5)
    for refused in (trio.ssh("main1", "ssh sub1 hostname"), trio.ssh("sub1", "hostname")):
        assert refused.code != 0
        assert "Host key verification failed" in refused.text
    controller.client.put_archive(sub, "/etc", kept)
    controller.client.restart(sub, timeout=5)
    assert trio.say("main1", "ssh sub1 hostname") == "sub1"


def test_another_authority_is_refused(trio: Session, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(trio.folder, copy)
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "ca")]).check()
    (copy / "known_hosts").write_text("@cert-authority * " + (tmp_path / "ca.pub").read_text())
    config = (copy / "ssh_config").read_text().replace(str(trio.folder), str(copy))
    (copy / "ssh_config").write_text(config)
    refused = run(["ssh", "-F", str(copy / "ssh_config"), "main1", "hostname"])
    assert refused.code == 255
    assert "Host key verification failed" in refused.text


def test_check_mode_with_no_session(controller: Controller) -> None:
    """Check mode shows the whole plan, and creates neither a store nor artifacts."""
    fresh = Controller(controller.folder / "fresh", controller.host)
    checked = fresh.launch("unborn", "--check", "--diff", session_cluster_size=4).check()
    assert "Session unborn: would be launched (cluster session, single-node)" in checked.text
    name = f"name: {fresh.owner}.unborn.sub3"
    origins = (f'session_owner: "{fresh.owner}"    # {fresh.common}', "session_cluster_size: 4    # command line")
    for wanted in ("BACKENDAI_CLUSTER_HOSTS: main1,sub1,sub2,sub3", name, "driver: bridge", *origins):
        assert wanted in checked.text
    assert not fresh.state.exists()
    assert not fresh.artifacts.exists()
    assert fresh.engine() == {}


def test_labels_say_whose_it_is(trio: Session, controller: Controller) -> None:
    """A single label selects everything of the collection."""
    filters: dict[str, Any] = {"label": f"{LABEL}={trio.id}"}
    assert len(controller.client.containers(all=True, filters=filters)) == 3
    [network] = controller.client.networks(filters=filters)
    assert network["Labels"][LABEL + ".name"] == "trio"
    placement = trio.containers()["sub2"]["Config"]["Labels"][LABEL + ".placement"]
    assert json.loads(placement) == [["localhost", 3]]
