# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The owner of sessions for a login name."""

from __future__ import annotations

import pytest

from ansible_collections.cluster.compute.plugins.filter.owners import FilterModule
from ansible_collections.cluster.compute.plugins.module_utils._shared.names import check_owner


@pytest.mark.parametrize(
    ("login", "owner"),
    [
        ("alice", "alice"),
        ("alice@example.org", "alice-example-org"),
        ("_svc_", "svc"),
        ("a" * 40, "a" * 32),
        ("@@", "user"),
    ],
)
def test_a_login_name_becomes_a_valid_owner(login: str, owner: str) -> None:
    found = FilterModule().filters()["owner_from_login"](login)
    assert found == owner
    assert check_owner("session_owner", found) == owner


def test_an_empty_login_name_means_the_default() -> None:
    assert FilterModule().filters()["owner_from_login"]("") == ""
