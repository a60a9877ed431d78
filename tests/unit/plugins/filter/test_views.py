# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The environment that a launch builds first."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.filter.views import FilterModule

needed_environment = FilterModule().filters()["needed_environment"]


def variables(reference: str, *, present: bool) -> dict[str, Any]:
    return {"__session_report": {"agent": {"image": {"reference": reference, "present": present}}}}


LACKS = variables("cluster-compute/lab:1.0", present=False)
HAS = variables("cluster-compute/lab:1.0", present=True)


@pytest.mark.parametrize(
    ("hosts", "wanted"), [(["a"], "lab"), (["a", "b"], "lab"), (["a", "c"], ""), (["c"], ""), (["d"], "")]
)
def test_an_environment_is_built_if_no_host_of_the_launch_has_it(hosts: list[str], wanted: str) -> None:
    hostvars = {"a": LACKS, "b": LACKS, "c": HAS, "d": variables("debian:12", present=False), "controller": {}}
    assert needed_environment(hostvars, hosts) == wanted
