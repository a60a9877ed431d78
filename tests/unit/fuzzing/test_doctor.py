# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an agent answers the doctor: of any kind, it is refused, or it becomes findings, and never stops the check of the others."""

from __future__ import annotations

from typing import Any

from check_samples import NAMES, overlay, probes, report, swarm
from hostile import Choices, assert_one_message, assert_visible, changed_parts, fuzzed

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents import validation
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.findings import Requirements
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError
from ansible_collections.cluster.compute.plugins.module_utils._shared.text.table import check_lines
from ansible_collections.cluster.compute.plugins.plugin_utils._doctor.diagnosis import diagnose, summarize
from ansible_collections.cluster.compute.plugins.plugin_utils._doctor.overlay_checks import matrix
from ansible_collections.cluster.compute.plugins.plugin_utils._doctor.overlay_plan import overlay_plan, ring

POOLS = ["10.201.0.0/16"]
OTHERS = [report(1), report(3)]


def checked(reports: list[Any], found: dict[str, Any], links: list[Any]) -> None:
    """Evaluate what has arrived."""
    plan = {**overlay_plan(reports, POOLS, False, "agent1", 1.0), "links": links}
    findings = diagnose(reports, found, Requirements(head="agent1"), plan)
    summary = summarize(findings, NAMES)
    assert_visible(check_lines(summary["findings"], matrix(found)))


@fuzzed(700)
def test_a_report_is_refused_or_evaluated(choices: Choices) -> None:
    answer = changed_parts({"report": report(2, swarm=swarm(2))}, choices)
    try:
        found = validation.examination(validation.result(answer), "agent2")
    except ComputeError as error:
        assert_one_message(error.message)
        return
    late = {**found, "clock": 0.0} if found["reachable"] else found
    checked([OTHERS[0], late, OTHERS[1]], {name: {} for name in NAMES}, [])


@fuzzed(700)
def test_what_a_test_finds_is_refused_or_evaluated(choices: Choices) -> None:
    good = {name: {**one, "overlay": overlay(name, *NAMES, mbits={})} for name, one in probes(*NAMES).items()}
    answer = changed_parts(good["agent2"], choices)
    try:
        found = validation.probe(validation.result(answer), "agent2")
    except ComputeError as error:
        assert_one_message(error.message)
        return
    tried = {**good, "agent2": found}
    links = ring({name: one["overlay"] for name, one in tried.items() if one.get("overlay")})
    checked([OTHERS[0], report(2), OTHERS[1]], tried, links)
