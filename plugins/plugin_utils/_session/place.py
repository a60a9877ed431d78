# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Place a session: the head decides by the reports of the agents, again and again while the session waits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from ansible.utils.vars import load_extra_vars

from ...module_utils._agent.guard import unguarded
from ...module_utils._shared.codec import Json
from ...module_utils._shared.documents.decision import Decision
from ...module_utils._shared.documents.plan import Plan
from ...module_utils._shared.errors import ComputeError, PendingError, StateError
from ...module_utils._shared.planning.plan import with_user_environment
from ...module_utils._shared.planning.secret_rules import SECRETS
from ...module_utils._shared.text.summaries import summary
from ...module_utils._shared.waiting import deadline_in, wait_until
from .._client.request_cache import KeptRequests, StaleSessionDirs
from .._client.secret_values import read_secrets, secret_files
from .._client.session_dir import Artifacts
from .._hosts import notification
from .._hosts.call import Call
from .._hosts.conductor import Play
from .._hosts.holder import has_exited, lease_owner
from .._hosts.steps import SESSION_PLACE
from .._settings.settings import KEPT
from .._variables.templates import render_environment
from .agreement import check_agreement
from .deployment import lease_seconds
from .launch_spec import Launch, LaunchSpec
from .record import keep_result, record_session
from .reports import Exclusions, Reports, collect_reports

# Seconds between two attempts of a session that waits; they grow from the first number to the second.
_INTERVAL = 2.0
_LONGEST_INTERVAL = 10.0
UNGUARDED = (
    "%s: the rules are missing that keep containers from sending frames into overlay networks, or are for another port than the "
    "Swarm's: run provision_agents.yml as a user who can become root, which installs them."
)


def place_session(play: Play, asked: LaunchSpec, reports: Reports, avoided: Exclusions) -> Launch:
    """Ask the head until the session has a place, or until it has waited long enough."""
    kept, artifacts = KeptRequests(play.artifacts), Artifacts(play.artifacts, asked.request.name)
    asked, files = _with_variables_of_now(play, asked, kept)
    folders = StaleSessionDirs.of(play.artifacts, check=play.check)
    before = artifacts.session
    lease = lease_seconds(asked.request, reports.agents, asked.settings.launch_timeout)
    question = _Question(asked, lease, before, folders.sessions)
    play.session = asked.request.name
    with play.phase("place"):
        decision, reports = _until_placed(play, question, reports, avoided)
    play.warn(*folders.remove(decision.ended_folders))
    if not play.check:
        _keep_or_undo(play, kept, (asked, files), decision)
        if decision.outcome == "placed":
            artifacts.remove(before)
        if decision.has_next_command:
            keep_result(artifacts, "", "")
    # A queued session that cannot be launched, and sessions that have ended by themselves.
    if decision.outcome == "failed":
        play.notify(notification.FAILED, decision.session)
    play.notify_ends(decision.ended)
    _refuse_pending(play, asked, decision)
    placed = Launch(asked, decision)
    return _with_plan(play, placed, decision.plan, reports) if decision.plan else placed


def _refuse_pending(play: Play, asked: LaunchSpec, decision: Decision) -> None:
    """Raise PendingError if the session waits, and the command is to fail then. The session stays in the queue."""
    seconds = _patience(play, asked)
    if decision.outcome != "pending" or asked.queued or not (seconds or asked.settings.fail_when_pending):
        return
    still = f"still PENDING after {seconds:g} s" if seconds else "PENDING"
    raise PendingError(f"Session {decision.session.name} is {still}: {decision.reason}.")


def _patience(play: Play, asked: LaunchSpec) -> float:
    return 0.0 if play.check or asked.queued else asked.settings.wait


@dataclass(frozen=True)
class _Question:
    """What this run asks the head about a session, with each new report of the agents."""

    asked: LaunchSpec
    lease: int
    kept: str
    folders: Sequence[str]

    def call(self, agents: Sequence[Json], queued: str, takeover: str = "") -> Call[Decision]:
        asked, settings = self.asked, self.asked.settings
        return SESSION_PLACE(
            request=asked.request,
            agents=agents,
            holder=lease_owner(),
            queue_policy=settings.queue_policy,
            queue_age_bound=settings.queue_age_bound,
            lease=self.lease,
            kept=self.kept,
            folders=self.folders,
            takeover=takeover,
            queued=queued,
            relocates=asked.relocates,
            refuse_impossible=settings.refuse_impossible,
            before=asked.before,
            policy=settings.policy,
        )


