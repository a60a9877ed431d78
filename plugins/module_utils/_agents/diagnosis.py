# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the agents' examinations mean together: one Swarm, open ports between every pair, and the whole table."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Callable, Dict, Iterator, List, Sequence, Tuple

from ansible_collections.cluster.compute.plugins.module_utils._agents.checks import (
    FAIL,
    OK,
    PROVISION,
    WARN,
    Finding,
    Verdict,
    Wanted,
    judge_agent,
)
from ansible_collections.cluster.compute.plugins.module_utils._agents.swarm_plan import Node, resolved
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json


def judge_swarm(reports: Sequence[Json], wanted: Wanted) -> List[Finding]:
    """One Swarm of them all, and how much of it may be lost."""
    nodes = resolved([Node.from_json({**one["swarm"], "name": one["name"]}) for one in reports])
    joined = [node for node in nodes if node.state == "active"]
    home = _home(joined, wanted.head)
    findings = [
        Finding("swarm", node.name, *_membership(node, one["swarm"]["error"], home))
        for node, one in zip(nodes, reports)
    ]
    managers = [node.name for node in joined if node.manager and node.cluster == home]
    if joined:
        findings.append(Finding("quorum", "all", *_quorum(managers, len(reports))))
    return findings


def _home(joined: Sequence[Node], head: str) -> str:
    """The Swarm of the head, or the one that most are in."""
    ids = [node.cluster for node in joined if node.cluster]
    first = next((node.cluster for node in joined if node.name == head), "")
    return first or max(ids, key=ids.count, default="")


def _membership(node: Node, error: str, home: str) -> Verdict:
    if node.state == "inactive":
        return FAIL, "in no Swarm", PROVISION
    if node.state != "active" or error:
        return FAIL, error or "its membership is %s" % node.state, "see its engine's log, and that the managers run"
    if node.cluster != home:
        found = "in a foreign Swarm (%s, the head's is %s)" % (node.cluster or "of unknown managers", home)
        return FAIL, found, "run docker swarm leave --force there, then provision_agents.yml"
    return OK, "%s of %s at %s" % ("manager" if node.manager else "worker", home or "a Swarm", node.address), ""


def _quorum(managers: Sequence[str], size: int) -> Verdict:
    found = "%d manager%s (%s)" % (len(managers), "" if len(managers) == 1 else "s", ", ".join(managers))
    if not managers:
        return FAIL, "no manager answers", "start the engines of the managers, or " + PROVISION
    if size >= 3 and len(managers) < 3:
        return WARN, "%s: may not be lost" % found, "set agent_swarm_manager: true on two or more further agents"
    return OK, found, ""


def judge_pairs(reports: Sequence[Json], probes: Dict[str, Json]) -> List[Finding]:
    """What goes from each agent to each other. A check that all pairs pass is one line."""
    findings = []
    for check, listens, passes, remedy in _PAIRS:
        tried = [(one, other) for one, other in _ordered_pairs(reports) if listens(one, other, probes)]
        failed = [(one, other) for one, other in tried if not passes(one["name"], other["name"], probes)]
        findings += [
            Finding(
                check,
                "%s -> %s" % (one["name"], other["name"]),
                FAIL,
                _found(check, one, other),
                remedy % _names(one, other),
            )
            for one, other in failed
        ]
        if tried and not failed:
            findings.append(Finding(check, "all pairs", OK, "%d of %d pass" % (len(tried), len(tried))))
    return findings


def _heard(channel: str) -> Callable[[str, str, Dict[str, Json]], bool]:
    return lambda one, other, probes: [one, channel] in probes[other]["heard"]


def _connected(port: int) -> Callable[[str, str, Dict[str, Json]], bool]:
    return lambda one, other, probes: probes[one]["connected"].get(other, {}).get(str(port)) == "open"


def _spoke(one: Json, other: Json, probes: Dict[str, Json]) -> bool:
    return bool(probes.get(one["name"], {}).get("sent") and probes.get(other["name"], {}).get("listened"))


def _spoke_small(one: Json, other: Json, probes: Dict[str, Json]) -> bool:
    """Where nothing at all comes through, a large packet says no more."""
    return _spoke(one, other, probes) and _heard("4789/udp")(one["name"], other["name"], probes)


def _listens(one: Json, other: Json, probes: Dict[str, Json]) -> bool:
    return bool(probes.get(one["name"], {}).get("sent")) and other["swarm"]["state"] == "active"


def _manages(one: Json, other: Json, probes: Dict[str, Json]) -> bool:
    return _listens(one, other, probes) and bool(other["swarm"]["manager"])


_OPEN = "let {port} in from %(one)s (%(from)s) on %(other)s, and out on %(one)s"
_PAIRS = (
    ("udp 4789", _spoke, _heard("4789/udp"), _OPEN.replace("{port}", "UDP 4789 (VXLAN)")),
    ("udp 7946", _spoke, _heard("7946/udp"), _OPEN.replace("{port}", "UDP 7946 (Swarm's gossip)")),
    ("tcp 7946", _listens, _connected(7946), _OPEN.replace("{port}", "TCP 7946 (Swarm's gossip)")),
    ("tcp 2377", _manages, _connected(2377), _OPEN.replace("{port}", "TCP 2377 (Swarm's managers)")),
    (
        "path mtu",
        _spoke_small,
        _heard("full"),
        "give the interfaces of %(one)s and %(other)s, and what lies between, the same MTU",
    ),
)


def _found(check: str, one: Json, other: Json) -> str:
    if check == "path mtu":
        return "packets of %d bytes do not arrive at %s" % (one["mtu"], other["address"])
    return "does not arrive at %s" % other["address"]


def _names(one: Json, other: Json) -> Dict[str, str]:
    return {"one": one["name"], "other": other["name"], "from": one["address"]}


def _ordered_pairs(reports: Sequence[Json]) -> Iterator[Tuple[Json, Json]]:
    for one in reports:
        for other in reports:
            if one["name"] != other["name"]:
                yield one, other


def judge(reports: Sequence[Json], probes: Dict[str, Json], wanted: Wanted) -> List[Finding]:
    """The whole table: what must be mended comes first, then what is worth knowing."""
    several = len(reports) > 1
    findings = [finding for report in reports for finding in judge_agent(report, wanted, several)]
    up = [one for one in reports if one["reachable"]]
    if several:
        findings += judge_swarm(up, wanted) + _untried(up, probes) + judge_pairs(up, probes)
    return sorted(findings, key=lambda one: (FAIL, WARN, OK).index(one.status))


def _untried(reports: Sequence[Json], probes: Dict[str, Json]) -> List[Finding]:
    """An agent whose ports could not be listened at is not silently left out."""
    return [
        Finding("ports", one["name"], WARN, probes[one["name"]]["reason"], PROVISION + ", then check again")
        for one in reports
        if probes.get(one["name"], {}).get("reason")
    ]


def verdict_of(findings: Sequence[Finding]) -> Json:
    """The result: lines, counts, and one sentence for whoever reads no table."""
    counts = {status: sum(one.status == status for one in findings) for status in (OK, WARN, FAIL)}
    told = ["%s on %s: %s" % (one.check, one.where, one.found) for one in findings if one.status == FAIL]
    sentence = "%d of %d checks must be mended: %s." % (
        counts[FAIL],
        len(findings),
        "; ".join(one.rstrip(".") for one in told[:8]),
    )
    return {
        "fit": not counts[FAIL],
        "counts": counts,
        "findings": [one.to_json() for one in findings],
        "message": "The agents are fit." if not counts[FAIL] else sentence,
    }
