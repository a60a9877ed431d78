# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Launch a session, or repair it: every container runs and answers, or nothing of the attempt is left."""

from __future__ import annotations

import traceback
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Iterator, List, Sequence, Tuple

from ...module_utils._shared import states
from ...module_utils._shared.documents.plan import Plan
from ...module_utils._shared.documents.step_documents import LogRequest, Logs
from ...module_utils._shared.errors import ComputeError, SessionError, TakenError
from ...module_utils._shared.planning.batch_result import FAILURE
from .._client.session_dir import Artifacts
from .._hosts import trace
from .._hosts.conductor import Play
from .._hosts.steps import (
    CONTAINERS_ABSENT,
    CONTAINERS_LIMITED,
    FOLDERS_FIND,
    FOLDERS_MARK,
    FOLDERS_UNMARK,
    LOGS_READ,
    NETWORK_ABSENT,
)
from . import resize
from .apps import added_apps, restart_apps
from .batch import run_command
from .deployment import network_host, network_patience, unreachable_agents
from .images import ImageTarget, check_exist, distribute
from .launch_spec import Launch, LaunchSpec
from .losses import clean_up
from .place import place_session, show_place
from .record import record_running, record_session
from .removal import failure_in
from .reports import Exclusions, RecentReports, Reports, collect_reports
from .start import await_apps, create_containers, restore_files, start_containers, stop_containers
from .terminate import remove, terminate
from .verify import confirm, verify

# The logs of a launch that fails: the controller holds them in memory, and nothing is removed before they are read.
_LINES, _BYTES, _SECONDS = 10000, 4 << 20, 10
_UNREACHABLE = "unreachable"
# The head lets a session be placed again three times.
_MOST_ATTEMPTS = 5


class PlacedAgainError(ComputeError):
    """Something outside of the collection holds an address, a port or a name of a plan: the session gets another place."""


@dataclass(frozen=True)
class LaunchResult:
    """The end of a launch. ``changed`` is false if nothing was missing."""

    placed: Launch
    changed: bool

    def note_in(self, reports: RecentReports) -> None:
        """Let the agents that this launch has changed report again before the next launch."""
        if self.placed.decision.remove or self.placed.decision.fenced:
            reports.forget()
        elif self.placed.plan:
            reports.note_use(self.placed.plan.agents)


def launch(play: Play, asked: LaunchSpec, reports: Reports) -> LaunchResult:
    """Place a session and start it, repair it, or find that nothing is missing. Raises SessionError if that fails."""
    reports.check_names()
    avoided, taken = Exclusions(agents=asked.unfit), ""
    for _attempt in range(_MOST_ATTEMPTS):
        placed = place_session(play, asked, reports, avoided)
        if not play.check:
            clean_up(play, reports, placed.decision.fenced)
            remove(play, reports, placed.decision.remove, placed.decision.ended)
        if placed.plan is None:
            return _waiting(play, placed)
        try:
            return _deployed(play, placed, placed.plan)
        except PlacedAgainError as error:
            taken = error.message
            avoided = avoided.excluding(placed.plan)
            reports = collect_reports(play, asked.request.image, asked.folders, apps_of=[asked.request.name])
    raise SessionError(f"Session {asked.request.name} was not launched: {taken}")


def deploy(play: Play, placed: Launch, plan: Plan) -> str:
    """Every step that makes a plan real, in order. Returns where the time went."""
    request, made = placed.asked.request, placed.made(plan)
    prove_folders(play, plan)
    images = ImageTarget.of_session(play, placed, plan)
    check_exist(play, images)
    for wanted in images:
        distribute(play, wanted)
    if placed.decision.former_size:
        # Containers would not trust those that are added with other keys.
        Artifacts(play.artifacts, plan.session.name).known_identity(plan.session.id, plan.session.name)
    if placed.decision.removed:
        resize.remove_strangers(play, placed, plan)
    if placed.makes_containers:
        create_containers(play, plan, network_host(plan, placed.agents, play.head), made)
        start_containers(play, plan, request, made)
    # What starts again as a whole has its files already.
    if placed.decision.outcome == "repair" and len(placed.decision.missing) < len(plan.containers):
        resize.update_members(play, plan)
    verify(play, plan, request.verify_timeout)
    if placed.makes_containers:
        # An app that has ended or failed in a container that stays is no reason to undo the others.
        await_apps(play, made, request.apps_timeout)
    listed = placed.listed(plan)
    added = added_apps(play, plan, listed) if placed.decision.outcome == "repair" else []
    return record_running(play, listed, placed.decision.session.data, added)


@contextmanager
def undoing(play: Play, placed: Launch, plan: Plan) -> Iterator[None]:
    """Remove everything of a launch that fails, record why, and raise SessionError, or PlacedAgainError if another place may do."""
    decision = placed.decision
    try:
        yield
    except Exception as error:
        # Also after a bug: nothing of the launch may stay.
        code = str(getattr(error, "code", ""))
        reason = error.message if isinstance(error, ComputeError) else f"{type(error).__name__}: {error}"
        logs, lost = _remove_launch(play, placed, plan)
        if decision.added:
            resize.undo(play, placed, plan)
        left = [agent for agent in lost if agent in plan.agents]
        if left:
            reason += f" Anything left of it on {', '.join(left)} is removed when that agent answers again."
        # A session that waited keeps its place in the queue if a connection was lost for a moment.
        may_retry = code == TakenError.code or (code == _UNREACHABLE and bool(placed.asked.queued))
        message = _recorded_failure(play, placed, plan, reason, logs, may_retry=may_retry)
        if not message:
            raise PlacedAgainError(reason) from error
        did = "launched" if decision.outcome == "placed" else "changed" if decision.former_size else "repaired"
        failure = SessionError(f"Session {plan.session.name} was not {did}: {message}")
        failure.trace = error.trace if isinstance(error, ComputeError) else traceback.format_exc()
        raise failure from error


