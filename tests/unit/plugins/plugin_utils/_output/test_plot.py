# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Use over time as lines."""

from __future__ import annotations

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.usage import Amounts, Sample, SampledUse
from ansible_collections.cluster.compute.plugins.plugin_utils._output.plot import plot


def sample(moment: float, used: float = 1000, capacity: float = 4000) -> Sample:
    return Sample(moment, Amounts(capacity, 8, 0), Amounts(used, 0, 0), SampledUse(500, 0, None), 0, 0)


def test_a_plot_has_a_line_for_each_resource_and_a_gap_where_no_sample_was_taken() -> None:
    minutes = [*range(0, 60, 5), *range(300, 400, 5)]
    drawn = plot([sample(60.0 * minute) for minute in minutes], 0.0, 86400.0)
    lines = {line["name"]: line["strokes"] for line in drawn["lines"]}
    assert [len(strokes) for strokes in lines.values()] == [2] * len(lines)
    assert list(lines) == ["CPUs allocated", "memory allocated", "CPUs in use", "memory in use"]
    assert lines["CPUs allocated"][0].startswith("0.0,75.0 ")
    assert [time["x"] for time in drawn["times"]] == ["0%", "25%", "50%", "75%", "100%"]


def test_a_plot_of_many_samples_is_no_longer_than_its_width_needs() -> None:
    drawn = plot([sample(60.0 * minute) for minute in range(43200)], 0.0, 2592000.0)
    assert len(str(drawn)) < 100_000
    assert (drawn["is_empty"], plot([sample(5.0)], 10.0, 20.0)["is_empty"]) == (False, True)
