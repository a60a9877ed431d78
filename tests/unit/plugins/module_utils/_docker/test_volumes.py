# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Volumes that a session may mount, and those that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._core.model import Mount
from ansible_collections.cluster.compute.plugins.module_utils._docker.volumes import refusal

PLAIN = Mount("data", "/data", "volume")

OPTIONS = {"type": "tmpfs", "device": "tmpfs"}
OWNER = "cluster.compute.session.owner"


def volume(labels: dict[str, str] | None = None, **fields: Any) -> dict[str, Any]:
    return {"Driver": "local", "Labels": labels, "Options": None, **fields}


@pytest.mark.parametrize(
    ("found", "options"),
    [
        (volume(), {}),
        (volume({"a": "label"}), {}),
        (volume(Options={"type": "nfs"}), {}),
        (volume(Driver="other"), {}),
        (volume(Options=OPTIONS), OPTIONS),
        (volume({OWNER: "alice"}, Options=OPTIONS), OPTIONS),
    ],
)
def test_a_volume_of_a_user_and_a_shared_volume_of_an_owner_may_be_mounted(
    found: dict[str, Any], options: dict[str, str]
) -> None:
    assert refusal(Mount("data", "/data", "volume", "rw", options), found, "alice", "runtime") == ""


@pytest.mark.parametrize(
    ("source", "found", "options", "reason"),
    [
        ("runtime", volume(), {}, "belongs to the collection"),
        ("other", volume({"cluster.compute.runtime": "1"}), {}, "belongs to the collection"),
        ("data", volume({OWNER: "bob"}), {}, "belongs to a session of owner bob"),
        ("data", volume({OWNER: "bob"}, Options=OPTIONS), OPTIONS, "belongs to a session of owner bob"),
        ("data", volume(), OPTIONS, "exists with another driver or other options"),
        ("data", volume(Options={**OPTIONS, "o": "ro"}), OPTIONS, "exists with another driver or other options"),
        ("data", volume(Driver="other", Options=OPTIONS), OPTIONS, "exists with another driver or other options"),
    ],
)
def test_other_volumes_are_refused(source: str, found: dict[str, Any], options: dict[str, str], reason: str) -> None:
    assert refusal(Mount(source, "/data", "volume", "rw", options), found, "alice", "runtime").startswith(reason)


@pytest.mark.parametrize(
    ("labels", "is_own"), [(None, False), ({"a": "label"}, False), ({OWNER: "alice"}, True), ({OWNER: "bob"}, False)]
)
def test_a_policy_can_permit_only_the_volumes_of_sessions_of_the_owner(
    labels: dict[str, str] | None, is_own: bool
) -> None:
    reason = refusal(PLAIN, volume(labels), "alice", "runtime", own_only=True)
    assert (reason == "") == is_own, reason
    if not labels:
        assert reason.startswith("was not created by a session of alice")
