# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checks inside the throw-away overlay network: names, packets, full packets, latency and throughput of each pair of agents."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from statistics import median_high, median_low
from typing import Callable, Dict, List, Mapping, Sequence, Tuple

from ...module_utils._shared.constants import VXLAN_PORT
from ...module_utils._shared.documents.examination import InOverlay, OverlayPlan, Probe
from ...module_utils._shared.documents.findings import FAIL, OK, PROVISION, VXLAN, WARN, Finding, Measurement

Pair = Tuple[str, str]
# An outlier has less than this part of the usual throughput, or this many times the usual latency and at least some milliseconds more.
SLOW_PART, LATE_TIMES, LATE_MORE = 0.25, 5.0, 2.0
_HEALTH = "look at its links, its load and its virtual switch"


def check_overlay(plan: OverlayPlan | None, probes: Mapping[str, Probe], port: int = VXLAN_PORT) -> List[Finding]:
    """The findings inside the network. Without a ``plan`` there was nothing to plan; ``port`` is that of VXLAN."""
    if plan is None:
        return []
    if plan.reason:
        return [Finding("overlay", "all", WARN, f"not tested: {plan.reason}", PROVISION)]
    refused = next((probe.network_reason for probe in probes.values() if probe.network_reason), "")
    if refused:
        remedy = f"read the log of the engine of {plan.manager}, and check that the managers of the Swarm run"
        return [Finding("overlay", "all", FAIL, f"no overlay network can be made: {refused}", remedy)]
    absent = [finding for member in plan.members for finding in _absent(member.name, probes[member.name])]
    every = in_overlay(probes)
    found = {one.name: every[one.name] for one in plan.members if one.name in every and every[one.name].measured}
    pairs = list(permutations(found, 2))
    findings = [*absent, *_names(pairs, found, plan), *_packets(pairs, found, plan.mtu, probes, port)]
    rates = [*_unmeasured(plan.links, found), *_throughput(_rates(found))]
    return [*findings, *rates, *_latency(_times(found))]


def in_overlay(probes: Mapping[str, Probe]) -> Dict[str, InOverlay]:
    """Return what the container of each agent has found."""
    return {name: probe.overlay for name, probe in probes.items() if probe.overlay}


def _rates(found: Mapping[str, InOverlay]) -> Dict[Pair, float]:
    """The throughput of each pair of agents that has it; one of 0 is a connection that failed."""
    return {(name, peer): float(rate) for name, one in found.items() for peer, rate in one.mbits.items() if rate}


def _times(found: Mapping[str, InOverlay]) -> Dict[Pair, float]:
    return {(name, peer): float(spent) for name, one in found.items() for peer, spent in one.latency.items() if spent}


def matrix(probes: Mapping[str, Probe]) -> List[Measurement]:
    """The measurements of each pair of agents that has one."""
    found = in_overlay(probes)
    rates, times = _rates(found), _times(found)
    return [Measurement(*pair, rates.get(pair), times.get(pair)) for pair in sorted({*rates, *times})]


def _absent(name: str, probe: Probe) -> List[Finding]:
    if probe.overlay_reason:
        remedy = "read the log of its engine; docker node ls on a manager shows whether the Swarm sees the agent"
        return [Finding("overlay", name, FAIL, f"it cannot use an overlay network: {probe.overlay_reason}", remedy)]
    if not (probe.overlay and probe.overlay.measured):
        return [
            Finding("overlay", name, WARN, "its container did not finish in time", "check again when its load is lower")
        ]
    return []


def _names(pairs: Sequence[Pair], found: Mapping[str, InOverlay], plan: OverlayPlan) -> List[Finding]:
    wrong, addresses = [], {member.name: member.address for member in plan.members}
    for sender, receiver in pairs:
        answer = found[sender].names.get(receiver, "no answer")
        if answer != addresses[receiver]:
            remedy = f"allow TCP and UDP 7946 (Swarm's gossip) between {sender} and {receiver}"
            text = f"Docker's DNS does not know the other's name ({answer})"
            wrong.append(Finding("overlay names", _where((sender, receiver)), FAIL, text, remedy))
    return wrong or _all("overlay names", pairs, "resolve")


def _packets(
    pairs: Sequence[Pair], found: Mapping[str, InOverlay], mtu: int, probes: Mapping[str, Probe], port: int
) -> List[Finding]:
    lost = [pair for pair in pairs if (pair[0], "small") not in found[pair[1]].heard]
    arriving = [pair for pair in pairs if pair not in lost]
    cut = [pair for pair in arriving if (pair[0], "full") not in found[pair[1]].heard]
    findings = [_lost(pair, probes[pair[1]], port) for pair in lost] or _all("overlay", pairs, "arrive")
    if not arriving:
        return findings
    text = "packets of %d bytes, the network's MTU, do not arrive, smaller packets do" % mtu
    remedy = "set the same MTU on the interfaces of %s and %s, and on the network between them"
    short = [Finding("overlay mtu", _where(pair), FAIL, text, remedy % pair) for pair in cut]
    return findings + (short or _all("overlay mtu", arriving, "carry %d bytes" % mtu))


