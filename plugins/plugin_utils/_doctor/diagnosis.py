# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checks of all agents together: one Swarm, open ports between each pair of agents, and the complete table."""

from __future__ import annotations

from itertools import permutations, product
from typing import Callable, Dict, Iterable, List, Mapping, Sequence, Tuple

from ...module_utils._shared.documents.examination import Examination, OverlayPlan, Probe
from ...module_utils._shared.documents.findings import (
    CONTAINER,
    FAIL,
    FULL,
    GOSSIP,
    OK,
    PROVISION,
    VXLAN,
    WARN,
    Checkup,
    Finding,
    Measurement,
    Requirements,
    Verdict,
    names_of_one_engine,
    one_engine,
    verdict,
)
from ...module_utils._shared.planning.swarm_plan import Node, data_path_port, swarm_of
from .checks import Agent, check_agent
from .overlay_checks import blamed, check_overlay
from .transports import check_transports

# A test of a pair of agents: sender and receiver, and the probes of all agents.
PairTest = Callable[[Examination, Examination, Mapping[str, Probe]], bool]


def check_swarm(agents: Sequence[Examination], required: Requirements) -> List[Finding]:
    """Return whether all agents are in one Swarm, and whether it tolerates the loss of a manager."""
    nodes, cluster, managers = swarm_of({one.name: one.swarm for one in agents}, required.head)
    findings = [
        Finding("swarm", node.name, *_membership(node, one.swarm_error, cluster)) for node, one in zip(nodes, agents)
    ]
    if any(node.state == "active" for node in nodes):
        findings.append(Finding("quorum", "all", *_quorum(managers, len(agents))))
    return findings


def _membership(node: Node, error: str, cluster: str) -> Verdict:
    if node.state == "inactive":
        return FAIL, "in no Swarm", PROVISION
    if node.state != "active" or error:
        found = error or f"its membership is {node.state}"
        return FAIL, found, "read its engine's log, and check that the managers run"
    if node.cluster_id != cluster:
        found = f"in another Swarm ({node.cluster_id or 'of unknown managers'}, the head's is {cluster})"
        return FAIL, found, "run docker swarm leave --force on that host, then provision_agents.yml"
    return OK, f"{'manager' if node.manager else 'worker'} of {cluster or 'a Swarm'} at {node.address}", ""


def _quorum(managers: Sequence[str], size: int) -> Verdict:
    found = "%d manager%s (%s)" % (len(managers), "" if len(managers) == 1 else "s", ", ".join(managers))
    if not managers:
        return FAIL, "no manager answers", "start the engines of the managers, or " + PROVISION
    is_alone = size >= 3 and len(managers) < 3
    loss = ": its loss stops the Swarm" if is_alone else ""
    return verdict(found + loss, is_alone, "set agent_swarm_manager: true on two or more further agents")


def check_gpu_versions(agents: Sequence[Examination]) -> List[Finding]:
    """Return whether all agents with GPUs have the same driver and the same toolkit: a session may run on any of them."""
    findings = []
    drivers = _by_value((one.gpus.driver, one.name) for one in agents)
    toolkits = _by_value((one.gpus.toolkit, one.name) for one in agents)
    for check, versions in (("gpu drivers", drivers), ("gpu toolkits", toolkits)):
        if sum(map(len, versions.values())) < 2:
            continue
        remedy = "install the same version on all agents of a resource group"
        findings.append(Finding(check, "all", *verdict(_listed(versions), len(versions) > 1, remedy)))
    return findings


def check_architectures(agents: Sequence[Examination]) -> List[Finding]:
    """Return what agents of several architectures mean for sessions."""
    found = _by_value((one.architecture, one.name) for one in agents)
    shown = f"{_listed(found)}: a session runs on one architecture"
    return [Finding("architectures", "all", OK, shown)] if len(found) > 1 else []


def _by_value(values: Iterable[Tuple[str, str]]) -> Dict[str, List[str]]:
    """The agents that have each value, of values with the agent's name. An agent without one is left out."""
    found: Dict[str, List[str]] = {}
    for value, name in values:
        if value:
            found.setdefault(value, []).append(name)
    return found


def _listed(agents: Dict[str, List[str]]) -> str:
    return "; ".join(f"{value} on {', '.join(names)}" for value, names in sorted(agents.items()))


