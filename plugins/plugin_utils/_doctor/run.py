# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The doctor: examine every agent, test the ports and an overlay network between them, and evaluate what was found."""

from __future__ import annotations

import secrets
import time
from typing import Dict, List, Sequence

from ...module_utils._shared.codec import Json
from ...module_utils._shared.documents import validation
from ...module_utils._shared.documents.findings import Requirements
from ...module_utils._shared.errors import ComputeError
from ...module_utils._shared.planning.swarm_plan import data_path_port
from ...module_utils._shared.text.table import check_lines
from .._hosts.conductor import Play
from .._hosts.results import root_cause
from .._hosts.steps import (
    DOCTOR_CREATE_NETWORK,
    DOCTOR_EXAMINE,
    DOCTOR_HEAR,
    DOCTOR_JOIN_NETWORK,
    DOCTOR_LEAVE_NETWORK,
    DOCTOR_LISTEN,
    DOCTOR_MEASURE,
    DOCTOR_REMOVE_NETWORK,
    DOCTOR_SEND,
    DOCTOR_TEST_NETWORK,
    Call,
)
from .diagnosis import apart, diagnose, summarize
from .overlay_checks import matrix
from .overlay_plan import Link, overlay_plan, ring, rounds


def check_agents(play: Play, required: Requirements, seconds: float) -> Json:
    """Every check of the agents of the play, with a throughput that is measured for these seconds, or not at all with 0."""
    with play.phase("examine"):
        reports = _examine(play)
    # An engine cannot send to itself under another name.
    tested, _twice = apart(reports)
    up = [report for report in tested if report["reachable"]]
    tests, plan = _Tests(play), {}
    if len(tested) > 1:
        with play.phase("ports"):
            tests.test_ports(up)
        plan = overlay_plan(tested, required.pools, required.encrypted, required.head, seconds)
        if plan["members"]:
            with play.phase("overlay"):
                plan = tests.test_overlay(plan)
    findings = diagnose(reports, tests.probes, required, plan)
    summary, pairs = summarize(findings, play.names), matrix(tests.probes)
    return {"changed": False, **summary, "overlay": pairs, "lines": check_lines(summary["findings"], pairs)}


def _examine(play: Play) -> List[Json]:
    """The report on each agent, in the order of the play. Nothing but the report says that an agent does not answer."""

    def examine(host: str) -> Call[Json]:
        named = (play.of_host(host, "agent_swarm_address"), play.of_host(host, "ansible_host") or host)
        addresses = [str(address) for address in named if address]
        sharing = str(play.of_host(host, "agent_gpu_sharing") or "none")
        return DOCTOR_EXAMINE(addresses=addresses, several=len(play.names) > 1, sharing=sharing)

    def carry(host: str, call: Call[Json]) -> Json:
        before = time.time()
        return {**play.others.step(host, call), "asked": (before, time.time())}

    answers = play.try_on_each(play.names, examine, carry)
    return [_report(host, answer) for host, answer in answers.items()]


def _report(host: str, answer: Json) -> Json:
    try:
        report = validation.examination(_arrived(answer), host)
    except ComputeError as error:
        return {"name": host, "reachable": False, "reason": error.message}
    if report["reachable"]:
        report["clock"] = clock_offset(report["time"], *answer["asked"])
    return report


def clock_offset(reading: float, before: float, after: float) -> float:
    """By how many seconds a clock is certainly ahead, if it was read at any time between the two moments.

    >>> clock_offset(105.0, 100.0, 106.0), clock_offset(3700.0, 100.0, 101.0), clock_offset(90.0, 100.0, 101.0)
    (0.0, 3599.0, -10.0)
    """
    return round(max(0.0, reading - after) - max(0.0, before - reading), 3)


class _Tests:
    """The tests between agents. ``probes`` has what they find on each agent, and why it takes no part in a test."""

    def __init__(self, play: Play) -> None:
        self.probes: Dict[str, Json] = {host: {} for host in play.names}
        self._play = play
        # It distinguishes the datagrams and containers of this check from those of other checks.
        self._mark = secrets.token_hex(6)

    def test_ports(self, reports: Sequence[Json]) -> None:
        """Send from every agent to every other. All of them listen before any of them sends."""
        names = [report["name"] for report in reports]
        port = data_path_port(report["swarm"] for report in reports)
        try:
            self._keep("reason", self._step(names, DOCTOR_LISTEN(mark=self._mark)))
            send = DOCTOR_SEND(mark=self._mark, agents=list(map(_peer, reports)), port=port)
            self._keep("reason", self._step(names, send))
        finally:
            self._keep("reason", self._step(names, DOCTOR_HEAR(mark=self._mark)))

    def test_overlay(self, plan: Json) -> Json:
        """Test a throw-away network with a container of each agent. Returns the plan with the links that were measured."""
        manager, links = plan["manager"], []
        try:
            self._keep("network_reason", self._step([manager], DOCTOR_CREATE_NETWORK(mark=self._mark, plan=plan)))
            if "network_reason" not in self.probes[manager]:
                links = self._test_inside([member["name"] for member in plan["members"]], plan)
        finally:
            self._remove_network(manager)
        return {**plan, "links": links}

    def _test_inside(self, names: Sequence[str], plan: Json) -> List[Link]:
        """Let the containers test each other as soon as all answer, then measure the throughput. Returns the measured links."""
        try:
            self._keep("overlay_reason", self._step(names, DOCTOR_JOIN_NETWORK(mark=self._mark, plan=plan)))
            joined = [name for name in names if "overlay_reason" not in self.probes[name]]
            return self._measure(self._step(joined, DOCTOR_TEST_NETWORK(mark=self._mark)), float(plan["seconds"]))
        finally:
            self._keep("overlay_reason", self._step(names, DOCTOR_LEAVE_NETWORK(mark=self._mark)))

    def _measure(self, answers: Dict[str, Json], seconds: float) -> List[Link]:
        """Measure the throughput of each link of a ring of the agents that have tested the network."""
        found = {host: _probe(host, answer, "reason").get("overlay") or {} for host, answer in answers.items()}
        links = ring({host: one for host, one in found.items() if one.get("measured")}) if seconds else []
        for turn in rounds(links):
            orders = {name: DOCTOR_MEASURE(mark=self._mark, peer=peer, seconds=seconds) for name, peer in turn}
            self._play.try_on_each(list(orders), orders.__getitem__)
        return links

    def _remove_network(self, manager: str) -> None:
        answer = self._step([manager], DOCTOR_REMOVE_NETWORK(mark=self._mark))[manager]
        if answer.get("failed"):
            left = "The overlay network of the check stays on %s until the next check: %s"
            self._play.warn(left % (manager, root_cause(answer)))

    def _step(self, hosts: Sequence[str], call: Call[Json]) -> Dict[str, Json]:
        return self._play.try_on_each(hosts, call)

    def _keep(self, reason: str, answers: Dict[str, Json]) -> None:
        """Keep what a step has found on each agent, or why it failed, by the name C(reason)."""
        for host, answer in answers.items():
            self.probes[host].update(_probe(host, answer, reason))


def _probe(host: str, answer: Json, reason: str) -> Json:
    try:
        return validation.probe(_arrived(answer), host)
    except ComputeError as error:
        return {reason: error.message}


def _arrived(answer: Json) -> Json:
    """The answer. Raises ComputeError if it is a failure."""
    if answer.get("failed"):
        raise ComputeError(root_cause(answer))
    return answer


def _peer(report: Json) -> Json:
    member = report["swarm"]["state"] == "active"
    return {"name": report["name"], "address": report["address"], "mtu": report["mtu"], "member": member}
