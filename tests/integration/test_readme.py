# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs every command of README.md as it is written there."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from readme import TEST, blocks, steps

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment for the commands: a separate home folder and session store, so that no other session interferes."""
    home = tmp_path_factory.mktemp("home")
    arguments = f"-e session_owner=readme -e session_state_dir={home}/state -e session_port_range=31500-31550"
    # Enough capacity, whatever else this engine runs.
    arguments += " -e agent_cpus=64 -e agent_memory=256g"
    environment = dict(os.environ, HOME=str(home), ARGS=arguments)
    yield environment
    command = ["make", "terminate"]
    subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False, timeout=300)


def run_block(text: str, environment: dict[str, str]) -> str:
    """Run a block of commands and return its output. The first command that fails ends the block and the test."""
    command = ["bash", "-e", "-o", "pipefail", "-c", text]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{text}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def test_the_readme_from_top_to_bottom(shell: dict[str, str]) -> None:
    launch, use_and_terminate, check, build = steps()

    launched = run_block(launch, shell)
    assert "Session demo: RUNNING (cluster session, single-node)" in launched
    assert "bin/cluster-compute ssh demo" in launched
    assert "Session demo: RUNNING, nothing to do" in run_block(launch, shell)

    # The check-mode block would launch a second session beside demo. It runs without ARGS, so on a busy engine
    # the session can also be one that would wait.
    assert re.search(r"would be launched|would wait", run_block(check, shell))

    output = run_block(use_and_terminate, shell)
    assert output.splitlines()[:2] == ["sub1", "I am rank 2 of 3, the master is main1"]
    assert re.search(r"demo +readme +RUNNING", output)
    assert "Session demo: TERMINATED" in output
    assert "cluster-compute-1.0.0.tar.gz" in run_block(build, shell)


def test_the_test_command_is_the_one_of_the_makefile() -> None:
    """`make test` runs this file, so the command itself is not run."""
    assert TEST in blocks()
    subprocess.run(["make", "--dry-run", "help"], cwd=ROOT, check=True, capture_output=True)
    assert re.search(r"^test:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