def _lost(pair: Pair, receiver: Probe, port: int) -> Finding:
    """A firewall is to blame only if the datagrams that the ports' check sends do not arrive, either."""
    names = {"sender": pair[0], "receiver": pair[1], "port": port}
    if (pair[0], VXLAN) in (receiver.received or ()):
        text = "no packet arrives inside the overlay network, though UDP %d is open" % port
        remedy = (
            "on %(receiver)s, look for what drops VXLAN packets after the firewall (rules of FORWARD, eBPF programs, a security "
            "agent); on %(sender)s, try ethtool -K INTERFACE tx-udp_tnl-segmentation off tx-checksum-ip-generic off"
        )
        return Finding("overlay", _where(pair), FAIL, text, remedy % names)
    remedy = "allow UDP %(port)d (VXLAN) from %(sender)s on %(receiver)s, and outgoing on %(sender)s" % names
    return Finding("overlay", _where(pair), FAIL, "no packet arrives inside the overlay network", remedy)


def _unmeasured(links: Sequence[Pair], found: Mapping[str, InOverlay]) -> List[Finding]:
    """The links whose connection failed or carried nothing: packets pass, so the hosts were too busy for the measurement."""
    pairs = [(name, peer) for name, peer in links if name in found and not found[name].mbits.get(peer)]
    remedy = "run check_agents.yml again when the agents have less to do"
    return [Finding("throughput", where, WARN, "not measured", remedy) for where, _group in blamed(pairs)]


def _throughput(rates: Dict[Pair, float]) -> List[Finding]:
    if not rates:
        return []
    usual = median_high(rates.values())
    slow = [pair for pair, rate in rates.items() if rate < SLOW_PART * usual]
    worst = min(rates, key=lambda pair: rates[pair])
    summary = "%s in %d pairs, least %s (%s)" % (_mbits(usual), len(rates), _mbits(rates[worst]), _where(worst))
    return _outliers(
        "throughput", slow, lambda pairs: _mbits(max(rates[pair] for pair in pairs)), _mbits(usual), summary
    )


def _latency(times: Dict[Pair, float]) -> List[Finding]:
    if not times:
        return []
    usual = median_low(times.values())
    late = [pair for pair, spent in times.items() if spent > max(LATE_TIMES * usual, usual + LATE_MORE)]
    worst = max(times, key=lambda pair: times[pair])
    summary = "%s in %d pairs, most %s (%s)" % (_ms(usual), len(times), _ms(times[worst]), _where(worst))
    return _outliers("latency", late, lambda pairs: _ms(min(times[pair] for pair in pairs)), _ms(usual), summary)


def _outliers(
    check: str, pairs: Sequence[Pair], show: Callable[[Sequence[Pair]], str], usual: str, summary: str
) -> List[Finding]:
    """A warning for each agent that the pairs have in common, and for each pair that is left; else the summary."""
    findings = [
        Finding(check, where, WARN, f"{show(group)}, where {usual} is usual", _HEALTH) for where, group in blamed(pairs)
    ]
    return findings or [Finding(check, "all pairs", OK, summary)]


def blamed(pairs: Sequence[Pair]) -> List[Tuple[str, List[Pair]]]:
    """The agents that explain most of these pairs, and the pairs that no single agent explains.

    >>> blamed([("a", "c"), ("b", "c"), ("c", "a")])
    [('c', [('a', 'c'), ('b', 'c'), ('c', 'a')])]
    >>> blamed([("a", "b")])
    [('a -> b', [('a', 'b')])]
    """
    left = list(pairs)
    found: List[Tuple[str, List[Pair]]] = []
    while left:
        first, *others = Counter(name for pair in left for name in pair).most_common(2)
        if first[1] < 2 or (others and others[0][1] == first[1]):
            return found + [(_where(pair), [pair]) for pair in left]
        found.append((first[0], [pair for pair in left if first[0] in pair]))
        left = [pair for pair in left if first[0] not in pair]
    return found


def _all(check: str, pairs: Sequence[Pair], verb: str) -> List[Finding]:
    return [Finding(check, "all pairs", OK, "%d of %d %s" % (len(pairs), len(pairs), verb))] if pairs else []


def _where(pair: Pair) -> str:
    return "{} -> {}".format(*pair)


def _mbits(rate: float) -> str:
    """
    >>> _mbits(4.26), _mbits(948.2), _mbits(12480)
    ('4.3 Mbit/s', '948 Mbit/s', '12.5 Gbit/s')
    """
    if rate >= 10000:
        return "%.1f Gbit/s" % (rate / 1000)
    return f"{rate:.1f} Mbit/s" if rate < 10 else f"{rate:.0f} Mbit/s"


def _ms(spent: float) -> str:
    return f"{spent:.2f} ms"
