# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an agent answers the doctor: of any kind, it is refused, or it becomes findings, and never stops the check of the others."""

from __future__ import annotations

from dataclasses import replace

from check_samples import NAMES, overlay, probes, report
from hostile import Choices, assert_one_message, assert_visible, changed_parts, fuzzed

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents import validation
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.examination import Probe
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.findings import Requirements
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError
from ansible_collections.cluster.compute.plugins.module_utils._shared.text.table import check_lines
from ansible_collections.cluster.compute.plugins.plugin_utils._doctor.checks import Agent
from ansible_collections.cluster.compute.plugins.plugin_utils._doctor.diagnosis import diagnose, reached, summarize
from ansible_collections.cluster.compute.plugins.plugin_utils._doctor.overlay_checks import in_overlay, matrix
from ansible_collections.cluster.compute.plugins.plugin_utils._doctor.overlay_plan import overlay_plan, ring
from ansible_collections.cluster.compute.plugins.plugin_utils._doctor.run import examination

POOLS = ["10.201.0.0/16"]
OTHERS = (report(1), report(3))


def checked(agents: list[Agent], found: dict[str, Probe], links: list[tuple[str, str]]) -> None:
    """Evaluate what has arrived."""
    plan = replace(overlay_plan(reached(agents), POOLS, False, "agent1", 1.0), links=tuple(links))
    result = summarize(diagnose(agents, found, Requirements(head="agent1"), plan), NAMES, matrix(found))
    assert_visible(check_lines(result.findings, result.overlay))


@fuzzed(700)
def test_an_examination_is_refused_or_evaluated(choices: Choices) -> None:
    answer = changed_parts({"report": report(2).to_json()}, choices)
    try:
        found = examination({**validation.result(answer), "asked": (0.0, 0.0)}, "agent2")
    except ComputeError as error:
        assert_one_message(error.message)
        return
    checked([OTHERS[0], found, OTHERS[1]], {name: Probe() for name in NAMES}, [])


@fuzzed(700)
def test_what_a_test_finds_is_refused_or_evaluated(choices: Choices) -> None:
    good = {name: replace(one, overlay=overlay(name, *NAMES)) for name, one in probes(*NAMES).items()}
    answer = changed_parts(good["agent2"].to_json(), choices)
    try:
        found = validation.arrived(Probe, validation.result(answer), "answer", "agent2")
    except ComputeError as error:
        assert_one_message(error.message)
        return
    tried = {**good, "agent2": found}
    checked([OTHERS[0], report(2), OTHERS[1]], tried, ring(in_overlay(tried)))
