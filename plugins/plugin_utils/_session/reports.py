# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reports of the agents of a play: the state of each engine, and why an agent does not answer. Lists from the head."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Collection, Dict, Iterable, List, Mapping, Sequence, Set, Tuple

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ...module_utils._shared.codec import Json, subset
from ...module_utils._shared.constants import STATE_DIR
from ...module_utils._shared.documents import validation
from ...module_utils._shared.documents.findings import names_of_one_engine, one_engine
from ...module_utils._shared.documents.plan import Plan
from ...module_utils._shared.documents.report import AgentReport
from ...module_utils._shared.documents.schema import AGENT
from ...module_utils._shared.documents.view import SessionList
from ...module_utils._shared.errors import ComputeError, Failure, InputError, StateError
from ...module_utils._shared.names import ALL_OWNERS
from ...module_utils._shared.planning.catalogue import lacks
from .._hosts.conductor import Play, StepError
from .._hosts.documented import documented
from .._hosts.holder import login
from .._hosts.results import UNREACHABLE, root_cause
from .._hosts.ssh_route import plugin_of
from .._hosts.steps import REPORT_COLLECT, SESSIONS_LIST_ALL

# The variables of a host that become options of its report. Without a variable, the option has its default.
_OF_HOST: Mapping[str, str] = {
    "group": "agent_resource_group",
    "schedulable": "agent_schedulable",
    "reserved_cpus": "agent_reserved_cpus",
    "reserved_memory": "agent_reserved_memory",
    "cpus": "agent_cpus",
    "memory": "agent_memory",
    "gpus": "agent_gpus",
    "gpu_sharing": "agent_gpu_sharing",
    "mps_directory": "agent_mps_directory",
    "fabric": "agent_fabric",
}

_ODD_NAME = (
    "Its name in the inventory has other characters than letters, digits, '.', '_', '-', ':' and '@', or too many; "
    "give it another name, and set ansible_host to its address."
)
_MOVED = (
    "%s has %s in its session store, and the head of this command, %s, has none: name %s in group head of the inventory. If the head "
    "is to move, end the sessions first, and remove the store and the policy on %s (docs/agents.md)."
)
# Seconds for which launches one after the other use the report of an agent on which none of them has done anything.
RECENT = 30.0


@dataclass(frozen=True)
class Exclusions:
    """Agents, subnets and ports that earlier attempts have ruled out.

    Subnets and ports are those at which earlier attempts of this launch have failed. ``agents`` has the reason for each agent
    that gets no new session.
    """

    subnets: Tuple[str, ...] = ()
    ports: Tuple[int, ...] = ()
    agents: Mapping[str, str] = field(default_factory=dict)

    def excluding(self, plan: Plan) -> Exclusions:
        """Also the subnets and the ports of a plan that were taken."""
        ports = tuple(port.host_port for container in plan.containers for port in container.ports)
        subnets = filter(None, (plan.network.subnet, plan.network.fabric))
        return Exclusions((*self.subnets, *subnets), (*self.ports, *ports), self.agents)

    def apply_to(self, report: AgentReport) -> AgentReport:
        """The report of an agent on which these are in use."""
        if report.name in self.agents:
            report = replace(report, avoid=self.agents[report.name])
        if not self.subnets:
            return report
        return replace(report, routes=(*report.routes, *self.subnets), ports=(*report.ports, *self.ports))


@dataclass(frozen=True)
class Reports:
    """The reports of the agents, in the order of the play, and what each agent lacks that a launch can supply first."""

    agents: Sequence[AgentReport]
    lacks: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @cached_property
    def documents(self) -> List[Json]:
        """The reports for a step."""
        return [agent.to_json() for agent in self.agents]

    @property
    def reachable(self) -> List[str]:
        return [agent.name for agent in self.agents if agent.reachable]

    def check_names(self) -> None:
        """Refuse an engine under two names: it would be given twice what it has."""
        groups = names_of_one_engine((agent.name, agent.engine.identity) for agent in self.agents)
        if groups:
            raise StateError(". ".join(": ".join(one_engine(names)) for names in groups) + ".", groups[0][1])

    def updated(self, newer: Reports) -> Reports:
        """These reports, of which some are replaced by newer ones."""
        replaced = {agent.name: agent for agent in newer.agents}
        agents = [replaced.get(agent.name, agent) for agent in self.agents]
        return Reports(agents, {**self.lacks, **newer.lacks})

    def have_only_networks_of(self, sessions: Collection[str]) -> bool:
        """Return whether nothing is left of these ended sessions but networks: an earlier command has waited for their endpoints."""
        seen = {container.session for agent in self.agents for container in agent.containers}
        return bool(sessions) and not seen & set(sessions)


def collect_reports(
    play: Play,
    image: str = "",
    folders: Sequence[str] = (),
    *,
    apps_of: List[str] | None = None,
    measure: bool = False,
    is_shown: bool = True,
    hosts: Sequence[str] | None = None,
) -> Reports:
    """The report of every agent of the play, with this image and these data folders. A lost agent prevents no session on others.

    ``apps_of`` names the sessions whose apps count; without it, the apps of all do.
    """
    wanted = {"image": image or None, "paths": list(folders) or None, "measure": measure or None, "apps_of": apps_of}
    names = play.names if hosts is None else hosts
    asked = {host: report_options({**_asked_of(play, host), **_set(wanted)}) for host in names}
    with play.phase("inform") if is_shown else nullcontext():
        own = play.state_dir or STATE_DIR
        answers = play.try_on_each(names, lambda host: REPORT_COLLECT(options=asked[host], store=own))
    _check_head(play.head, answers)
    found = {host: answered(asked[host], answer) for host, answer in answers.items()}
    return Reports([one.agent for one in found.values()], {host: one.lacks for host, one in found.items()})