def check_pairs(agents: Sequence[Examination], probes: Mapping[str, Probe]) -> List[Finding]:
    """The findings of each pair of agents. A check that all pairs pass is one line."""
    findings = []
    for check, applies, passes, remedy in _tests(_port(agents)):
        tried = [pair for pair in permutations(agents, 2) if applies(*pair, probes)]
        failed = [pair for pair in tried if not passes(*pair, probes)]
        findings += [_pair_finding(check, sender, receiver, remedy) for sender, receiver in failed]
        if tried and not failed:
            findings.append(Finding(check, "all pairs", OK, "%d of %d pass" % (len(tried), len(tried))))
    return findings


def _pair_finding(check: str, sender: Examination, receiver: Examination, remedy: str) -> Finding:
    names = {"sender": sender.name, "receiver": receiver.name, "from": sender.network.address}
    found = f"does not arrive at {receiver.network.address}"
    if check == "path mtu":
        found = "packets of %d bytes do not arrive at %s" % (sender.network.mtu, receiver.network.address)
    return Finding(check, "{sender} -> {receiver}".format(**names), FAIL, found, remedy % names)


def check_isolation(agents: Sequence[Examination], probes: Mapping[str, Probe]) -> List[Finding]:
    """Return whether containers can send VXLAN to an agent, their own included: the kernel would take it for a frame of an overlay."""
    port = _port(agents)
    inside = [one for one in agents if probes[one.name].contained]
    tried = [pair for pair in product(inside, agents) if _has_sent(*pair, probes)]
    reached = [pair for pair in tried if _heard(CONTAINER)(*pair, probes)]
    if tried and not reached:
        return [Finding("isolation", "all pairs", OK, "no container reaches UDP %d of an agent" % port)]
    found = "a container reaches UDP %d (VXLAN) and so the overlays of other sessions" % port
    return [
        Finding("isolation", f"{sender.name} -> {receiver.name}", WARN, found, PROVISION)
        for sender, receiver in reached
    ]


def _heard(channel: str) -> PairTest:
    return lambda sender, receiver, probes: (sender.name, channel) in (probes[receiver.name].received or ())


def _connected(port: int) -> PairTest:
    return lambda sender, receiver, probes: (
        probes[sender.name].connected.get(receiver.name, {}).get(str(port)) == "open"
    )


def _has_sent(sender: Examination, receiver: Examination, probes: Mapping[str, Probe]) -> bool:
    """Return whether the sender sent, and the receiver listened and returned what it received."""
    listener = probes[receiver.name]
    return probes[sender.name].sent and listener.listened and listener.received is not None


def _small_arrives(sender: Examination, receiver: Examination, probes: Mapping[str, Probe]) -> bool:
    """Return whether small datagrams arrive; if not, a large datagram shows nothing more."""
    return _has_sent(sender, receiver, probes) and _heard(VXLAN)(sender, receiver, probes)


def _is_member(sender: Examination, receiver: Examination, probes: Mapping[str, Probe]) -> bool:
    """Return whether the sender connected, and the receiver is in a Swarm."""
    return probes[sender.name].sent and receiver.swarm.state == "active"


def _is_manager(sender: Examination, receiver: Examination, probes: Mapping[str, Probe]) -> bool:
    return _is_member(sender, receiver, probes) and receiver.swarm.manager


_OPEN = "allow %s from %%(sender)s (%%(from)s) on %%(receiver)s, and outgoing on %%(sender)s"


def _port(agents: Sequence[Examination]) -> int:
    return data_path_port(one.swarm for one in agents)


def _tests(port: int) -> Tuple[Tuple[str, PairTest, PairTest, str], ...]:
    """Each test with its name, whether it applies to a pair, whether the pair passes it, and its remedy."""
    mtu = "set the same MTU on the interfaces of %(sender)s and %(receiver)s, and on the network between them"
    return (
        ("udp %d" % port, _has_sent, _heard(VXLAN), _OPEN % ("UDP %d (VXLAN)" % port)),
        ("udp 7946", _has_sent, _heard(GOSSIP), _OPEN % "UDP 7946 (Swarm's gossip)"),
        ("tcp 7946", _is_member, _connected(7946), _OPEN % "TCP 7946 (Swarm's gossip)"),
        ("tcp 2377", _is_manager, _connected(2377), _OPEN % "TCP 2377 (Swarm's managers)"),
        ("path mtu", _small_arrives, _heard(FULL), mtu),
    )


