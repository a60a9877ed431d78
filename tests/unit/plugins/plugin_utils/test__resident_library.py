# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps by the files that a module has left on the host, with real processes: the host is this machine."""

from __future__ import annotations

import json
import os
import shutil
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from ansible.module_utils import basic
from steps_on_a_host import Host, eventually, run_module

from ansible_collections.cluster.compute.plugins.module_utils import _module
from ansible_collections.cluster.compute.plugins.module_utils._core.documents import Json
from ansible_collections.cluster.compute.plugins.plugin_utils import _resident_steps as resident_steps

FIND = {"call": "folders.find", "params": {"marks": {}, "token": "x"}, "agent": "a1", "head": False}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What Ansible packs for a module, and more."""
    path = tmp_path_factory.mktemp("packed") / "module.zip"
    ours, ansible = Path(_module.__file__).parents[1], Path(basic.__file__).parent
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for top, name in ((ours, "ansible_collections/cluster/compute/plugins"), (ansible, "ansible/module_utils")):
            for file in top.rglob("*.py"):
                packed.write(file, f"{name}/{file.relative_to(top)}")
        names = set(packed.namelist())
        packages = {f"{parent}/__init__.py" for name in names for parent in list(Path(name).parents)[:-1]}
        for package in packages - names:
            packed.writestr(package, "")
    return path


@pytest.fixture
def library(archive: Path) -> Iterator[Path]:
    """The files that a module has left, whose process has ended. The path of a socket has at most 107 bytes."""
    with TemporaryDirectory(dir="/tmp") as folder:
        base = Path(folder)
        run_module(Host(base), head=False, archive=archive)
        end_process(base)
        (found,) = base.iterdir()
        yield found
        end_process(base)


def end_process(base: Path) -> None:
    """A step that fails ends the process that stays."""
    if list(base.glob("*/steps")):
        of_library(base, {**FIND, "call": "folders.colour"})
    eventually(lambda: not list(base.glob("*/steps")))


def of_library(base: Path, options: Json = FIND, host: Host | None = None) -> Any:
    return resident_steps.answer(host or Host(base), options, {})  # type: ignore[arg-type]


def test_a_step_starts_from_the_files_of_an_earlier_module_and_its_process_stays(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    assert of_library(library.parent)["folders"] == []
    eventually(lambda: bool(list(library.parent.glob("*/steps"))))
    assert stat.S_IMODE(library.stat().st_mode) == 0o700
    assert list(library.rglob("_steps/__pycache__/folders.*.pyc")), "Python keeps what it has compiled"


def test_no_process_stays_after_a_rare_step_a_failure_or_secrets(library: Path) -> None:
    """C(password) is no parameter of the step."""
    of_agent, parameters = "is no step of an agent", "has only the parameters"
    for message, options in (
        (of_agent, {"call": "swarm.colour"}),
        (parameters, {"params": {"colour": "red"}}),
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
    run_module(Host(library.parent), head=False, archive=archive)
    end_process(library.parent)
    assert of_library(library.parent)["folders"] == []


def test_files_of_another_user_are_not_used(library: Path) -> None:
    """The directories above them may belong to that user, who is asked here for root's step."""
    stranger = Host(library.parent)
    stranger.prefix = "exec setpriv --reuid 65534 --clear-groups "
    library.parent.chmod(0o755)
    library.chmod(0o755)
    assert of_library(library.parent, host=stranger) is None
    assert of_library(library.parent) is None, "others may read them, so others may have had more rights"


def test_another_release_removes_old_files_only(library: Path, archive: Path) -> None:
    base = library.parent
    recent, old, foreign = base / "cluster-compute-1.library", base / "cluster-compute-2.library", base / "other"
    for path in (recent, old, foreign):
        path.mkdir()
        os.utime(path, (0, 0) if path != recent else None)
    (library / "python").unlink()
    run_module(Host(base), head=False, archive=archive)
    end_process(base)
    assert set(base.iterdir()) == {library, recent, foreign}
