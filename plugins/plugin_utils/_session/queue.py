# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A pass over the queue of an owner: end what has finished, repair what asks for it, and launch what fits."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import replace
from typing import Iterator, List, Sequence

from ...module_utils._head.session_view import finished_sessions, sessions_to_repair
from ...module_utils._shared.codec import Json
from ...module_utils._shared.constants import RELOCATE
from ...module_utils._shared.documents import validation
from ...module_utils._shared.documents.decision import BegunPass, Loss, QueueRound
from ...module_utils._shared.documents.view import SessionView
from ...module_utils._shared.errors import ComputeError, SessionError
from ...module_utils._shared.exits import LOST, UNMOVED
from ...module_utils._shared.planning.variable import SCHEDULE
from .._client.request_cache import KeptRequests, NotRequestedError, StaleSessionDirs
from .._hosts import notification
from .._hosts.conductor import Play
from .._hosts.holder import has_exited, lease_owner, login
from .._hosts.steps import QUEUE_BEGIN, QUEUE_DECIDE, QUEUE_END, QUEUE_MAINTAIN
from .._settings.settings import Settings
from .._variables.request_variables import checked_settings
from .launch import launch
from .launch_spec import LaunchSpec
from .losses import clean_up, fence_nodes
from .metrics_file import write_metrics
from .reports import RecentReports, Reports, collect_reports, read_list
from .session_file import RequestedSession, checked_sessions
from .terminate import remove, terminate


def make_pass(play: Play) -> bool:
    """Go through the queue once; whether any session changed. SessionError for all that failed, which keep no others from a turn."""
    settings = checked_settings(play.action, SCHEDULE)
    one = _Pass(play, settings, follows=False)
    one.make()
    return one.has_changed


def follow_up(play: Play) -> None:
    """Launch what may fit after an end.

    The variables of this command line belong to the session that has ended, and a failure of another session is no failure of that
    end.
    """
    try:
        settings = checked_settings(play.action, SCHEDULE)
        _Pass(play, replace(settings, wait_result=False), follows=True).make()
    except ComputeError as error:
        play.show([f"The pass over the queue was not complete: {error.message}"])


