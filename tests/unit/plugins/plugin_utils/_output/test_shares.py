# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bars of the page, and the colors of owners in them."""

from __future__ import annotations

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.usage import Amounts, OwnerView
from ansible_collections.cluster.compute.plugins.plugin_utils._output.page import amount_bar, colors_of


def test_parts_of_a_bar_stand_one_after_the_other() -> None:
    bar = amount_bar([("c0", 1), ("c1", 2)], 8, "x", 4)
    assert [(one["color"], one["start"], one["width"]) for one in bar["parts"]] == [
        ("c0", "0%", "12.5%"),
        ("c1", "12.5%", "25%"),
    ]
    assert (bar["used"], amount_bar([], 8, "x")["used"], amount_bar([], 8, "x", 0)["used"]) == ("50%", None, "0%")
    assert [one["width"] for one in amount_bar([("c0", 1)], 0, "x")["parts"]] == ["0%"]
    assert [one["width"] for one in amount_bar([("c0", 9)], 4, "x")["parts"]] == ["100%"]


def test_the_owners_with_the_most_have_a_color_of_their_own() -> None:
    used = [OwnerView(f"user{number:02}", 0, 0, 0, Amounts(number, 0, 0)) for number in range(12)]
    colors = colors_of(used, Amounts(100, 0, 0))
    assert next(iter(colors)) == "user11"
    assert [colors[f"user{number:02}"] for number in (11, 5, 4, 0)] == ["c0", "c6", "c7", "c7"]
