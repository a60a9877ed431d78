# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The front end for tests: its program, its service account and its policy, and accounts that have nothing else."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import logins
from controller import SMALL, Controller, Done
from ordinary_user import OrdinaryUser, engine_group, ordinary_user
from warm_playbook import STAND_IN

POLICY = {"containers": 2, "volumes": "none", "lifetime": 3600, "priority": 10}
ASKED = [f"{name.removeprefix('session_')}={value}" for name, value in SMALL.items()]


@dataclass(frozen=True)
class FrontEnd:
    """The program of the front end, as sshd and sudo of this machine start it for accounts that have nothing else."""

    service: OrdinaryUser
    controller: Controller
    port: int

    @property
    def pool(self) -> Path:
        """The folder below which the policy permits data folders."""
        return self.service.folder / "pool"

    @property
    def command(self) -> list[str]:
        return ["/usr/bin/python3", "-I", str(self.service.folder / "checkout/extensions/front_end/cluster_session.py")]

    def asked(self, owner: OrdinaryUser, *words: str, options: Sequence[str] = ()) -> Done:
        """The answer to words that follow ``ssh cluster@controller``."""
        known = self.service.folder / "known_hosts"
        client = logins.ssh(owner.account, self.port, known, *options)
        return self.run_as(owner, [*client, f"{self.service.account.pw_name}@127.0.0.1", *words])

    def asked_by_sudo(self, owner: OrdinaryUser, *words: str, **environment: str) -> Done:
        words = ("-u", self.service.account.pw_name, *self.command, *words)
        return logins.sudo(owner.account, self.service.folder / "sudoers", words, environment)

    def run_as(self, owner: OrdinaryUser, command: Sequence[str]) -> Done:
        return owner.run(owner.own_group, self.controller, command)

    def script(self, owner: OrdinaryUser, text: str) -> Done:
        """The end of a script of the account, which knows the head as ``controller``."""
        return self.run_as(owner, ["sh", "-c", f"cd && {text}"])

    def let_in(self, *owners: OrdinaryUser) -> None:
        """The lines of docs/policy.md for each of these accounts."""
        command, service = " ".join(self.command), self.service.account
        keys = [
            f'command="{command} --owner {owner.account.pw_name}",restrict,pty {logins.new_key(owner.account)}'
            for owner in owners
        ]
        logins.authorize(service, keys)
        rules = [f"{owner.account.pw_name} ALL=({service.pw_name}) NOPASSWD: {command} *" for owner in owners]
        (self.service.folder / "sudoers").write_text("".join(f"{rule}\n" for rule in rules))
        for owner in owners:
            self._configure(owner)

    def _configure(self, owner: OrdinaryUser) -> None:
        """What the account has in its own home, which no other account can enter."""
        lines = [
            "Include *.conf",
            "Host controller",
            f"    HostName 127.0.0.1\n    Port {self.port}\n    User {self.service.account.pw_name}",
            f"    UserKnownHostsFile {self.service.folder}/known_hosts",
            f"Host *\n    IdentityFile {owner.home}/id\n    BatchMode yes\n    StrictHostKeyChecking yes\n",
        ]
        owner.home.chmod(0o700)
        self.script(owner, f"umask 077 && mkdir .ssh && echo {shlex.quote(chr(10).join(lines))} >.ssh/config").check()


@contextmanager
def front_end_lab(engine_host: str) -> Iterator[FrontEnd]:
    """The front end on this machine. Needs root, useradd, sudo and sshd."""
    logins.check_installed()
    with ordinary_user() as service:
        made = Controller(service.folder / "controller", engine_host)
        own = service.home / "state"
        names = ("session_network_pool", "session_port_range", "agent_cpus", "agent_memory")
        common = {"session_state_dir": str(own), **{name: made.variables[name] for name in names}}
        subprocess.run(["usermod", "--append", "--groups", engine_group(made), service.account.pw_name], check=True)
        try:
            environment = _install(service, own, common, engine_host)
            with _runs(service, environment), logins.sshd(service.folder, service.account) as port:
                yield FrontEnd(service, made, port)
        finally:
            made.clean()


@contextmanager
def _runs(service: OrdinaryUser, environment: dict[str, str]) -> Iterator[None]:
    """The process that makes the runs of the front end, as its service account, in the environment of its programs."""
    account, path = service.account, service.folder / "runs"
    become = ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--init-groups"]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as runs:
        runs.bind(str(path))
        os.chown(path, account.pw_uid, account.pw_gid)
        path.chmod(0o700)
        command = [*become, *service.warm_program, str(runs.fileno())]
        process = subprocess.Popen(
            command, cwd=service.checkout, env=environment, stdin=subprocess.DEVNULL, pass_fds=[runs.fileno()]
        )
        try:
            yield
        finally:
            runs.sendto(b"", str(path))
            process.wait()


def _install(service: OrdinaryUser, state: Path, common: dict[str, object], host: str) -> dict[str, str]:
    """The files of the front end; the environment that it gives to playbooks."""
    state.mkdir(mode=0o700)
    os.chown(state, service.account.pw_uid, service.account.pw_gid)
    pool = service.folder / "pool"
    pool.mkdir()
    (state / "policy.json").write_text(json.dumps({"default": {**POLICY, "mounts": [f"{pool}/"]}}))
    (state / "policy.json").chmod(0o644)
    (service.folder / "common.json").write_text(json.dumps(common))
    program = service.folder / "ansible-playbook"
    program.write_text(STAND_IN.replace("PATH", repr(str(service.folder / "runs"))))
    program.chmod(0o755)
    fixed = {
        "LD_LIBRARY_PATH": f"{service.folder}/python/lib",
        "ANSIBLE_STDOUT_CALLBACK": "default",
        "DOCKER_HOST": host,
    }
    config = {
        "playbooks": str(service.folder / "checkout/playbooks"),
        "ansible_playbook": str(program),
        "inventory": str(service.folder / "checkout/playbooks/inventory/local.yml"),
        "artifacts": str(service.home / "sessions"),
        "variables_files": str(service.folder / "common.json"),
        "login": "controller",
        "environment": " ".join(f"{name}={text}" for name, text in fixed.items()),
    }
    path = service.folder / "checkout/extensions/front_end/front_end.json"
    path.write_text(json.dumps(config))
    path.chmod(0o644)
    name = service.account.pw_name
    own = {"HOME": str(service.home), "USER": name, "LOGNAME": name, "LANG": "C.UTF-8"}
    return {**own, "PATH": f"{service.folder}:/usr/local/bin:/usr/bin:/bin", **fixed}
