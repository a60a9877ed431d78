# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._shared.paths import covers


@pytest.mark.parametrize(
    ("mount", "path", "covered"),
    [
        ("/home", "/home/work", True),
        ("/home", "/homes", False),
        ("/", "/x", True),
        ("/a/b", "/a", False),
        ("/a", "/a", True),
    ],
)
def test_covers(mount: str, path: str, covered: bool) -> None:
    assert covers(mount, path) is covered
