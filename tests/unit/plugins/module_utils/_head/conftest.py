# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stores for tests of the head."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    opened = Store(str(tmp_path / "state"))
    yield opened
    opened.close()


@pytest.fixture
def lost_store(tmp_path: Path) -> Iterator[Store]:
    """Another store, empty: that of another head, or one in place of a store that was lost."""
    opened = Store(str(tmp_path / "new"))
    yield opened
    opened.close()
