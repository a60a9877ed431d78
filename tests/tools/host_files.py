# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The oldest Python of this machine, shared with the hosts of a lab."""

from __future__ import annotations

import shutil
from pathlib import Path

from agents_lab import Lab
from ansible.module_utils.basic import _PY_MIN
from controller import ROOT, run
from locks import lock

# Compiled files stay: a module's user could not write them, and each module would compile what it imports.
NOT_IN_STDLIB = ("test", "site-packages", "config-*", "*.opt-?.pyc")
# Agents may have Python 3.8, or the oldest that this ansible-core supports there.
MINORS = range(max(8, _PY_MIN[1]), 15)


def pip_install(python: str, *arguments: str) -> None:
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
    run(command, timeout=600).check()


def share_oldest_python(lab: Lab, name: str) -> str:
    """Copy the oldest Python of this machine that agents may have, with the newest Docker SDK that supports it, for all hosts.

    It is in a folder of this name of the directory that they share. Returns its version.
    """
    prefix, version = _oldest_python()
    python, folder, inside = f"python{version}", lab.folder / "shared" / name, f"/srv/shared/{name}"
    packages = _packages_with_sdk(prefix / "bin" / python)
    without = shutil.ignore_patterns(*NOT_IN_STDLIB)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(prefix / "lib" / python, folder / "lib" / python, symlinks=True, ignore=without)
    (folder / "bin").mkdir()
    for file in (prefix / "bin" / python, *(prefix / "lib").glob(f"libpython{version}.so.*")):
        shutil.copy2(file, folder / file.parent.name)
    for agent in lab.names:
        lab.shell(agent, f"echo {inside}/lib >/etc/ld.so.conf.d/{name}.conf && ldconfig").check()
    lab.shell(lab.names[0], f"{inside}/bin/{python} -m venv --without-pip {inside}/venv").check()
    shutil.copytree(packages, folder / "venv/lib" / python / "site-packages", dirs_exist_ok=True)
    run(["chmod", "-R", "a+rX", str(folder)]).check()
    return version


def _packages_with_sdk(python: Path) -> Path:
    """The packages of a virtual environment of this checkout with the Docker SDK, made once."""
    local = ROOT / ".cache" / f"agent-{python.name}"
    with lock(local.name):
        if not (local / ".ready").exists():
            run([str(python), "-m", "venv", "--clear", str(local)]).check()
            pip_install(str(local / "bin/python"), "docker")
            (local / ".ready").touch()
    return local / "lib" / python.name / "site-packages"


def _oldest_python() -> tuple[Path, str]:
    """The prefix and the version of the oldest Python that agents may have: one that pyenv has built, or one of the distribution."""
    for minor in MINORS:
        version = f"3.{minor}"
        for prefix in (*sorted(Path.home().glob(f".pyenv/versions/{version}.*")), Path("/usr")):
            if (prefix / "bin" / f"python{version}").exists():
                return prefix, version
    raise RuntimeError("This machine has no Python that agents may have.")
