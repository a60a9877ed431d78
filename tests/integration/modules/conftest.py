# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Launches on the engine, for one process at a time: the name of their volume and the addresses of their networks are fixed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from containers_lab import Launcher, engine_client, launches


@pytest.fixture(scope="module")
def client(engine_host: str) -> Iterator[Any]:
    """The Docker SDK, connected to the engine."""
    with engine_client(engine_host) as sdk:
        yield sdk


@pytest.fixture
def launcher(engine_host: str, client: Any) -> Iterator[Launcher]:
    """Launches on the engine; what they leave is removed after the test."""
    with launches(engine_host, client) as launch:
        yield launch
