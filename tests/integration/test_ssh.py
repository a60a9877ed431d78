# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SSH between containers of the reference image: strict, without a prompt, with the container's own environment.

Needs an engine that was made an agent (playbooks/provision_agents.yml) and OpenSSH's clients. Removes all it makes.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import paramiko
import pytest
from ssh_lab import REFERENCE, Lab, agent_client, enter, given, make_plan

from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError, ConflictError
from ansible_collections.cluster.compute.plugins.plugin_utils._client.keys import Identity
from ansible_collections.cluster.compute.plugins.plugin_utils._client.proof import Proof
from ansible_collections.cluster.compute.plugins.plugin_utils._client.ssh import reach

STRANGE = {
    "QUOTES": 'it\'s "so"',
    "BACKSLASH": "a\\b\\\\c\\",
    "COMMENT": "#1 # 2",
    "DOLLAR": "$HOME `id` ${X}",
    "SPACES": "  two  ",
    "TAB": "a\tb",
    "UNICODE": "größe 容器",
    "EMPTY": "",
    "EQUALS": "a=b=c",
    "PERCENT": "%h %%",
    "BRACES": '{"cluster": {"worker": ["main1:12345"]}, "task": {"index": 0}}',
}
# What a login and the shell of a command set by themselves.
LOGIN_ONLY = {"HOME", "USER", "LOGNAME", "SHELL", "MAIL", "SSH_CLIENT", "SSH_CONNECTION", "PWD", "SHLVL", "_", "OLDPWD"}


@pytest.fixture(scope="module")
def client(engine_host: str) -> Any:
    return agent_client(engine_host)