def _deployed(play: Play, placed: Launch, plan: Plan) -> LaunchResult:
    """Carry out the plan if something is missing, and show the session."""
    explanation, files, found = "", [], {}
    if placed.deploys and not play.check:
        with undoing(play, placed, plan):
            if placed.decision.restarts_all:
                stop_containers(play, plan)
            explanation = deploy(play, placed, plan)
        play.notify(placed.repair, placed.decision.session)
    elif placed.decision.outcome == "running":
        files = restore_files(play, placed.listed(plan), placed.decision.session.data)
        asks = not play.check and not placed.asked.is_silent
        found = confirm(play, plan, placed.asked.request.verify_timeout) if asks else {}
    if explanation and placed.asked.settings.explain:
        play.show([explanation])
    if placed.deploys or not placed.asked.is_silent:
        play.show(show_place(play, placed, {**found, "restored_files": files}))
    has_changed = _change(play, placed, plan)
    if placed.asked.request.command and not play.check:
        run_to_the_end(play, placed, plan)
    return LaunchResult(placed, bool(placed.decision.changed or files or found.get("refilled") or has_changed))


def _remove_launch(play: Play, placed: Launch, plan: Plan) -> Tuple[List[Logs], Sequence[str]]:
    """Remove the containers and the network of a launch. Returns their logs, and the agents that may still hold something of it."""
    session, is_new = plan.session.id, placed.decision.outcome == "placed"
    own = CONTAINERS_ABSENT(sessions=[session], launch=plan.session.launch)
    with play.phase("undo"):
        wanted = LogRequest(session, tail=_LINES, total=_BYTES, deadline=_SECONDS)
        logs = play.try_on_each(plan.agents, LOGS_READ(wanted=wanted)) if is_new else {}
        failed = [agent for agent, one in play.try_on_each(plan.agents, own).items() if failure_in(one)]
        lost = unreachable_agents(placed.agents, failed)
        if is_new:
            host = network_host(plan, placed.agents, play.head)
            play.try_on_each([host], NETWORK_ABSENT(sessions=[session], deadline=network_patience(lost)))
    return [one for one in logs.values() if isinstance(one, Logs) and one.logs], lost


def _recorded_failure(
    play: Play, placed: Launch, plan: Plan, reason: str, logs: Sequence[Logs], *, may_retry: bool
) -> str:
    """Record why the launch failed, and return it for people; empty if the session waits for another attempt."""
    trace.forget()
    try:
        session = record_session(
            play,
            "failed",
            id=plan.session.id,
            launch=plan.session.launch,
            reason=reason,
            retry=may_retry,
            undone=placed.decision.outcome == "placed",
            logs=[one.to_json() for one in logs],
        ).known
    except ComputeError as error:
        return f"{reason} {error.message}"
    if session.state == states.PENDING:
        return ""
    # Another launch of the same session may have a reason of its own.
    return session.reason if session.launch == plan.session.launch else reason


def _waiting(play: Play, placed: Launch) -> LaunchResult:
    """A session that waits, or that a pass found it cannot launch."""
    if placed.decision.outcome == "failed":
        raise SessionError(placed.decision.reason)
    play.show(show_place(play, placed))
    return LaunchResult(placed, placed.decision.changed)


def _change(play: Play, placed: Launch, plan: Plan) -> bool:
    """Apply new limits to containers that run, and start apps again that have failed; whether anything has changed."""
    has_changed, apps = False, list(placed.decision.failed_apps)
    if placed.must_apply_limits:
        with play.phase("limits"):
            limited = play.on_each(plan.agents, lambda agent: CONTAINERS_LIMITED(plan=plan.part(agent)))
        has_changed = any(one.changed for one in limited.values())
    if apps:
        restart_apps(play, plan, apps, placed.asked.request.apps_timeout)
    return has_changed or bool(apps)


def run_to_the_end(play: Play, placed: Launch, plan: Plan) -> None:
    """Run the command of a batch session, and end the session if it asks for that. Raises SessionError if the command fails."""
    session, asked = plan.session, placed.asked
    result = run_command(play, plan, waits=asked.settings.wait_result, again=placed.decision.restarts_all)
    has_failed = result.result == FAILURE
    if result.result and (session.terminate_when_done or (has_failed and session.on_failure == "terminate")):
        ended = terminate(play, session.name, session.owner, asked.settings.launch_timeout, session_id=session.id)
        play.show([ended.summary])
    if has_failed:
        message = (
            f"Session {session.name} failed: {result.reason}. Logs: session_logs.yml -e session_name={session.name}"
        )
        raise SessionError(message)


def prove_folders(play: Play, plan: Plan) -> None:
    """Mark the folders on the agent of ``main1``, and look for the marks on the others. Raises StepError if one is not seen."""
    mounts = [mount for mount in plan.session.mounts if mount.type == "bind"]
    main, *others = plan.agents
    if not mounts or not others:
        return
    folders = list(dict.fromkeys(mount.source for mount in mounts))
    writable = list(dict.fromkeys(mount.source for mount in mounts if mount.mode == "rw"))
    token, user, permitted = plan.session.launch, plan.session.user, list(plan.session.permitted_folders)
    with play.phase("folders"):
        try:
            mark = FOLDERS_MARK(
                folders=folders, token=token, uid=user.uid, gid=user.gid, writable=writable, permitted=permitted
            )
            find = FOLDERS_FIND(marks=play.on(main, mark)["marks"], token=token)
            play.on_each(others, find)
        finally:
            play.try_on_each([main], FOLDERS_UNMARK(folders=folders, token=token, permitted=permitted))
