# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who builds the reference image and who receives a copy; the package sources of a build on Debian."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._agents.reference_image import (
    package_sources,
    plan_reference_image,
)


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


MIRROR = "deb http://mirror.example.com/debian/"
OTHERS = (
    "Debian Backports %s trixie-backports main trixie-backports" % MIRROR,
    "Example deb http://packages.example.com/ trixie main trixie",
    "",
)


@pytest.mark.parametrize(
    ("distribution", "release", "lines", "suite", "sources"),
    [
        (
            "Debian",
            "trixie",
            [
                f"Debian {MIRROR} trixie main trixie",
                f"Debian {MIRROR} trixie main trixie",
                f"Debian {MIRROR} trixie-updates main trixie-updates",
                f"Debian {MIRROR} sid main sid",
            ],
            "trixie",
            [f"{MIRROR} trixie main", f"{MIRROR} trixie-updates main"],
        ),
        # A suite may have the name of its part in the release process.
        ("Debian", "trixie", [f"Debian {MIRROR} stable main trixie"], "trixie", [f"{MIRROR} stable main"]),
        ("Debian", "trixie", [f"Debian {MIRROR} oldstable main bookworm"], "trixie", []),
        # unstable has the release name of testing in /etc/os-release, and sources of its own.
        ("Debian", "forky", [f"Debian {MIRROR} sid main sid"], "sid", [f"{MIRROR} sid main"]),
        ("Debian", "forky", [f"Debian {MIRROR} unstable main sid"], "sid", [f"{MIRROR} unstable main"]),
        (
            "Debian",
            "forky",
            [f"Debian {MIRROR} sid main sid", f"Debian {MIRROR} testing main forky"],
            "forky",
            [f"{MIRROR} testing main"],
        ),
        ("Ubuntu", "noble", [f"Ubuntu {MIRROR} noble-updates main noble"], "noble", [f"{MIRROR} noble-updates main"]),
        # An index without a code name.
        ("Debian", "trixie", [f"Debian {MIRROR} trixie main "], "trixie", [f"{MIRROR} trixie main"]),
    ],
)
def test_a_build_uses_the_sources_of_the_distribution_itself(
    distribution: str, release: str, lines: list[str], suite: str, sources: list[str]
) -> None:
    """mmdebstrap looks for the essential packages in the suite, which has the code name that its index has."""
    assert package_sources([*OTHERS, *lines], distribution, release) == {"suite": suite, "sources": sources}
