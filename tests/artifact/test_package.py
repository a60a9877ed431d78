# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Python package: the command, and the collection where ansible-core finds it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
import yaml

COLLECTION = "ansible_collections/cluster/compute/"
COMMAND = "extensions/command/"


def call(*command: str | Path, folder: Path) -> str:
    """The output of a program in a directory, with nothing of the checkout in its environment."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "PYTHON"))}
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=folder, env=kept, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def package(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built in an environment of its own, as pipx builds it."""
    folder = tmp_path_factory.mktemp("package")
    call(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, checkout, folder=folder)
    [wheel] = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def programs(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a fresh virtual environment with the package; its requirements are those of the tests."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    python = folder / "venv/bin/python"
    [packages] = (folder / "venv/lib").glob("python*/site-packages")
    (packages / "requirements.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", package)
    call(*pip, folder=folder)
    for name in ("ansible-playbook", "ansible-inventory"):
        script = f"#!{python}\nfrom ansible.cli.{name.partition('-')[2]} import main\nmain()\n"
        (python.with_name(name)).write_text(script)
        (python.with_name(name)).chmod(0o755)
    return python.parent


def test_the_package_holds_exactly_the_command_and_the_collection(package: Path, checkout: Path) -> None:
    tracked = call("git", "ls-files", "meta", "playbooks", "plugins", "roles", COMMAND, folder=checkout).split()
    expected = {
        name.removeprefix(COMMAND) if name.startswith(COMMAND) else COLLECTION + name
        for name in tracked
        if not (checkout / name).is_symlink()
    }
    with zipfile.ZipFile(package) as wheel:
        found = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert found == expected | {COLLECTION + "ansible.cfg", COLLECTION + "galaxy.yml"}


def test_the_package_has_the_version_and_the_requirements_of_the_collection(package: Path, checkout: Path) -> None:
    version = yaml.safe_load((checkout / "galaxy.yml").read_text())["version"]
    assert package.name.startswith(f"cluster_compute-{version}-")
    lines = (checkout / "requirements.txt").read_text().splitlines()
    project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    assert project["dependencies"] == [line for line in lines if line and not line.startswith("#")]


def test_the_command_runs_the_playbooks_of_the_package(programs: Path, tmp_path: Path) -> None:
    (tmp_path / "train.yml").write_text("session_name: train\n")
    (tmp_path / "hosts.yml").write_text("agents: {hosts: {node1: {ansible_host: 192.0.2.1}}}\n")
    shown = call(programs / "cluster-compute", "up", "train.yml", "--show", folder=tmp_path)
    environment, *line = shlex.split(shown)
    assert environment.endswith(COLLECTION + "ansible.cfg")
    assert line[0] == str(programs / "ansible-playbook")
    assert line[3].endswith(COLLECTION + "playbooks/cluster_session.yml")
    assert "playbook: " in call("env", environment, *line, "--syntax-check", folder=tmp_path)
    assert "node1" in call(programs / "cluster-compute", "hosts", "ls", folder=tmp_path)
