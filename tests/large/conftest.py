# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests with images of gigabytes, which are no part of `make test`: the same engine and controller as tests/integration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import images
import pytest
import with_engine
from agents_fixtures import agents, lab, whole
from controller import Controller

__all__ = ["agents", "lab", "whole"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of this directory, before pytest selects tests by their marks."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker("large")


@pytest.fixture(scope="session")
def engine_host() -> Iterator[str]:
    """The address of an engine that answers, provisioned as an agent."""
    with with_engine.engine() as host:
        images.provision()
        yield host


@pytest.fixture
def controller(engine_host: str, tmp_path: Path) -> Iterator[Controller]:
    with Controller(tmp_path / "own", engine_host) as made:
        yield made
