# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Expressions of the role timer."""

from __future__ import annotations

import pytest
from expressions import rendered


@pytest.mark.parametrize("name", ["page", "metrics", "variables"])
@pytest.mark.parametrize(
    ("given", "path"), [("a/b", "/work here/a/b"), ("/a/b", "/a/b"), ("~/b", "/home/alice/b"), ("", "")]
)
def test_a_relative_path_is_that_of_the_command_and_not_of_the_pass(
    name: str, given: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/alice")
    assert rendered("timer", "__timer_" + name, __timer_here="/work here/", **{"timer_" + name: given}) == path


def test_an_inventory_may_be_a_list_of_hosts() -> None:
    given = ["hosts.yml", "/etc/hosts.yml", "host1,", "~/hosts.yml"]
    found = rendered("timer", "__timer_inventories", __timer_here="/work/", timer_inventory=given)
    assert found == ["/work/hosts.yml", "/etc/hosts.yml", "host1,", "~/hosts.yml"]
