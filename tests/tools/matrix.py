#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the unit tests and a real session on every supported ansible-core: check, launch, second run, ssh, list, logs, end.

Usage: matrix.py [--only 2.17] [--cache DIR]

A session is also launched by a play of a few lines from the built archive, which is installed with its requirements by the commands of
the README in a fresh environment.

Each row has a virtual environment of its own below the cache folder. The first row has the oldest version of every
requirement, the last one the newest pre-release of ansible-core. A row whose Python is not on this machine is an error.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OLDEST = ("cryptography==40.0.0", "distlib==0.4.2", "docker==7.1.0", "jinja2==3.1.6", "paramiko==2.11.0")
TOOLS = ("hypothesis", "jsonschema", "pytest", "PyYAML")
SESSION = ("tests/integration/playbooks/test_session.py", "tests/integration/playbooks/test_views.py")
INSTALLED = ("tests/integration/test_installed_collection.py",)


@dataclass
class Row:
    """One environment: an ansible-core on a Python, with the pins that it gets beside requirements.txt."""

    core: str
    python: str
    pins: tuple[str, ...] = ()
    results: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.core}-py{self.python}" + ("-oldest" if self.pins else "")


ROWS = (
    Row("2.17.7", "3.11", OLDEST),
    Row("2.17.14", "3.11"),
    Row("2.18.19", "3.11"),
    Row("2.19.14", "3.12"),
    Row("2.20.10", "3.12"),
    Row("2.21.5", "3.13"),
    Row("2.22.0rc1", "3.13"),
)


def find_python(version: str) -> str:
    """A Python of this version: on the path, or one that pyenv has built."""
    built = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
    for candidate in (*map(str, built), shutil.which(f"python{version}")):
        if candidate and subprocess.run([candidate, "-c", ""], capture_output=True, check=False).returncode == 0:
            return candidate
    raise SystemExit(f"Python {version} is not installed; install it to run the matrix.")


def prepare(row: Row, cache: Path) -> Path:
    """The row's virtual environment, made once."""
    folder = cache / row.name
    if not (folder / ".ready").exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([find_python(row.python), "-m", "venv", str(folder)], check=True)
        wanted = ["-r", str(ROOT / "requirements.txt"), f"ansible-core=={row.core}", *row.pins, *TOOLS]
        pip = [str(folder / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", *wanted]
        subprocess.run(pip, check=True)
        (folder / ".ready").touch()
    return folder


def run_tests(row: Row, environment: Path, what: str, paths: tuple[str, ...], log: Path) -> None:
    """Run tests in the row's environment and keep the count and the seconds as its result."""
    begun = time.monotonic()
    variables = {
        **os.environ,
        "PATH": f"{environment / 'bin'}:{os.environ['PATH']}",
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_STDOUT_CALLBACK": "default",
        # A fresh environment gets the versions of the row.
        "PIP_CONSTRAINT": str(environment / "constraints.txt"),
    }
    (environment / "constraints.txt").write_text("\n".join((f"ansible-core=={row.core}", *row.pins)) + "\n")
    cache = ["-o", f"cache_dir={environment}/.pytest"]
    done = subprocess.run(
        [str(environment / "bin/pytest"), "-q", *cache, *paths],
        cwd=ROOT,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    log.write_text(done.stdout + done.stderr)
    count = (re.findall(r"^(\d+ (?:passed|failed).*?) in ", done.stdout, re.MULTILINE) or ["no test ran"])[-1]
    row.results[what] = f"{'ok' if done.returncode == 0 else 'FAILED'}: {count}, {time.monotonic() - begun:.0f} s"


def main() -> int:
    """Run the rows and print a table; the exit code is 1 when a row fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="run the rows whose ansible-core starts with this")
    parser.add_argument("--cache", type=Path, default=ROOT / ".cache" / "matrix")
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    rows = [row for row in ROWS if row.core.startswith(options.only)]
    for row in rows:
        environment = prepare(row, options.cache)
        for what, paths in (("unit", ("tests/unit",)), ("session", SESSION), ("installed", INSTALLED)):
            log = options.cache / f"{row.name}-{what}.log"
            run_tests(row, environment, what, paths, log)
            print(f"{row.name:24} {what:8} {row.results[what]}", flush=True)
            if "FAILED" in row.results[what]:
                print("\n".join(log.read_text().splitlines()[-15:]))
    failed = [row.name for row in rows if any("FAILED" in result for result in row.results.values())]
    print(f"{len(rows) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
