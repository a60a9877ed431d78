# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real Docker Engine for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import images
import pytest
import with_engine
from parts import parts


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--part", metavar="K/N", help="run the K-th of N parts of the test files, which take about the same time"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deal the test files out to N parts, so that the parts can run side by side; each file is in exactly one part."""
    part = config.getoption("--part")
    if not part:
        return
    number, _slash, count = part.partition("/")
    # Of all files, not of those with items: a run of the failed tests alone must have the same parts.
    files = {file for item in items for file in item.path.parent.glob("test_*.py")}
    ignored = {config.invocation_params.dir / path for path in config.getoption("--ignore") or []}
    mine = parts(files - ignored, int(count))[int(number) - 1]
    config.hook.pytest_deselected(items=[item for item in items if item.path not in mine])
    items[:] = [item for item in items if item.path in mine]


@pytest.fixture(scope="session", autouse=True)
def engine_host() -> Iterator[str]:
    """The address of an engine that answers; an engine started for the tests is stopped after them."""
    try:
        with with_engine.engine() as host:
            images.provision()
            yield host
    except (with_engine.EngineError, RuntimeError) as error:
        pytest.fail(str(error), pytrace=False)
