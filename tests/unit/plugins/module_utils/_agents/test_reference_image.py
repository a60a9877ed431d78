# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who builds the reference image and who receives a copy."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._agents.reference_image import plan_reference_image


def answer(agent: str, present: bool = False, host: str = "x86_64") -> dict[str, Any]:
    return {"agent": agent, "present": present, "host": host}


@pytest.mark.parametrize(
    ("images", "builder", "takers"),
    [
        ([], "", ()),
        ([answer("a1"), answer("a2"), answer("a3")], "a2", ("a1", "a3")),
        ([answer("a1"), answer("a3")], "a1", ("a3",)),
        ([answer("a1"), answer("a2"), answer("a3", present=True)], "a3", ("a1", "a2")),
        ([answer("a1", present=True), answer("a2"), answer("a3", present=True)], "a1", ("a2",)),
        ([answer("a1"), answer("a2"), answer("a3", host="aarch64")], "a2", ("a1",)),
        ([answer("a1"), answer("elsewhere", present=True)], "elsewhere", ("a1",)),
        ([answer("a2"), answer("elsewhere")], "a2", ()),
    ],
)
def test_an_agent_that_has_the_image_comes_first_then_the_head(
    images: Any, builder: str, takers: tuple[str, ...]
) -> None:
    plan = plan_reference_image(images, "a2", ["a1", "a2", "a3"])
    assert (plan.builder, plan.takers) == (builder, takers)
    assert [image["agent"] for image in plan.sources] == ([builder] if builder else [])
