# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The doctor: examine every agent, test the ports and an overlay network between them, and evaluate what was found."""

from __future__ import annotations

import secrets
import time
from dataclasses import replace
from typing import Callable, Dict, List, Sequence

from ...module_utils._shared.codec import Json
from ...module_utils._shared.documents import validation
from ...module_utils._shared.documents.examination import Examination, OverlayPlan, Peer, Probe, Unreached
from ...module_utils._shared.documents.findings import Checkup, Requirements
from ...module_utils._shared.errors import ComputeError, Failure
from ...module_utils._shared.planning.swarm_plan import data_path_port
from .._hosts.call import Call
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
)
from .checks import Agent
from .diagnosis import apart, diagnose, reached, summarize
from .overlay_checks import in_overlay, matrix
from .overlay_plan import Link, overlay_plan, ring, rounds

# What is known of an agent on which a step has failed, for a reason.
Failed = Callable[[str], Probe]
Answers = Dict[str, Probe | Failure]


def check_agents(play: Play, required: Requirements, seconds: float) -> Checkup:
    """Every check of the agents of the play, with a throughput that is measured for these seconds, or not at all with 0."""
    with play.phase("examine"):
        agents = _examine(play)
    # An engine cannot send to itself under another name.
    tested, _twice = apart(agents)
    up = reached(tested)
    tests, plan = _Tests(play), None
    if len(tested) > 1:
        with play.phase("ports"):
            tests.test_ports(up)
        plan = overlay_plan(up, required.pools, required.encrypted, required.head, seconds)
        if plan.members:
            with play.phase("overlay"):
                plan = tests.test_overlay(plan)
    return summarize(diagnose(agents, tests.probes, required, plan), play.names, matrix(tests.probes))


def _examine(play: Play) -> List[Agent]:
    """The examination of each agent, in the order of the play. Nothing else says that an agent does not answer."""

    def examine(host: str) -> Call[Json]:
        named = (play.of_host(host, "agent_swarm_address"), play.of_host(host, "ansible_host") or host)
        addresses = [str(address) for address in named if address]
        sharing = str(play.of_host(host, "agent_gpu_sharing") or "none")
        return DOCTOR_EXAMINE(addresses=addresses, several=len(play.names) > 1, sharing=sharing)

    def carry(host: str, call: Call[Json]) -> Json:
        before = time.time()
        return {**play.others.step(host, call), "asked": (before, time.time())}

    answers = play.try_on_each(play.names, examine, carry)
    return [_examined(host, answer) for host, answer in answers.items()]


def _examined(host: str, answer: Json | Failure) -> Agent:
    if isinstance(answer, Failure):
        return Unreached(host, root_cause(answer))
    try:
        return examination(answer, host)
    except ComputeError as error:
        return Unreached(host, error.message)


def examination(answer: Json, host: str) -> Agent:
    """The examination of an agent, and when it was ``asked``. Raises ComputeError if it is none, or that of another."""
    if answer.get("unreached"):
        found: Agent = validation.arrived(Unreached, answer["unreached"], "report", host)
    else:
        found = validation.arrived(Examination, answer.get("report"), "report", host)
    if found.name != host:
        raise validation.refusal("report", host, ("name",), found.name)
    return found if isinstance(found, Unreached) else replace(found, clock=clock_offset(found.time, *answer["asked"]))


def clock_offset(reading: float, before: float, after: float) -> float:
    """By how many seconds a clock is certainly ahead, if it was read at any time between the two moments.

    >>> clock_offset(105.0, 100.0, 106.0), clock_offset(3700.0, 100.0, 101.0), clock_offset(90.0, 100.0, 101.0)
    (0.0, 3599.0, -10.0)
    """
    return round(max(0.0, reading - after) - max(0.0, before - reading), 3)


class _Tests:
    """The tests between agents. ``probes`` has what they find on each agent, and why it takes no part in a test."""

    def __init__(self, play: Play) -> None:
        self.probes = {host: Probe() for host in play.names}
        self._play = play
        # It distinguishes the datagrams and containers of this check from those of other checks.
        self._mark = secrets.token_hex(6)

    def test_ports(self, agents: Sequence[Examination]) -> None:
        """Send from every agent to every other. All of them listen before any of them sends."""
        names, port = [one.name for one in agents], data_path_port(one.swarm for one in agents)
        peers = [_peer(one) for one in agents]
        try:
            self._keep(self._step(names, DOCTOR_LISTEN(mark=self._mark)), _no_port)
            self._keep(self._step(names, DOCTOR_SEND(mark=self._mark, agents=peers, port=port)), _no_port)
        finally:
            self._keep(self._step(names, DOCTOR_HEAR(mark=self._mark)), _no_port)

    def test_overlay(self, plan: OverlayPlan) -> OverlayPlan:
        """Test a throw-away network with a container of each agent. Returns the plan with the links that were measured."""
        links: List[Link] = []
        try:
            create = DOCTOR_CREATE_NETWORK(mark=self._mark, plan=plan)
            self._keep(self._step([plan.manager], create), _no_network)
            if not self.probes[plan.manager].network_reason:
                links = self._test_inside([member.name for member in plan.members], plan)
        finally:
            self._remove_network(plan.manager)
        return replace(plan, links=tuple(links))

    def _test_inside(self, names: Sequence[str], plan: OverlayPlan) -> List[Link]:
        """Let the containers test each other as soon as all answer, then measure the throughput. Returns the measured links."""
        try:
            self._keep(self._step(names, DOCTOR_JOIN_NETWORK(mark=self._mark, plan=plan)), _no_overlay)
            joined = [name for name in names if not self.probes[name].overlay_reason]
            return self._measure(self._step(joined, DOCTOR_TEST_NETWORK(mark=self._mark)), plan.seconds)
        finally:
            self._keep(self._step(names, DOCTOR_LEAVE_NETWORK(mark=self._mark)), _no_overlay)

    def _measure(self, answers: Answers, seconds: float) -> List[Link]:
        """Measure the throughput of each link of a ring of the agents that have tested the network."""
        found = in_overlay({host: answer for host, answer in answers.items() if isinstance(answer, Probe)})
        links = ring({host: one for host, one in found.items() if one.measured}) if seconds else []
        for turn in rounds(links):
            orders = {name: DOCTOR_MEASURE(mark=self._mark, peer=peer, seconds=seconds) for name, peer in turn}
            self._play.try_on_each(list(orders), orders.__getitem__)
        return links

    def _remove_network(self, manager: str) -> None:
        answer = self._play.try_on_each([manager], DOCTOR_REMOVE_NETWORK(mark=self._mark))[manager]
        if isinstance(answer, Failure):
            left = "The overlay network of the check stays on %s until the next check: %s"
            self._play.warn(left % (manager, root_cause(answer)))

    def _step(self, hosts: Sequence[str], call: Call[Probe]) -> Answers:
        return self._play.try_on_each(hosts, call)

    def _keep(self, answers: Answers, failed: Failed) -> None:
        """Keep what a step has found on each agent, or why it failed."""
        for host, answer in answers.items():
            later = failed(root_cause(answer)) if isinstance(answer, Failure) else answer
            self.probes[host] = self.probes[host].joined(later)


def _no_port(reason: str) -> Probe:
    return Probe(reason=reason)


def _no_network(reason: str) -> Probe:
    return Probe(network_reason=reason)


def _no_overlay(reason: str) -> Probe:
    return Probe(overlay_reason=reason)


def _peer(one: Examination) -> Peer:
    return Peer(one.name, one.network.address, one.network.mtu, one.swarm.state == "active")
