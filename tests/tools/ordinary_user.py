# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An ordinary user of this machine for tests: a new account, and a copy of everything that it needs to run a playbook.

The checkout and the Python of the tests may lie in a home folder that only its owner can enter. The copy holds the
checkout, the interpreter and the packages of requirements.txt; the account can read it and cannot write to it.
"""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from controller import PATIENCE, ROOT, Controller, Done, run
from warm_playbook import run_warm

NOT_COPIED = shutil.ignore_patterns(".git", ".venv", ".cache", ".ansible", "__pycache__", "*.tar.gz")
NOT_IN_STDLIB = shutil.ignore_patterns("test", "tests", "site-packages", "dist-packages", "config-*")
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class OrdinaryUser:
    """The account, and the folder of its copy."""

    account: pwd.struct_passwd
    folder: Path

    @property
    def home(self) -> Path:
        return Path(self.account.pw_dir)

    @property
    def own_group(self) -> str:
        return grp.getgrgid(self.account.pw_gid).gr_name

    def play(self, group: str, controller: Controller, playbook: str, **variables: Any) -> Done:
        """Run a playbook of the copy as this user, who is a member of one more group."""
        _program, *arguments = controller.command(playbook, **variables)
        program = [*self._become(group), *self.warm_program]
        return Done(*run_warm(self._environment(controller), arguments, self.checkout, PATIENCE, program))

    def run(self, group: str, controller: Controller, command: Sequence[str], timeout: float = PATIENCE) -> Done:
        """Run a command without any privilege and without a way to gain one."""
        environment = self._environment(controller)
        return run([*self._become(group), *command], cwd=self.checkout, env=environment, timeout=timeout)

    @property
    def checkout(self) -> Path:
        return self.folder / "checkout"

    @property
    def warm_program(self) -> list[str]:
        """The process that makes runs of playbooks, from the copy: of its Python, packages and collection."""
        return [str(self.folder / "venv/bin/python"), str(self.checkout / "tests/tools/warm_ansible.py")]

    def _become(self, group: str) -> list[str]:
        return _setpriv(self.account, grp.getgrnam(group).gr_gid)

    def _environment(self, controller: Controller) -> dict[str, str]:
        return {
            **controller.environment,
            "HOME": str(self.home),
            "USER": self.account.pw_name,
            "LOGNAME": self.account.pw_name,
            "PATH": f"{self.folder}/venv/bin:{SYSTEM_PATH}",
            "LD_LIBRARY_PATH": str(self.folder / "python/lib"),
            "ANSIBLE_CONFIG": str(self.checkout / "ansible.cfg"),
            "ANSIBLE_INVENTORY": str(self.checkout / "inventory/local.yml"),
            "ANSIBLE_REMOTE_TMP": "~/.ansible/tmp",
        }


@contextlib.contextmanager
def ordinary_user() -> Iterator[OrdinaryUser]:
    """A new user of this machine. The account, its home folder and its copy are removed at the end. Needs root."""
    name = "cc-" + uuid.uuid4().hex[:8]
    folder = Path(tempfile.mkdtemp(prefix="cluster-compute-user-", dir=_open_folder()))
    try:
        folder.chmod(0o755)
        account = _account(name, folder / "home")
        _copy(folder, account)
        yield OrdinaryUser(account, folder)
    finally:
        subprocess.run(["userdel", "--force", name], check=False, capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def second_user(first: OrdinaryUser) -> Iterator[OrdinaryUser]:
    """Another new user, who shares the copy of the first."""
    name = "cc-" + uuid.uuid4().hex[:8]
    home = first.folder / name
    try:
        yield OrdinaryUser(_account(name, home), first.folder)
    finally:
        subprocess.run(["userdel", "--force", name], check=False, capture_output=True)


def engine_group(controller: Controller) -> str:
    """The group that may use the engine."""
    socket = Path(controller.host.removeprefix("unix://"))
    status = socket.stat()
    assert status.st_mode & stat.S_IWGRP, f"{socket} is for its owner alone"
    return grp.getgrgid(status.st_gid).gr_name


def _account(name: str, home: Path) -> pwd.struct_passwd:
    home.mkdir()
    subprocess.run(["useradd", "--no-create-home", "--home-dir", str(home), "--shell", "/bin/sh", name], check=True)
    account = pwd.getpwnam(name)
    os.chown(home, account.pw_uid, account.pw_gid)
    return account


def _open_folder() -> str:
    """A folder for temporary files that every user can enter."""
    for text in (tempfile.gettempdir(), "/tmp", "/var/tmp"):
        path = Path(text).resolve()
        if path.is_dir() and all(each.stat().st_mode & stat.S_IXOTH for each in (path, *path.parents)):
            return str(path)
    raise RuntimeError("No folder for temporary files can be entered by every user: set TMPDIR to one that can.")


def _setpriv(account: pwd.struct_passwd, gid: int) -> list[str]:
    identity = [f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", f"--groups={gid}"]
    return ["setpriv", *identity, "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]


def _copy(folder: Path, account: pwd.struct_passwd) -> None:
    shutil.copytree(ROOT, folder / "checkout", symlinks=True, ignore=NOT_COPIED)
    python = _interpreter(folder, account)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder / "python/lib")}
    command = [str(python), "-m", "venv", "--without-pip", str(folder / "venv")]
    subprocess.run(command, check=True, env=environment)
    packages = next((folder / "venv/lib").glob("python3*")) / "site-packages"
    for name in sorted(_required()):
        _copy_package(metadata.distribution(name), packages)
    for name in ("checkout", "python", "venv"):
        subprocess.run(["chmod", "-R", "a+rX", str(folder / name)], check=False, capture_output=True)


def _interpreter(folder: Path, account: pwd.struct_passwd) -> Path:
    """The Python under the tests' virtual environment: itself if the user can run it, or else a copy."""
    original = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    # By a shell of the user: setpriv itself starts programs in folders that only root can enter.
    script = 'exec "$0" -c "import ssl, sqlite3"'
    command = [*_setpriv(account, account.pw_gid), "/bin/sh", "-c", script, str(original)]
    if subprocess.run(command, capture_output=True, check=False, cwd="/", env={"PATH": SYSTEM_PATH}).returncode == 0:
        return original
    copy = folder / "python"
    (copy / "bin").mkdir(parents=True)
    shutil.copy2(original, copy / "bin")
    library = Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix}))
    shutil.copytree(library, copy / "lib" / library.name, symlinks=True, ignore=NOT_IN_STDLIB)
    for shared in Path(sys.base_prefix, "lib").glob("libpython*.so*"):
        shutil.copy2(shared, copy / "lib", follow_symlinks=False)
    return copy / "bin" / original.name


def _required() -> set[str]:
    """The names of the packages in requirements.txt and of all that they require on this machine."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    wanted, found = [line for line in lines if line and not line.startswith("#")], set[str]()
    while wanted:
        requirement = wanted.pop()
        name = re.split(r"[\s;<>=!~\[(]", requirement, maxsplit=1)[0].lower()
        if name in found or "extra ==" in requirement:
            continue
        with contextlib.suppress(metadata.PackageNotFoundError):  # for another platform or another Python
            wanted += metadata.requires(name) or []
            found.add(name)
    return found


def _copy_package(package: metadata.Distribution, target: Path) -> None:
    for file in package.files or []:
        source = Path(str(package.locate_file(file)))
        if ".." not in file.parts and source.is_file():
            (target / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / file)
