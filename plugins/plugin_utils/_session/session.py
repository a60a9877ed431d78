# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The desired state of sessions: launched and complete, restarted in place, or ended with nothing left."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import List, Mapping, Sequence

from ...module_utils._shared.codec import Json, ModuleResult
from ...module_utils._shared.documents import validation
from ...module_utils._shared.documents.plan import Plan
from ...module_utils._shared.errors import ComputeError, InputError, SessionError, escape_control
from ...module_utils._shared.planning import catalogue
from ...module_utils._shared.planning.allocation import checked_folders
from ...module_utils._shared.planning.request import Request
from ...module_utils._shared.planning.rules import is_name_pattern
from ...module_utils._shared.planning.variable import RESTART, SCHEDULE, TERMINATE
from ...module_utils._shared.text.summaries import plan_to_read
from .._client.session_dir import DOCUMENT, Artifacts
from .._hosts.conductor import Play
from .._settings.agent_checks import AgentChecks
from .._variables.request_export import variables_of
from .._variables.request_variables import LaunchVariables, checked_settings, launch_variables
from .apps import restart_apps
from .devcontainer import of_devcontainer
from .launch import LaunchResult, launch
from .launch_spec import Launch, LaunchSpec
from .place import UNGUARDED
from .reports import RecentReports, Reports, collect_reports
from .resize import asked_again, size_change
from .session_file import like, running_session
from .start import stop_containers
from .terminate import terminate, terminate_matching

_BARE = "Not an agent yet: %s. The launch sets this up first; only then is there a plan to show."
_ENDS = "must not be a session with session_on_failure: terminate, which ends when a container stops"


def launch_session(play: Play, *, prepares: bool, checks: AgentChecks) -> ModuleResult:
    """Launch the sessions of the variables, repair them, or find that nothing is missing.

    With ``prepares``, nothing is launched while the playbook has something to prepare: the result has C(unprepared) then. ``checks``
    is the result of a check of the agents.
    """
    other = of_devcontainer(play) or like(play)
    with play.phase("check"):
        found = launch_variables(play.action, other)
    requests, queued, is_resize = list(found.requests), "", found.settings.scale
    if is_resize:
        again, queued = asked_again(play, requests[0].name, requests[0].size)
        requests = [again]
    recent = RecentReports(play, [request.name for request in requests])
    paths = checked_folders(requests[0])
    reports = recent.of(requests[0].image, paths)
    result = {"changed": False, "unprepared": False, "names": [request.name for request in requests]}
    bare = _bare(play, found, reports) if prepares else []
    if bare:
        play.show([_BARE % ", ".join(bare)])
        return {**result, "changed": True, "sessions": []}
    lacking = _to_prepare(play, found, requests[0], reports) if prepares else {}
    if any(lacking.get(name) for name in ("provision", "environment", "preflight")):
        return {**result, **lacking, "unprepared": True}
    unfit = _unfit(play, checks)
    launched: List[LaunchResult] = []
    for number, request in enumerate(requests):
        asked = LaunchSpec(request, found.settings, queued, unfit, not is_resize, is_resize)
        # Nothing of them is recorded.
        asked = replace(asked, before=tuple(requests[:number])) if play.check else asked
        launched.append(launch(play, asked, recent.of(request.image, paths)))
        launched[-1].note_in(recent)
    return {
        **result,
        "changed": any(one.changed for one in launched),
        "sessions": [one.placed.decision.session.data for one in launched],
        **_document(play, launched[0]),
        **_planned(play, launched),
        **_differences(play, launched, found.origins),
    }


def _document(play: Play, launched: LaunchResult) -> Json:
    """The document of the first session, if it runs."""
    if launched.placed.plan is None or play.check:
        return {}
    artifacts = Artifacts(play.artifacts, launched.placed.plan.session.name)
    content = artifacts.read(DOCUMENT)
    path = f"{artifacts.folder}/{DOCUMENT}"
    return {"session": validation.session_document(content, path).to_json()} if content else {}


def _bare(play: Play, found: LaunchVariables, reports: Reports) -> List[str]:
    """The hosts that a launch makes agents first, if no host is one yet. Check mode makes none, and has no plan then."""
    if not play.check or not found.settings.provision or reports.reachable:
        return []
    return [host for host, lacking in reports.lacks.items() if lacking]


def _to_prepare(play: Play, found: LaunchVariables, request: Request, reports: Reports) -> Json:
    """Return what the playbook prepares before a launch; nothing in check mode, or if the user does not want it."""
    lacks = reports.lacks
    if play.check or not found.settings.provision:
        lacks = {}
    has_image = any(agent.image.present for agent in reports.agents)
    return {
        "provision": [host for host, lacking in lacks.items() if "agent" in lacking],
        "environment": catalogue.built_by(request.image) if any(lacks.values()) and not has_image else "",
        "preflight": found.settings.preflight and not play.check,
        "last_check": asdict(found.last_check) if found.last_check else None,
    }


