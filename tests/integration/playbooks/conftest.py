# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A controller for each test file. Everything that it creates is removed at the end."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from controller import Controller
from front_end_lab import FrontEnd, front_end_lab


@pytest.fixture(scope="module")
def controller(engine_host: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    """A controller with a home of its own."""
    with Controller(tmp_path_factory.mktemp("controller") / "own", engine_host) as made:
        yield made


@pytest.fixture(scope="module")
def other_controller(engine_host: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    """Another one on the same engine, with a session store of its own."""
    with Controller(tmp_path_factory.mktemp("other") / "own", engine_host) as made:
        yield made


@pytest.fixture(scope="session")
def front_end(engine_host: str) -> Iterator[FrontEnd]:
    """The front end of a site, for all tests of its callers."""
    if os.geteuid() != 0 or shutil.which("useradd") is None or not engine_host.startswith("unix://"):
        pytest.skip("this test needs root, useradd and an engine of this machine: it creates other users")
    with front_end_lab(engine_host) as lab:
        yield lab
