# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real Docker Engine for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import with_engine


@pytest.fixture(scope="session", autouse=True)
def engine_host() -> Iterator[str]:
    """The address of an engine that answers; one started for the tests is stopped after them."""
    try:
        with with_engine.engine() as host:
            yield host
    except with_engine.EngineError as error:
        pytest.fail(str(error), pytrace=False)