def _check_head(head: str, answers: Mapping[str, Json | Failure]) -> None:
    """Refuse a head that has no session and no policy if another agent has: the inventory has named that one before."""
    found = {
        host: validation.store(answer, host) for host, answer in answers.items() if not isinstance(answer, Failure)
    }
    own = found.get(head)
    for host, other in found.items():
        sessions = other["sessions"] if own and not own["sessions"] else 0
        has_policy = bool(own and other["policy"] and not own["policy"])
        if own and (sessions or has_policy):
            known = [
                *([f"sessions that wait or run ({sessions})"] if sessions else []),
                *(["a policy"] if has_policy else []),
            ]
            raise StateError(_MOVED % (host, " and ".join(known), head, host, host), head)


class RecentReports:
    """Reports for launches and ends one after the other: each asks only the agents again that those before it have used.

    The head decides by the session store, too, which has what other commands launch and end meanwhile.
    """

    def __init__(self, play: Play, apps_of: List[str] | None = None) -> None:
        self._play = play
        self._apps_of = apps_of
        self._known: Dict[Tuple[str, ...], Tuple[float, Reports, Set[str]]] = {}

    def of(self, image: str, folders: Sequence[str]) -> Reports:
        """The reports of all agents with this image and these data folders."""
        key = (image, *folders)
        end, reports, used = self._known.get(key, (0.0, Reports([]), set()))
        if end < time.monotonic():
            reports = collect_reports(self._play, image, folders, apps_of=self._apps_of)
            end = time.monotonic() + RECENT
        elif used:
            newer = collect_reports(self._play, image, folders, apps_of=self._apps_of, hosts=sorted(used))
            reports = reports.updated(newer)
        self._known[key] = (end, reports, set())
        return reports

    def note_use(self, agents: Iterable[str]) -> None:
        """A launch or an end has changed something on these agents. Those outside of the play are not asked at all."""
        names = [agent for agent in agents if agent in self._play.names]
        for _end, _reports, used in self._known.values():
            used.update(names)

    def forget(self) -> None:
        """Anything may have changed on any agent."""
        self._known.clear()


def report_options(given: Json) -> Json:
    """The options of M(cluster.compute.agent_info) in their types. Raises ComputeError if one is wrong."""
    checked = ArgumentSpecValidator(documented("agent_info")).validate(given)
    if checked.error_messages:
        raise ComputeError(f"Options of agent_info for {given.get('name')}: {checked.error_messages[0]}")
    return dict(checked.validated_parameters)


@dataclass(frozen=True)
class Answer:
    """The report in a host's answer, with what the host lacks. Without one, it is made here: ``lost`` is what is known then."""

    agent: AgentReport
    lacks: Sequence[str]
    lost: Json | None = None


def answered(asked: Json, result: Json | Failure) -> Answer:
    """The answer of a host to C(report.collect) with these options.

    A lost connection may come back. A module that fails, for example without a library, fails again until the host is repaired.
    """
    if isinstance(result, Failure):
        if result.code == InputError.code:
            raise StepError(result)
        return _lost(asked, root_cause(result), may_return=result.code == UNREACHABLE)
    if not AGENT(asked["name"]):
        return _lost(asked, _ODD_NAME)
    try:
        report = validation.report(result.get("agent"), str(asked["name"]))
    except ComputeError as error:
        # An agent whose report is refused gets nothing, and delays no session elsewhere.
        return _lost(asked, root_cause(error.failure))
    return Answer(report, lacks(report))


def _lost(asked: Json, reason: str, *, may_return: bool = False) -> Answer:
    """A host without a report. One that Ansible cannot connect to cannot be provisioned."""
    groups = asked.get("group") or "default"
    group = groups if isinstance(groups, str) else ",".join(groups)
    report = AgentReport(asked["name"], reachable=False, reason=reason, may_return=may_return, group=group)
    known = {"agent": subset(report, "name", "group", "reachable", "may_return", "reason")}
    if may_return:
        return Answer(report, [], {**known, "connected": False})
    return Answer(report, lacks(report), known)


def _asked_of(play: Play, host: str) -> Json:
    found: Json = {option: play.of_host(host, variable) for option, variable in _OF_HOST.items()}
    is_here = plugin_of(play.of_host(host, "ansible_connection"), play.action._task.connection) == "local"
    publish = play.of_host(host, "agent_publish")
    found["publish"] = publish if publish is not None else ("127.0.0.1" if is_here else "")
    return _set({**found, "name": host, "address": str(play.of_host(host, "ansible_host") or host)})


def _set(options: Json) -> Json:
    return {name: value for name, value in options.items() if value is not None}


def read_list(play: Play, agents: Sequence[Json], wanted: Json, owner: str) -> SessionList:
    """The head's list of the sessions of an owner; without an owner, of the current user."""
    return validation.arrived(SessionList, list_document(play, agents, wanted, owner), "answer", play.head)


def list_document(play: Play, agents: Sequence[Json], wanted: Json, owner: str) -> Json:
    """The list as C(session_info) returns it, from reports or results of C(agent_info)."""
    reports = [dict(agent.get("agent") or agent) for agent in agents]
    whose = None if owner == ALL_OWNERS else owner or login()
    asked = {name: value for name, value in wanted.items() if value is not None and name not in ("agents", "owner")}
    return play.on_head(SESSIONS_LIST_ALL(agents=reports, viewer=login(), owner=whose, **asked))
