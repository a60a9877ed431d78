# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps by the files that a module has left on the host, with real processes: the host is this machine."""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from ansible.module_utils import basic
from steps_on_a_host import Host, eventually, run_module

from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._worker import module, payload_cache
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts import worker_client
from ansible_collections.cluster.compute.plugins.plugin_utils._session.reports import report_options

FIND = {"call": "folders.find", "params": {"marks": {}, "token": "x"}, "agent": "a1"}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What Ansible packs for a module, and more."""
    path = tmp_path_factory.mktemp("packed") / "module.zip"
    ours, ansible = Path(module.__file__).parents[2], Path(basic.__file__).parent
    own = [
        ours / "__init__.py",
        *(ours / f"modules/{name}_step.py" for name in ("agent", "head")),
        *(ours / "module_utils").rglob("*.py"),
    ]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in own:
            packed.write(file, f"ansible_collections/cluster/compute/plugins/{file.relative_to(ours)}")
        for file in ansible.rglob("*.py"):
            packed.write(file, f"ansible/module_utils/{file.relative_to(ansible)}")
        names = set(packed.namelist())
        packages = {f"{parent}/__init__.py" for name in names for parent in list(Path(name).parents)[:-1]}
        for package in packages - names:
            packed.writestr(package, "")
    return path


@pytest.fixture(scope="module")
def left(archive: Path) -> Iterator[Path]:
    """The files that a module has left, whose process has ended, with what Python has compiled for a step."""
    with TemporaryDirectory() as folder:
        base = Path(folder)
        run_module(Host(base), module="agent_step", archive=archive)
        end_process(base)
        assert of_library(base)["folders"] == []
        end_process(base)
        (found,) = base.iterdir()
        yield found


@pytest.fixture
def library(left: Path) -> Iterator[Path]:
    """A copy of them: to run a module takes a second. The path of a socket has at most 107 bytes."""
    with TemporaryDirectory(dir="/tmp") as folder:
        made = Path(folder) / left.name
        shutil.copytree(left, made, symlinks=True, copy_function=os.link)
        yield made
        end_process(made.parent)


def end_process(base: Path) -> None:
    """A step that fails ends the process that stays."""
    if list(base.glob("*/steps")):
        of_library(base, {**FIND, "call": "folders.color"})
    eventually(lambda: all(path.suffix == ".library" for path in base.glob("cluster-compute-*")))


def of_library(base: Path, options: Json = FIND, host: Host | None = None) -> Any:
    return worker_client.answer(host or Host(base), "agent_step", options, "")  # type: ignore[arg-type]


def test_a_step_starts_from_the_files_of_an_earlier_module_and_its_process_stays(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"):
        monkeypatch.delenv(name, raising=False)
    for folder in list(library.rglob("__pycache__")):
        shutil.rmtree(folder)
    assert of_library(library.parent)["folders"] == []
    eventually(lambda: bool(list(library.parent.glob("*/steps"))))
    assert stat.S_IMODE(library.stat().st_mode) == 0o700
    assert list(library.rglob("_steps/__pycache__/folders.*.pyc")), "Python keeps what it has compiled"


def test_nothing_is_imported_from_the_working_directory(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """sudo keeps the directory of the login."""
    with TemporaryDirectory() as folder:
        (Path(folder) / "importlib.py").write_text("raise SystemExit(9)")
        monkeypatch.chdir(folder)
        assert of_library(library.parent)["folders"] == []
        monkeypatch.undo()


def test_an_archive_is_not_unpacked_through_a_link(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user who owns the directory above the new one can put a link in its place."""
    victim, real = tmp_path / "victim", tempfile.mkdtemp
    victim.mkdir()

    def swapped(**options: Any) -> str:
        made = Path(real(**options))
        made.rmdir()
        made.symlink_to(victim)
        return str(made)

    monkeypatch.setattr(tempfile, "mkdtemp", swapped)
    payload_cache.install(str(archive), str(tmp_path / "base/x"))
    assert list(victim.iterdir()) == []


def test_secrets_and_failures_are_answered_as_by_a_module(library: Path) -> None:
    """C(password) is no parameter of the step."""
    parameters = "has only the parameters"
    for message, options in (
        ("is no step of an agent", {"call": "swarm.color"}),
        (parameters, {"params": {"color": "red"}}),
        (parameters, {"secrets": {"password": "hush"}}),
    ):
        found = of_library(library.parent, {**FIND, **options})
        assert message in found["msg"]
        assert "hush" not in json.dumps(found)
        assert list(library.parent.iterdir()) == [library]


def test_damaged_files_are_replaced_by_the_next_module(library: Path, archive: Path) -> None:
    steps = library / "ansible_collections/cluster/compute/plugins/module_utils/_steps"
    shutil.rmtree(steps)
    assert of_library(library.parent) is None
    run_module(Host(library.parent), module="agent_step", archive=archive)
    end_process(library.parent)
    assert of_library(library.parent)["folders"] == []


def test_files_of_another_user_are_not_used(library: Path) -> None:
    """The directories above them may belong to that user. Files that others could read were made by something else."""
    os.chown(library, 65534, 65534)
    assert of_library(library.parent) is None
    os.chown(library, os.geteuid(), os.getegid())
    library.chmod(0o755)
    assert of_library(library.parent) is None
    library.chmod(0o700)
    assert of_library(library.parent)["folders"] == []


@pytest.mark.parametrize("python", ["gone", "without the library"])
def test_another_python_is_found_again(python: str, library: Path, archive: Path) -> None:
    """The distribution may bring a newer Python, or the user may install one that has the Docker SDK."""
    base, link, lacks = library.parent, library / "python", library.parent / "lacks"
    link.unlink()
    if python == "gone":
        link.symlink_to("/nonexistent/python3")
        assert of_library(base) is None
    else:
        lacks.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
        lacks.chmod(0o755)
        link.symlink_to(lacks)
        engine = {"docker_host": f"unix://{base}/none", "call": "report.collect"}
        failed = of_library(
            base, {**FIND, **engine, "params": {"options": report_options({"name": "a1", "address": "192.0.2.1"})}}
        )
        assert failed["agent"]["reachable"] is False
        assert of_library(base) is None
    run_module(Host(base), module="agent_step", archive=archive)
    end_process(base)
    assert of_library(base)["folders"] == []


def test_another_release_removes_old_files_only(library: Path, archive: Path) -> None:
    base = library.parent
    recent, old, foreign = base / "cluster-compute-1.library", base / "cluster-compute-2.library", base / "other"
    for path in (recent, old, foreign):
        path.mkdir()
        os.utime(path, (0, 0) if path != recent else None)
    (library / "python").unlink()
    run_module(Host(base), module="agent_step", archive=archive)
    end_process(base)
    assert set(base.iterdir()) == {library, recent, foreign}
