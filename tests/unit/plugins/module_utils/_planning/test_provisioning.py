# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host lacks that a launch can supply first."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._planning.provisioning import lacks


def result(reference: str, *, present: bool, runtime: bool = True, **fields: Any) -> dict[str, Any]:
    image = {"reference": reference, "present": present}
    return {"agent": {"reachable": True, "runtime": {"present": runtime}, "image": image}, **fields}


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (result("debian:12", present=True), []),
        (result("debian:12", present=False), []),
        (result("debian:12", present=True, runtime=False), ["agent"]),
        (result("cluster-compute/reference:1", present=False), ["agent"]),
        (result("cluster-compute/lab:1.0", present=True), []),
        (result("cluster-compute/lab:1.0", present=False), ["environment"]),
        (result("cluster-compute/lab:1.0", present=False, runtime=False), ["agent", "environment"]),
        ({"agent": {"name": "a", "reachable": False}}, ["agent"]),
        ({"agent": {"name": "a", "reachable": False}, "connected": False}, []),
    ],
)
def test_what_a_host_lacks(found: dict[str, Any], wanted: list[str]) -> None:
    assert lacks(found) == wanted