def _unfit(play: Play, checks: AgentChecks) -> Mapping[str, str]:
    """The reason for each agent that failed a check. Names these agents, and those whose containers reach overlays.

    The latter are not avoided: the rules need root, which not every inventory has. Raises ComputeError if no agent is left.
    """
    when = f" (checked {checks.age} ago)" if checks.age else ""
    for agent, reason in sorted(checks.unfit.items()):
        play.say(escape_control(f"{agent} is avoided{when}: {reason}"))
    if checks.unguarded:
        play.say(escape_control(UNGUARDED % ", ".join(checks.unguarded)))
    if checks.unfit and not set(play.names) - set(checks.unfit):
        reason = next(iter(checks.unfit.values()))
        raise ComputeError(f"No agent passes the check: {reason}; check_agents.yml shows all findings and remedies.")
    return checks.unfit


def _planned(play: Play, launched: List[LaunchResult]) -> Json:
    """In check mode, the plan of a single session, for a playbook that carries it out itself."""
    plans = [one.placed.plan for one in launched if one.placed.plan]
    return {"plan": plans[0].to_json()} if play.check and len(plans) == len(launched) == 1 else {}


def _differences(play: Play, launched: List[LaunchResult], origins: Mapping[str, str]) -> Json:
    pairs = [(one.placed, one.placed.plan) for one in launched if one.placed.deploys and one.placed.plan]
    if not play.diff or not pairs:
        return {}
    return {"diff": [part for placed, plan in pairs for part in _difference(placed, plan, origins)]}


def _difference(placed: Launch, plan: Plan, origins: Mapping[str, str]) -> List[Json]:
    """The variables that have not their default, with where each comes from, and the plan."""
    if placed.decision.former_size:
        return [size_change(placed, plan)]
    lines = [
        escape_control(f"{name}: {json.dumps(value, ensure_ascii=False)}    # {origins[name]}").replace("\n", "\\n")
        + "\n"
        for name, value in variables_of(placed.asked.request).items()
        if name in origins
    ]
    variables = {"before": "", "after": "".join(lines), "after_header": "variables, and where each comes from"}
    return [variables, {"before": {}, "after": plan_to_read(plan), "after_header": "plan"}]


def terminate_session(play: Play) -> ModuleResult:
    """End the session of the variable C(session_name), or all that match it."""
    with play.phase("check"):
        settings = checked_settings(play.action, TERMINATE)
    name, lease = str(play.value("session_name")), settings.launch_timeout
    if is_name_pattern(name):
        ended = terminate_matching(play, name, many=settings.many, lease=lease)
    else:
        ended = [terminate(play, name, play.owner, lease)]
        play.show([ended[0].summary])
    if play.waiting and not play.check:
        line = "The end is complete. Sessions that wait: %d. A pass over the queue now launches what fits, as schedule.yml does."
        play.show([line % play.waiting])
    sessions = [one.session.data for one in ended if one.session]
    return {"changed": any(one.changed for one in ended), "sessions": sessions}


def restart(play: Play) -> ModuleResult:
    """Restart C(session_restart_containers), which may be all, or the app C(session_restart_app). Raises SessionError."""
    with play.phase("check"):
        wanted = checked_settings(play.action, RESTART)
        settings = checked_settings(play.action, SCHEDULE)
    name, app = str(play.value("session_name")), wanted.restart_app
    found = running_session(play)
    if not app and found.on_failure == "terminate":
        raise InputError("session_name", name, _ENDS)
    settings = replace(settings, wait_result=False)
    asked = LaunchSpec(found.request, settings, queued=found.id, takes_variables=False, is_silent=True)
    # What does not run is repaired first: the restart is then about containers that run.
    launched = _repaired(play, asked)
    plan = launched.placed.plan
    if plan is None:
        raise SessionError(f"Session {name} was not restarted: it does not run.")
    if app:
        restart_apps(play, plan, [app], asked.request.apps_timeout)
        play.show([f"Session {name}: app {app} {'would be ' if play.check else ''}restarted"])
    else:
        launched = _restarted(play, asked, plan, wanted.restart_containers) or launched
    return {"changed": True, "sessions": [launched.placed.decision.session.data]}


def _restarted(play: Play, asked: LaunchSpec, plan: Plan, hostnames: Sequence[str]) -> LaunchResult | None:
    """Stop the containers, all without names, and repair the session. In check mode, the containers are only named."""
    known = [container.hostname for container in plan.containers]
    unknown = [hostname for hostname in hostnames if hostname not in known]
    if unknown:
        raise InputError(
            "session_restart_containers", unknown[0], f"must be a container of the session: {', '.join(known)}"
        )
    chosen = hostnames or known
    if play.check:
        play.show([f"Session {plan.session.name}: {', '.join(chosen)} would be restarted"])
        return None
    stop_containers(play, replace(plan, containers=tuple(one for one in plan.containers if one.hostname in chosen)))
    return _repaired(play, replace(asked, is_silent=False))


def _repaired(play: Play, asked: LaunchSpec) -> LaunchResult:
    request = asked.request
    return launch(play, asked, collect_reports(play, request.image, checked_folders(request), apps_of=[request.name]))
