# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every command of README.md, typed as it stands there, in its order."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
# It runs this very file; that the target is there is checked instead.
NOT_HERE = "make test\n"


def blocks() -> list[str]:
    """The blocks marked as shell; what needs other hosts is marked as text."""
    return BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A home and a session store of the test's own, so that nobody's session is in the way."""
    home = tmp_path_factory.mktemp("home")
    mine = f"-e session_owner=readme -e session_state_dir={home}/state -e session_port_range=31500-31550"
    # Room enough, whatever else this engine holds.
    mine += " -e agent_cpus=64 -e agent_memory=256g"
    environment = dict(os.environ, HOME=str(home), ARGS=mine)
    yield environment
    command = ["make", "terminate"]
    subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False, timeout=300)


def typed(text: str, environment: dict[str, str]) -> str:
    """What a block prints; it fails as its first failing command does."""
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
    texts = [text for text in blocks() if text != NOT_HERE]
    assert len(texts) == 5
    session, use, end, check, build = texts

    assert "Session demo: RUNNING (cluster session, single-node)" in typed(session, shell)
    assert typed(use, shell).splitlines()[:2] == ["sub1", "I am rank 2 of 3, the master is main1"]
    assert "changed=0" in typed(session, shell)

    # Block "check" is typed while demo runs; it would launch another session and must not.
    # Typed as it stands it counts what else the engine holds, so that on a busy one it would wait.
    assert re.search(r"would be launched|is PENDING", typed(check, shell))
    ended = typed(end, shell)
    assert re.search(r"demo +readme +RUNNING", ended)
    assert "Session demo: TERMINATED" in ended
    assert "cluster-compute-1.0.0.tar.gz" in typed(build, shell)


def test_the_test_command_is_the_one_of_the_makefile() -> None:
    assert NOT_HERE in blocks()
    subprocess.run(["make", "--dry-run", "help"], cwd=ROOT, check=True, capture_output=True)
    assert re.search(r"^test:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