def _with_variables_of_now(play: Play, asked: LaunchSpec, kept: KeptRequests) -> Tuple[LaunchSpec, Mapping[str, str]]:
    """The request with what the command line changes in it, and the paths of its secrets.

    They are those of the kept request if the session was queued. Every secret is read before anything is placed: a session without
    its secrets would fail at its start.
    """
    request = asked.request
    if asked.queued and not asked.is_checked:
        kept.check(asked.queued, request, play.head)
    secrets = play.value(SECRETS)
    files = kept.files(asked.queued) if asked.queued else secret_files(request.secrets, secrets)
    read_secrets(request.secrets, secrets, play.action._loader, files)
    given = _given_now(play) if asked.takes_variables else {}
    return replace(asked, request=replace(request, **given)), files


def _given_now(play: Play) -> Dict[str, Any]:
    """Variables that a waiting session keeps, if the command line of this run has other values, and the task has none."""
    extra_vars = load_extra_vars(play.action._loader)
    names = {name for name, value in extra_vars.items() if value not in (None, "")}.difference(play.action.given)
    given = [variable for variable in KEPT if variable.full_name in names]
    templar = play.action._templar
    return {
        variable.field: variable.normal_form(templar.template(extra_vars[variable.full_name])) for variable in given
    }


def _keep_or_undo(
    play: Play, kept: KeptRequests, own: Tuple[LaunchSpec, Mapping[str, str]], decision: Decision
) -> None:
    """Keep the request. If this controller cannot, the session neither waits nor holds anything until its lease is over."""
    try:
        _keep_request(kept, *own, decision)
    except ComputeError as error:
        session = decision.session
        if decision.outcome in ("placed", "pending", "repair"):
            record_session(play, "failed", id=session.id, launch=session.launch, reason=error.message, retry=False)
        raise


def _keep_request(kept: KeptRequests, asked: LaunchSpec, files: Mapping[str, str], decision: Decision) -> None:
    """Keep a request until its session ends. One of the store is never taken for one of this controller."""
    if decision.outcome == "failed":
        kept.forget(decision.session.id)
    elif not asked.queued or asked.is_checked:
        kept.keep(decision.session.id, asked.request, files)


def _until_placed(play: Play, question: _Question, reports: Reports, avoided: Exclusions) -> Tuple[Decision, Reports]:
    """The decision, made again by new reports while the session waits, and the reports that decided."""

    asked, found = question.asked, list[tuple[Decision, Reports]]()

    def is_decided() -> bool:
        used, queued = reports, asked.queued
        if found:
            own = [asked.request.name]
            used = collect_reports(play, asked.request.image, asked.folders, apps_of=own, is_shown=False)
            queued = queued or ("" if play.check else found[0][0].session.id)
        agents = [avoided.apply_to(report).to_json() for report in used.agents]
        found[:] = [(_attempt(play, question, agents, queued), used)]
        return found[0][0].outcome != "pending"

    wait_until(is_decided, deadline_in(_patience(play, asked)), _INTERVAL, _LONGEST_INTERVAL)
    return found[0]


def _attempt(play: Play, question: _Question, agents: Sequence[Json], queued: str) -> Decision:
    """A decision of the head. A session that another controller holds is taken over if that controller has certainly ended."""
    decision = play.on_head(question.call(agents, queued))
    holder = decision.session.holder
    if decision.outcome == "held" and holder and has_exited(holder):
        decision = play.on_head(question.call(agents, queued, takeover=decision.session.launch))
    if decision.outcome == "held":
        reason = decision.reason
        raise StateError("%s; wait for it, or terminate it with terminate.yml." % (reason[:1].upper() + reason[1:]))
    return decision


def _with_plan(play: Play, placed: Launch, plan: Plan, reports: Reports) -> Launch:
    """The decision with its plan, which is compared with the request."""
    request, decision = placed.asked.request, placed.decision
    check_agreement(plan, request, [agent.name for agent in reports.agents], play.head)
    plan = with_user_environment(plan, render_environment(request, plan))
    if (decision.outcome == "placed" or decision.former_size) and plan.network.driver == "overlay":
        # Other containers on these agents could send frames into its network.
        lacking = unguarded(reports.agents, plan.agents)
        play.warn(UNGUARDED % ", ".join(lacking) if lacking else "")
    return replace(placed, plan=plan, agents=reports.agents)


def show_place(play: Play, placed: Launch, found: Mapping[str, Any] = MappingProxyType({})) -> List[str]:
    """The report of a launch for people. ``found`` is what was found of a session that lacks nothing."""
    if placed.plan:
        decision = replace(placed.decision, plan=placed.listed(placed.plan))
        address = play.address_of(placed.plan.main.agent)
        return summary(decision, play.artifacts, play.check, address, found)
    return summary(placed.decision, play.artifacts, play.check) if placed.decision.outcome == "pending" else []
