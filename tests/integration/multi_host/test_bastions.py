# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Agents that only a jump host reaches: launch, repair, every ssh tool, exec, copy and end go through it."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from agents_lab import IMAGE, NAMES, Agents, Lab
from controller import Session, run

from ansible_collections.cluster.compute.plugins.module_utils._shared.waiting import deadline_in, wait_until

# The fewest agents that hold three containers of one CPU are two.
THREE = {"session_cluster_size": 3, "session_cluster_mode": "multi-node", "session_cpus": 1}
BOOT = (
    "mkdir -p /run/sshd; ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key; umask 077; "
    "mkdir /home/admin/.ssh; cat >/home/admin/.ssh/authorized_keys; chown -R admin:admin /home/admin/.ssh; exec /usr/sbin/sshd -D -e"
)
CONFIG = """
Host bastion
    HostName {address}
    User admin
    IdentityFile {lab}/id_agents
    IdentitiesOnly yes
    UserKnownHostsFile {folder}/known_hosts
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking yes
"""
KNOWN = "-o UserKnownHostsFile={lab}/known_hosts -o GlobalKnownHostsFile=/dev/null -o StrictHostKeyChecking=yes -o IdentitiesOnly=yes"
JUMP = "-F {folder}/config -o ProxyJump=bastion " + KNOWN
COMMAND = '-o ProxyCommand="ssh -F {folder}/config -W %h:%p %r@bastion" ' + KNOWN


class Bastion:
    """A host in the agents' network, and SSH arguments of an inventory that name it."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab, self.folder = lab, folder
        self.container = lab.container("bastion")
        self.name = lab.name

    def start(self) -> None:
        # The argument vector of the lab's hosts, without their rights: it is no agent.
        given = ["--name", self.container, "--hostname", "bastion", "--network", self.name]
        label = ["--label", f"cluster-compute-test={self.name}"]
        key = (self.lab.folder / "id_agents.pub").read_text()
        run(["docker", "create", "--interactive", *given, *label, IMAGE, "sh", "-c", BOOT]).check()
        start = ["docker", "start", "--attach", "--interactive", self.container]
        self.process = subprocess.Popen(
            start, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        assert self.process.stdin is not None
        self.process.stdin.write(key.encode())
        self.process.stdin.close()
        assert wait_until(lambda: self.host_key().startswith("ssh-ed25519 "), deadline_in(60))
        look = ["docker", "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"]
        address = run([*look, self.container]).check().text.strip()
        (self.folder / "known_hosts").write_text(f"{address} {self.host_key()}")
        (self.folder / "config").write_text(self._filled(CONFIG, address=address))

    def host_key(self) -> str:
        return run(["docker", "exec", self.container, "cat", "/etc/ssh/ssh_host_ed25519_key.pub"]).text

    def stop(self) -> None:
        run(["docker", "rm", "--force", self.container])
        self.process.wait(30)

    def variables(self, arguments: str) -> dict[str, str]:
        """For a playbook. Connections of their own, because Ansible keeps direct ones for a minute."""
        return {"ansible_ssh_common_args": self._filled(arguments), "ansible_control_path_dir": str(self.folder)}

    def _filled(self, text: str, **more: str) -> str:
        return text.format(folder=self.folder, lab=self.lab.folder, **more)


@pytest.fixture
def bastion(lab: Lab) -> Iterator[Bastion]:
    """The only host that reaches the agents."""
    folder = Path(tempfile.mkdtemp(prefix="jump"))  # a short path, for sockets
    made = Bastion(lab, folder)
    with ExitStack() as undo:
        undo.callback(shutil.rmtree, folder)
        undo.callback(made.stop)
        made.start()
        for name in NAMES:
            address = lab.address(name)
            rule = ["OUTPUT", "-d", address, "-p", "tcp", "-j", "REJECT", "--reject-with", "tcp-reset"]
            run(["iptables", "-I", *rule]).check()
            undo.callback(run, ["iptables", "-D", *rule])
        yield made


def test_agents_behind_a_jump_host(agents: Agents, bastion: Bastion, tmp_path: Path) -> None:
    for name in NAMES:
        with pytest.raises(ConnectionError):
            socket.create_connection((bastion.lab.address(name), 22), 20)
    jump = bastion.variables(JUMP)
    session: Session = agents.launched("behind", **THREE, **jump)
    placed = [one["agent"] for one in session.document["containers"]]
    assert placed[0] == placed[1] != placed[2]
    shown = "hostname; echo $BACKENDAI_CLUSTER_MODE $LOCAL_RANK"
    assert session.say("main1", f"ssh sub2 '{shown}'") == session.say("sub2", shown) == "sub2\nmulti-node 0"
    use_every_tool(session, tmp_path)
    listed = agents.play("session_exec", session_name="behind", session_exec_command="hostname", **jump).check().text
    assert all(f"{host}: {host}" in listed for host in ("main1", "sub1", "sub2"))
    copied = {"session_copy_source": str(tmp_path / "file"), "session_copy_target": "/tmp/copied"}
    agents.play("session_copy", session_name="behind", **copied, **jump).check()
    assert session.say("sub2", "cat /tmp/copied/file") == "content"

    # The same launch with a ProxyCommand repairs the session, and the user's files follow.
    bastion.lab.shell(placed[2], f"docker rm --force {agents.owner}.behind.sub2").check()
    command = bastion.variables(COMMAND)
    agents.launch("behind", **THREE, **command).check()
    assert f"ProxyCommand ssh -F {bastion.folder}/config -W %h:%p admin@bastion" in Path(session.config).read_text()
    assert session.say("sub2", "hostname") == "sub2"
    agents.play("terminate", session_name="behind", **command).check()


def use_every_tool(session: Session, folder: Path) -> None:
    """scp, sftp, and rsync where this machine has it."""
    file = folder / "file"
    file.write_text("content")
    run(["scp", "-q", "-F", session.config, str(file), "sub1:/tmp/by-scp"]).check()
    run(["sftp", "-q", "-b", "-", "-F", session.config, "main1"], said=f"put {file} /tmp/by-sftp\n").check()
    assert session.say("sub1", "cat /tmp/by-scp; ssh main1 cat /tmp/by-sftp") == "contentcontent"
    shared = str(session.folder.parent / "ssh_config")
    assert run(["ssh", "-F", shared, "behind.sub2", "hostname"]).check().text.strip() == "sub2"
