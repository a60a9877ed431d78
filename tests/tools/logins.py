# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logins of accounts of this machine, as a site has them: Debian's sshd with keys, and sudo with a rule."""

from __future__ import annotations

import contextlib
import os
import pwd
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from controller import Done, run
from servers import free_port, serving

SSHD, SUDO = "/usr/sbin/sshd", "/usr/bin/sudo"
# The folder that sshd needs, which its service creates.
EMPTY = Path("/run/sshd")


def check_installed() -> None:
    """Fail if a program is missing: without it nothing would be tested."""
    missing = [path for path in (SSHD, SUDO) if not Path(path).exists()]
    assert not missing, f"{' and '.join(missing)} missing: apt-get install -y openssh-server sudo"


def new_key(account: pwd.struct_passwd) -> str:
    """A new key in the home folder of an account; the line of its public half."""
    path = Path(account.pw_dir) / "id"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", account.pw_name, "-f", path], check=True)
    os.chown(path, account.pw_uid, account.pw_gid)
    return path.with_suffix(".pub").read_text().strip()


def authorize(account: pwd.struct_passwd, lines: Sequence[str]) -> None:
    """Write the authorized_keys of an account, which only root can change."""
    folder = Path(account.pw_dir) / ".ssh"
    folder.mkdir(mode=0o755, exist_ok=True)
    (folder / "authorized_keys").write_text("".join(f"{line}\n" for line in lines))


@contextlib.contextmanager
def sshd(folder: Path, account: pwd.struct_passwd) -> Iterator[int]:
    """The port of an sshd that lets this account in, by keys alone."""
    port = free_port()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "host_key"], check=True)
    # Without a password, and not locked: the sshd of a site asks PAM, which not every container lets it do.
    subprocess.run(["usermod", "--password", "*", account.pw_name], check=True)
    public = (folder / "host_key.pub").read_text()
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {public}")
    options = {
        "ListenAddress": f"127.0.0.1:{port}",
        "HostKey": folder / "host_key",
        "PidFile": "none",
        "UsePAM": "no",
        "PasswordAuthentication": "no",
        "KbdInteractiveAuthentication": "no",
        "AllowUsers": account.pw_name,
        # The post-quantum key exchange, which OpenSSH prefers, takes ten times the processor time of a login.
        "KexAlgorithms": "curve25519-sha256",
    }
    (folder / "sshd_config").write_text("".join(f"{name} {value}\n" for name, value in options.items()))
    EMPTY.mkdir(mode=0o755, exist_ok=True)
    command = [SSHD, "-D", "-e", "-f", str(folder / "sshd_config")]
    with serving(command, port, folder / "sshd.log"):
        yield port


def ssh(account: pwd.struct_passwd, port: int, known_hosts: Path, *options: str) -> list[str]:
    """The ssh command of the owner of a key, up to the name of the other account."""
    checks = ["-o", f"UserKnownHostsFile={known_hosts}", "-o", "StrictHostKeyChecking=yes", "-o", "BatchMode=yes"]
    return ["ssh", "-F", "none", "-i", f"{account.pw_dir}/id", "-p", str(port), *checks, *options]


def sudo(account: pwd.struct_passwd, rules: Path, words: Sequence[str], environment: Mapping[str, str]) -> Done:
    """Run sudo as an account, with these rules in place of the machine's; no other process sees them."""
    rules.chmod(0o440)
    become = f"setpriv --reuid={account.pw_uid} --regid={account.pw_gid} --clear-groups"
    script = f"mount --bind {shlex.quote(str(rules))} /etc/sudoers && exec {become} {SUDO} -n {shlex.join(words)}"
    own = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": account.pw_dir, **environment}
    return run(["unshare", "--mount", "sh", "-c", script], cwd="/", env=own)
