# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Debian packages of the tests: installed, or named together with the command that installs them, before anything else runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import readme

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tests/tools/packages.sh"
LIST = ROOT / "tests/requirements/debian.txt"
ROWS = [line.split() for line in LIST.read_text().splitlines() if not line.startswith("#")]
APT = """#!/bin/sh
echo "$DEBIAN_FRONTEND $RUNLEVEL $*" >>"{log}"
[ "$1" = update ] || cp "{folder}/ip" "{folder}/debootstrap"
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A folder with all programs of the list except debootstrap, and with an `id` of root."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for program in ["id", *(row[1] for row in ROWS if row[1] != "debootstrap")]:
        (folder / program).write_text("#!/bin/sh\necho 0\n")
        (folder / program).chmod(0o755)
    (folder / "sh").symlink_to("/bin/sh")
    return folder


def run(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(path)}
    return subprocess.run([TOOL, *arguments], env=environment, capture_output=True, text=True, check=False)


def give_apt(path: Path, script: str) -> Path:
    log = path.parent / "log"
    shutil.copy("/bin/cp", path / "cp")
    (path / "apt-get").write_text(script.format(log=log, folder=path))
    (path / "apt-get").chmod(0o755)
    return log


def test_without_apt_a_missing_program_is_an_error_with_the_single_command(path: Path) -> None:
    done = run(path)
    assert (done.returncode, done.stdout) == (1, "")
    message, command = done.stderr.splitlines()
    assert message == (
        "The tests need programs of these packages, which are not on the PATH: debootstrap. Install them as root:"
    )
    assert command.endswith(" apt-get install -y -qq --no-install-recommends debootstrap")


def test_only_root_installs(path: Path) -> None:
    log = give_apt(path, APT)
    (path / "id").write_text("#!/bin/sh\necho 1000\n")
    assert run(path).returncode == 1
    assert not log.exists()


def test_root_installs_what_is_missing_without_questions_and_without_a_start_of_services(path: Path) -> None:
    log = give_apt(path, APT)
    done = run(path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "Installing the packages that the tests need: debootstrap\n"
    assert [line.strip() for line in log.read_text().splitlines()] == [
        "update -qq",
        "noninteractive 1 install -y -qq --no-install-recommends debootstrap",
    ]
    assert run(path).stdout == ""


def test_a_package_without_its_program_is_an_error(path: Path) -> None:
    give_apt(path, "#!/bin/sh\n")
    done = run(path)
    assert done.returncode == 1
    assert "are not on the PATH, although apt-get has installed the packages: debootstrap" in done.stderr


def test_only_the_given_packages_are_looked_at(path: Path) -> None:
    assert run(path, "rsync", "sudo").returncode == 0
    assert run(path, "rsync", "debootstrap").returncode == 1


def test_make_test_looks_for_the_packages_first() -> None:
    command = ["make", "--dry-run", "test", f"PATH={os.environ['PATH']}"]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert next(line for line in lines if not line.startswith(("test -n ", "make "))) == "tests/tools/packages.sh"


def test_continuous_integration_runs_make_test_and_nothing_else() -> None:
    lines = (ROOT / ".ci/run").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == ['cd "$(dirname "$0")/.." && exec make test']


def test_the_tests_need_what_a_user_needs() -> None:
    of_python = {"make", "python3", "python3-venv"}
    assert set(readme.packages()) - of_python <= {row[0] for row in ROWS}
    workflow = (ROOT / ".github/workflows/test.yml").read_text()
    assert f"ca-certificates {' '.join(readme.packages())}\n" in workflow


def test_no_other_file_lists_the_packages() -> None:
    names = "|".join(re.escape(row[0]) for row in ROWS)
    several = re.compile(rf"\b(?:{names})\b[, `]+(?:and )?`?\b(?:{names})\b[, `]+(?:and )?`?\b(?:{names})\b")
    for file in ("Makefile", "README.md", "tests/README.md", ".ci/run", ".github/workflows/test.yml"):
        assert not several.search((ROOT / file).read_text()), file
    for page in ("README.md", "tests/README.md"):
        assert "tests/requirements/debian.txt" in (ROOT / page).read_text(), page
