# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan as one text."""

from __future__ import annotations

from samples import plan, request

from ansible_collections.cluster.compute.plugins.module_utils._core.model import Plan
from ansible_collections.cluster.compute.plugins.plugin_utils._plan_text import pack, unpacked


def test_a_task_gets_the_plan_that_was_packed() -> None:
    made = plan(request(cluster_size=3), "aab")
    args = unpacked({"agent": "a", "plan": pack(made.to_short_json())})
    assert (args["agent"], Plan.from_json(args["plan"])) == ("a", made)


def test_other_options_stay_as_they_are() -> None:
    for args in ({"agent": "a"}, {"plan": {"session": {}}}, {"plan": "no plan"}):
        assert unpacked(args) is args