def diagnose(
    agents: Sequence[Agent], probes: Mapping[str, Probe], required: Requirements, plan: OverlayPlan | None = None
) -> List[Finding]:
    """The complete table: failures first, then warnings. ``probes`` has all agents, ``plan`` is for the overlay network."""
    agents, twice = apart(agents)
    several = len(agents) > 1
    findings = twice + [finding for one in agents for finding in check_agent(one, required, several)]
    up = reached(agents)
    if several:
        between = check_pairs(up, probes) + check_overlay(plan, probes, _port(up))
        moved = _moved(up, between)
        findings += [_with_cause(one, moved) for one in check_swarm(up, required)] + _check_listeners(up, probes)
        findings += [one for one in between if not moved.keys() & set(one.where.split(" -> "))]
        findings += check_isolation(up, probes) + check_gpu_versions(up) + check_transports(up)
        findings += check_architectures(up)
    return sorted(findings, key=lambda finding: (FAIL, WARN, OK).index(finding.status))


def reached(agents: Sequence[Agent]) -> List[Examination]:
    return [one for one in agents if isinstance(one, Examination)]


def apart(agents: Sequence[Agent]) -> Tuple[List[Agent], List[Finding]]:
    """The agents, one of each engine, and a finding about each engine that has further names."""
    findings = []
    for names in names_of_one_engine((one.name, one.engine.identity) for one in reached(agents)):
        found, remedy = one_engine(names)
        findings += [Finding("names", name, FAIL, found, remedy) for name in names[1:]]
    further = {finding.where for finding in findings}
    return [one for one in agents if one.name not in further], findings


def _moved(agents: Sequence[Examination], between: Sequence[Finding]) -> Dict[str, str]:
    """The agents that nothing reaches at the address that their Swarm has, which they do not have any more; with that address.

    An address that is translated on the way is none of the host's, either, but it is reached.
    """
    lost = {one.where.partition(" -> ")[2] for one in between if one.status == FAIL}
    gone = {one.name: one.swarm.address for one in agents if one.has_moved}
    return {name: address for name, address in gone.items() if name in lost}


def _with_cause(finding: Finding, moved: Dict[str, str]) -> Finding:
    """The finding; of an agent that has another address than in its Swarm, with this cause, which explains all failed pairs."""
    if finding.check != "swarm" or finding.where not in moved:
        return finding
    found = f"its Swarm has it at {moved[finding.where]}, which is no address of this host any more"
    return Finding("swarm", finding.where, FAIL, found, PROVISION)


def _check_listeners(agents: Sequence[Examination], probes: Mapping[str, Probe]) -> List[Finding]:
    return [
        Finding("ports", one.name, WARN, probes[one.name].reason, PROVISION + ", then check again")
        for one in agents
        if probes[one.name].reason
    ]


def unfit(findings: Sequence[Finding], agents: Sequence[str]) -> Dict[str, str]:
    """The agents that sessions should avoid, with the first check that failed on each.

    Of a pair that fails, it is the agent that most failing pairs have in common, else the later agent of the inventory.
    """
    failed = [finding for finding in findings if finding.status == FAIL]
    bad = {finding.where: finding.reason for finding in reversed(failed) if finding.where in agents}
    between = [finding for finding in reversed(failed) if " -> " in finding.where]
    pairs = {tuple(finding.where.split(" -> ")): finding.reason for finding in between}
    left = [pair for pair in pairs if not bad.keys() & set(pair)]
    for where, group in blamed([(pair[0], pair[1]) for pair in left]):
        name = where if where in agents else max(group[0], key=agents.index)
        if not bad.keys() & set(group[0]):
            bad[name] = pairs[group[0]]
    return bad


def summarize(findings: Sequence[Finding], agents: Sequence[str], overlay: Sequence[Measurement] = ()) -> Checkup:
    """The result: with the agents to avoid, and those whose containers reach overlays."""
    senders = {one.where.partition(" -> ")[0] for one in findings if (one.check, one.status) == ("isolation", WARN)}
    unguarded = tuple(name for name in agents if name in senders)
    return Checkup(tuple(findings), unfit(findings, agents), unguarded, tuple(overlay))