class _Pass:
    """``follows``: the command line is about a session that has ended, not about those of the queue."""

    def __init__(self, play: Play, settings: Settings, *, follows: bool) -> None:
        self._play = play
        self._settings = settings
        self._follows = follows
        self._owner = play.owner or login()
        self._failures: List[str] = []
        self._recent = RecentReports(play)
        self.has_changed = False

    def make(self) -> None:
        begun = self._begun()
        self._play.show(begun.summary)
        if not begun.begun:
            return
        try:
            self._go_through()
        finally:
            with self._play.phase("upkeep"):
                self._play.on_head(QUEUE_END(owner=self._owner, holder=lease_owner()))
        with self._keeping_failure():
            self._write_metrics()
        if self._failures:
            raise SessionError(" ".join(self._failures))

    def _begun(self) -> BegunPass:
        """Begin the pass. The pass of a controller that has certainly ended is taken over."""
        lease = self._settings.launch_timeout

        def begin(*, takeover: bool) -> BegunPass:
            call = QUEUE_BEGIN(owner=self._owner, holder=lease_owner(), lease=lease, takeover=takeover)
            return self._play.on_head(call)

        with self._play.phase("upkeep"):
            begun = begin(takeover=False)
            return begin(takeover=True) if begun.holder and has_exited(begun.holder) else begun

    def _decided(self, tried: List[str], agents: List[Json]) -> QueueRound:
        """Return what the head decides about the sessions that wait."""
        call = QUEUE_DECIDE(
            owner=self._owner,
            holder=lease_owner(),
            agents=agents,
            tried=tried,
            queue_policy=self._settings.queue_policy,
            queue_age_bound=self._settings.queue_age_bound,
            lease=self._settings.launch_timeout,
        )
        with self._play.phase("place"):
            decided = self._play.on_head(call)
        self._play.notify_ends(decided.ended)
        self.has_changed = self.has_changed or bool(decided.ended)
        return decided

    def _go_through(self) -> None:
        play = self._play
        reports = collect_reports(play, measure=True)
        listed = self._listed(reports)
        lost: Sequence[Loss] = ()
        with self._keeping_failure():
            lost = self._keep_order(reports)
        finished = {session.id: session for session in self._finished(listed)}
        # If a session that has ended by itself has also lost an agent, its own end is the reason.
        ends = [loss for loss in lost if loss.action == "end" and loss.id not in finished]
        for loss in ends:
            self._end(loss.name, loss.owner, loss.id, LOST + loss.reason)
        for over in finished.values():
            self._recent.note_use(over.agents)
            self._end(over.name, over.owner, over.id)
        # Before the queue, which gets what they do not need.
        own = [session for session in listed if session.requested_here]
        healing = [*self._fenced(own, lost, reports), *self._requested(sessions_to_repair(own))]
        for session in healing:
            self._launch(session)
        self._launch_what_fits(self._recent.of("", ()) if healing or ends or finished else reports)

    def _end(self, name: str, owner: str, identity: str, why: str = "") -> None:
        with self._keeping_failure():
            lease = self._settings.launch_timeout
            self._play.show([terminate(self._play, name, owner, lease, why, self._recent, identity).summary])
            self.has_changed = True

    def _finished(self, listed: List[SessionView]) -> List[SessionView]:
        """The sessions to end, after a second look: what a launch or a growth has made after the first reports is not missing.

        What another controller changes is left to it.
        """
        ids = {session.id for session in finished_sessions(listed)}
        again = self._listed(self._recent.of("", ())) if ids else []
        left = (one for one in finished_sessions(again) if one.id in ids)
        return [one for one in left if not one.held or (one.holder and has_exited(one.holder))]

    def _fenced(self, own: List[SessionView], lost: Sequence[Loss], reports: Reports) -> List[RequestedSession]:
        """The sessions that move now: their lost agents are fenced."""
        moving = {loss.id for loss in lost if loss.action == RELOCATE}
        by_id = {one.id: one for one in self._requested([one for one in own if one.id in moving and one.request])}
        found = []
        for loss in lost:
            if loss.action == "stay":
                self._play.show([f"Session {loss.name} was {loss.reason}."])
            if loss.action != RELOCATE or loss.id not in by_id or self._play.check:
                continue
            try:
                fence_nodes(self._play, reports, loss, unfenced=self._settings.relocate_unfenced)
                found.append(replace(by_id[loss.id], relocates=True))
            except ComputeError as error:
                self._play.show([f"Session {loss.name} was {UNMOVED}{error.message}"])
        return found

    def _requested(self, sessions: Sequence[SessionView]) -> List[RequestedSession]:
        """The sessions that this controller has requested as the store has them. The others are left alone, and each is shown."""
        kept, found = KeptRequests(self._play.artifacts), []
        known, refused = checked_sessions(sessions, self._play.head)
        self._play.warn(*refused)
        for session in known:
            try:
                kept.check(session.id, session.request, self._play.head)
                found.append(session)
            except ComputeError as error:
                self._left_alone(session, error)
        return found

    def _left_alone(self, session: RequestedSession, error: ComputeError) -> None:
        """A changed request of a session that waits is a failure; one of another controller is no part of this pass."""
        if session.waits and not isinstance(error, NotRequestedError):
            self._failures.append(f"{session.name}: {error.message}")
        else:
            self._play.show([error.message])

    def _write_metrics(self) -> None:
        """Write what the pass leaves behind. A command about another session does not write it: that user may not be permitted to."""
        path = "" if self._follows else self._settings.sessions_metrics
        if path:
            agents = collect_reports(self._play, measure=True).documents
            self.has_changed = write_metrics(self._play, path, agents) or self.has_changed

    def _listed(self, reports: Reports) -> List[SessionView]:
        """The sessions. One is overdue by the clocks of the head and of this machine: one that is ahead ends none."""
        with self._play.phase("upkeep"):
            listed = read_list(self._play, reports.documents, {"whole_requests": True}, self._play.owner).sessions
        now = time.time()
        return [replace(one, overdue=one.overdue and now > (one.ends or 0)) for one in listed]

    def _keep_order(self, reports: Reports) -> Sequence[Loss]:
        """Record the use of the agents, remove what is old, and clean agents that are back. Returns sessions that have lost agents."""
        play, folders = self._play, StaleSessionDirs.of(self._play.artifacts, check=self._play.check)
        maintain = QUEUE_MAINTAIN(
            owner=self._owner,
            agents=reports.documents,
            keep_days=self._settings.keep_days,
            keep_logs=self._settings.keep_logs,
            folders=folders.sessions,
        )
        with play.phase("upkeep"):
            found = play.on_head(maintain)
        play.warn(*folders.remove(found.ended_folders))
        play.notify(notification.DEGRADED, *found.degraded)
        if not play.check:
            clean_up(play, reports, found.fenced)
        return found.lost

    def _launch_what_fits(self, reports: Reports) -> None:
        """Rounds until nothing fits. In check mode nothing is launched, so another round would give the same room again."""
        tried: List[str] = []
        while True:
            decided = self._decided(tried, reports.documents)
            fitting = [validation.arrived(SessionView, one, "answer", self._play.head) for one in decided.fitting]
            requested = self._requested(fitting)
            if not self._play.check:
                remove(self._play, reports, decided.remove, decided.ended)
            for session in requested:
                self._launch(session)
            self._play.show(decided.summary)
            if decided.is_last or self._play.check:
                return
            # What has become free meanwhile is used, too.
            reports, tried = collect_reports(self._play), list(decided.tried)

    def _launch(self, session: RequestedSession) -> None:
        """Launch a session that waits, or repair one that runs: it keeps running, and the next pass tries again."""
        settings = replace(self._settings, wait=0, fail_when_pending=False)
        moves = session.relocates
        asked = LaunchSpec(
            session.request, settings, queued=session.id, takes_variables=not self._follows, relocates=moves
        )
        try:
            launched = launch(self._play, asked, self._recent.of(session.request.image, session.folders))
            self.has_changed = self.has_changed or launched.changed
            launched.note_in(self._recent)
        except ComputeError as error:
            self._recent.forget()
            if session.waits:
                self._failures.append(f"{session.name}: {error.message}")
            else:
                self._play.show([_unrepaired(session.name, error.message)])

    @contextmanager
    def _keeping_failure(self) -> Iterator[None]:
        try:
            yield
        except ComputeError as error:
            self._failures.append(error.message)


def _unrepaired(name: str, reason: str) -> str:
    prefix = f"Session {name} was not repaired"
    return reason if reason.startswith(prefix) else f"{prefix}: {reason}"
