# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real Docker Engine for the tests of this folder."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import with_engine

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session", autouse=True)
def engine_host() -> Iterator[str]:
    """The address of an engine that answers; one started for the tests is stopped after them."""
    try:
        with with_engine.engine() as host:
            _provision()
            yield host
    except with_engine.EngineError as error:
        pytest.fail(str(error), pytrace=False)


def _provision() -> None:
    """The reference image and the SSH runtime, made where they are missing: nothing is left out for want of them."""
    command = [str(Path(sys.executable).with_name("ansible-playbook")), "playbooks/provision_agents.yml"]
    done = subprocess.run(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=900
    )
    if done.returncode:
        pytest.fail(f"This machine could not be made an agent:\n{done.stdout[-3000:]}{done.stderr}", pytrace=False)
