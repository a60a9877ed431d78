# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How Ansible imports the files of the collection."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

PLUGINS = Path(__file__).parents[3] / "plugins"
# Ansible's own finder imports the collection of a new directory, as in ansible-playbook.
IMPORT = """
import sys
from ansible.utils.collection_loader._collection_finder import _AnsibleCollectionFinder
_AnsibleCollectionFinder(paths=[sys.argv[1]])._install()
from ansible_collections.cluster.compute.plugins.module_utils._shared import errors, paths
print(paths.covers("/srv", "/srv/data"))
"""


def copied(folder: Path) -> Path:
    """The files of the collection that the import needs, in a new directory."""
    plugins = folder / "ansible_collections/cluster/compute/plugins"
    core = plugins / "module_utils/_shared"
    core.mkdir(parents=True)
    shutil.copy(PLUGINS / "__init__.py", plugins)
    for path in (PLUGINS / "module_utils/_shared").glob("*.py"):
        shutil.copy(path, core)
    return core


def imported(folder: Path, first: str = "") -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [sys.executable, "-c", first + IMPORT, str(folder)]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def test_a_second_command_finds_what_the_first_has_compiled(tmp_path: Path) -> None:
    core = copied(tmp_path)
    assert imported(tmp_path) == "True\n"
    kept = {path.name.partition(".")[0] for path in core.glob("__pycache__/*.pyc")}
    assert {"errors", "paths"} <= kept


def test_a_file_that_has_changed_is_compiled_again(tmp_path: Path) -> None:
    core = copied(tmp_path)
    imported(tmp_path)
    (core / "paths.py").write_text("def covers(*_paths: str) -> str:\n    return 'changed'\n", encoding="utf-8")
    assert imported(tmp_path) == "changed\n"


def test_the_directory_of_another_user_stays_as_it_is(tmp_path: Path) -> None:
    core = copied(tmp_path)
    assert imported(tmp_path, "import os; os.geteuid = lambda: 54321") == "True\n"
    assert list(core.glob("__pycache__")) == []


def test_a_directory_need_not_be_writable(tmp_path: Path) -> None:
    core = copied(tmp_path)
    # In place of the directory for compiled files: root could write into one that it may not write to.
    (core / "__pycache__").write_text("", encoding="utf-8")
    assert imported(tmp_path) == "True\n"
    assert (core / "__pycache__").read_text(encoding="utf-8") == ""