@pytest.fixture(scope="module")
def pair(client: Any, engine_host: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A running session of two of the reference image, for tests that leave it as it is. Its folder has a space."""
    lab = Lab(make_plan(REFERENCE, 2, environment=STRANGE), tmp_path_factory.mktemp("kept here") / "art", engine_host)
    try:
        yield lab.up()
    finally:
        lab.remove()


def environment(text: str) -> dict[str, str]:
    return dict(entry.split("=", 1) for entry in text.split("\0") if entry)


@pytest.mark.parametrize(
    ("command", "rank"),
    [(["main1", "env -0"], 0), (["sub1", "env -0"], 1), (["main1", "ssh sub1 env -0"], 1)],
    ids=["main1", "by way of main1", "from main1"],
)
def test_a_login_has_exactly_the_container_s_environment(pair: Lab, command: list[str], rank: int) -> None:
    found = environment(pair.ssh(*command))

    wanted = given(pair, rank)
    assert {name: value for name, value in found.items() if name not in LOGIN_ONLY} == wanted
    assert {name: found[name] for name in STRANGE} == STRANGE
    assert (found["HOME"], found["USER"]) == ("/home/work", "work")


def test_a_login_shell_keeps_the_path(pair: Lab) -> None:
    assert pair.ssh("main1", "bash -lc 'echo $PATH'").strip() == given(pair, 0)["PATH"]


def test_every_container_reaches_every_container(pair: Lab) -> None:
    address = pair.plan.containers[1].address
    command = f"hostname; ssh main1 hostname; ssh sub1 'ssh main1 hostname; ssh sub1 hostname'; ssh {address} hostname"

    assert pair.ssh("main1", command).split() == ["main1", "main1", "main1", "sub1", "sub1"]


@pytest.mark.parametrize(
    "command",
    [
        "scp -q /etc/mpi/hostfile sub1:copy",
        "echo 'put /etc/mpi/hostfile copy' | sftp -q -b - sub1",
        "scp -O -q /etc/mpi/hostfile sub1:copy",
        "tar -C /etc/mpi -cf - hostfile | ssh sub1 'tar -xOf - >copy'",
    ],
)
def test_files_are_copied_by_the_usual_tools(pair: Lab, command: str) -> None:
    pair.ssh("main1", command)

    assert pair.ssh("sub1", "cat copy; rm copy") == "main1 slots=2\nsub1 slots=2\n"


@pytest.mark.parametrize("tool", ["scp", "sftp"])
def test_the_controller_s_configuration_serves_every_tool(pair: Lab, tool: str, tmp_path: Path) -> None:
    copied = tmp_path / "copied"
    done = subprocess.run(
        [tool, "-q", "-F", pair.config, "sub1:/etc/mpi/hostfile", str(copied)],
        capture_output=True,
        check=False,
        timeout=60,
    )

    assert done.returncode == 0, done.stderr
    assert copied.read_text() == "main1 slots=2\nsub1 slots=2\n"


def test_tools_without_certificates_find_pinned_host_keys(pair: Lab, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    known.write_text(pair.ssh("sub1", "cat .ssh/known_hosts"))
    keys = paramiko.HostKeys(str(known))

    for container in pair.plan.containers:
        public = pair.identity.host(container.hostname).public.split()[1]
        for name in (container.hostname, container.address):
            assert keys.lookup(name)["ssh-ed25519"].get_base64() == public


def test_a_person_sees_a_prompt(pair: Lab) -> None:
    assert "work@sub1:~$ " in enter(pair, "sub1")


def test_no_secret_is_visible(pair: Lab) -> None:
    identity = pair.identity
    secrets = [key.splitlines()[2] for key in (identity.user.private, identity.cluster.private)]
    secrets += [identity.host(one.hostname).private.splitlines()[2] for one in pair.plan.containers]
    shown = json.dumps([pair.engine.inspect(one.name) for one in pair.plan.containers])
    shown += pair.ssh("main1", "cat /proc/*/cmdline /proc/*/environ 2>/dev/null || true")
    shown += json.dumps(pair.install(["main1"]))

    assert [secret for secret in secrets if secret in shown] == []


def test_verify_reaches_all(pair: Lab) -> None:
    assert reach(pair.door(), Proof.direct(["sub1"]), 30) == ["main1", "sub1"]


def test_verify_refuses_another_host_key_at_once(pair: Lab) -> None:
    with pytest.raises(ComputeError, match=r"main1 at 127\.0\.0\.1, port .* presents an unexpected host key"):
        reach(pair.door("sub1"), Proof.direct(["sub1"]), 600)


def test_a_second_installation_changes_nothing(pair: Lab) -> None:
    everybody = [one.hostname for one in pair.plan.containers]

    assert [pair.install()["changed"], pair.install(everybody)["changed"]] == [False, False]


def test_another_controller_is_refused(pair: Lab) -> None:
    with pytest.raises(ConflictError, match="runs on agent1 with an identity that this controller does not have"):
        pair.install(identity=Identity(b"\1" * 32, pair.plan.session.id))


def test_ping_works_and_no_frame_can_be_sent(pair: Lab) -> None:
    granted = int(pair.ssh("main1", "grep CapBnd /proc/1/status").split()[1], 16)
    assert not granted & (1 << 13 | 1 << 27 | 1 << 31)
    assert "1 received" in pair.ssh("main1", "ping -c 1 -w 10 sub1")
    client = docker.APIClient(pair.docker_host)
    program = "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)"
    made = client.exec_create(pair.plan.main.name, ["python3", "-c", program], user="0")
    assert "PermissionError" in client.exec_start(made["Id"]).decode()


def test_silent_connections_of_another_address_do_not_keep_the_owner_out(
    engine_host: str, client: Any, tmp_path: Path
) -> None:
    lab = Lab(make_plan(REFERENCE, 2, memory="64m"), tmp_path / "art", engine_host)
    try:
        lab.up()
        main1 = lab.plan.main
        # All are connected before the owner logs in, and they stay so for longer than the login takes.
        program = (
            "import socket, sys, time\n"
            f"kept = [socket.create_connection(({main1.address!r}, 22), 20) for _ in range(150)]\n"
            "print('connected', flush=True)\n"
            "time.sleep(40)\n"
        )
        lab.ssh("sub1", "cat >silent.py; (setsid python3 silent.py >said 2>&1 &)", stdin=program)
        lab.ssh("sub1", "for _ in $(seq 200); do grep -q . said && break; sleep 0.1; done; grep -q connected said")

        assert lab.ssh("main1", "hostname").strip() == "main1"
        assert "oom_kill 0" in lab.ssh(
            "main1", "cat /sys/fs/cgroup/memory/memory.oom_control /sys/fs/cgroup/memory.events 2>/dev/null || true"
        )
    finally:
        lab.remove()
