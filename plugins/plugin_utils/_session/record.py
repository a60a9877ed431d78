# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Record a change of a session: in the store on the head, and in the directory of the session on the controller."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import Any, Sequence

from ...module_utils._shared import states
from ...module_utils._shared.codec import Json
from ...module_utils._shared.documents import validation
from ...module_utils._shared.documents.decision import DecidedSession, Recorded
from ...module_utils._shared.documents.plan import Plan
from ...module_utils._shared.documents.session_json import SessionApp, SessionDocument
from ...module_utils._shared.errors import ComputeError
from ...module_utils._shared.text.summaries import session_apps
from .._client import shared_config
from .._client.request_cache import KeptRequests, StaleSessionDirs
from .._client.session_dir import DOCUMENT, Artifacts
from .._hosts import notification, trace
from .._hosts.conductor import Play
from .._hosts.holder import lease_owner
from .._hosts.phases import PHASES
from .._hosts.steps import SESSION_RECORD


def record_session(play: Play, state: str, **change: Any) -> Recorded:
    """Record the new state of a session, and return the head's answer. Raises StepError if that fails."""
    is_end = state in ("terminating", "terminated")
    folders = StaleSessionDirs.of(play.artifacts if is_end else None, check=play.check)
    made = {**change, "folders": folders.sessions, "holder": lease_owner().to_json()}
    result = play.on_head(SESSION_RECORD(state=state, change=made))
    session = result.session
    if session:
        event = notification.event_of(result.changed, session.state, str(change.get("result") or ""))
        play.notify(event, session)
    play.notify(notification.ENDED, *result.ended)
    play.warn(*folders.remove(result.ended_folders))
    if session and not play.check:
        _remove_files(play, session)
    return result


def record_result(play: Play, session_id: str, result: str, reason: str) -> DecidedSession:
    """Record the result of the command of a batch session. Returns the session, which may have ended by itself meanwhile."""
    recorded = record_session(play, "running", id=session_id, result=result, reason=reason).known
    if recorded.state == states.RUNNING and not play.check:
        keep_result(Artifacts(play.artifacts, recorded.name), result, recorded.reason)
    return recorded


def keep_result(artifacts: Artifacts, result: str, reason: str) -> None:
    """Write the result of the batch command into C(session.json), if it can be read; empty while the command runs."""
    document = kept_document(artifacts)
    if document:
        artifacts.write_json(DOCUMENT, document.with_result(result, reason).to_json())


def kept_document(artifacts: Artifacts) -> SessionDocument | None:
    """Return what C(session.json) has; None if it is missing or damaged, so that the next launch writes it."""
    content = artifacts.read(DOCUMENT) or b""
    try:
        return validation.session_document(content, artifacts.folder)
    except ComputeError:
        return None


def record_running(play: Play, plan: Plan, session: Json, added: Sequence[SessionApp]) -> str:
    """Record that a session runs, with its files and the ``added`` apps that the plan lacks. Returns where the time went.

    Its files are written before: nothing that can fail, such as a full disk, comes after the record, when the launch is not undone.
    """
    artifacts = Artifacts(play.artifacts, plan.session.name)
    _write_files(play, plan, {**session, "state": states.RUNNING, "changed": time.time()}, added)
    with play.phase("record"):
        recorded = record_session(play, "running", id=plan.session.id, launch=plan.session.launch)
    with suppress(ComputeError):  # the files are there, without the time of the record
        _write_files(play, plan, recorded.known.data, added)
    entries = trace.notes()
    # The next session of this command has a trace of its own.
    trace.forget()
    play.warn(shared_config.update(artifacts.base))
    return trace.explanation(entries, plan)


def _write_files(play: Play, plan: Plan, session: Json, added: Sequence[SessionApp]) -> None:
    artifacts = Artifacts(play.artifacts, plan.session.name)
    timings = {**{phase.timing: 0.0 for phase in PHASES.values() if phase.timing}, **play.timings}
    apps = [*session_apps(plan, play.address_of(plan.main.agent), artifacts.folder), *added]
    artifacts.write_json(DOCUMENT, SessionDocument.of_plan(plan, session, apps, timings).to_json())
    entries = trace.trace_document(trace.notes())
    artifacts.write(trace.NAME, json.dumps(entries, separators=(",", ":")).encode())


def _remove_files(play: Play, session: DecidedSession) -> None:
    """Remove the directory of a session that has ended. One that waits again gets new keys with its next plan."""
    if session.state not in (*states.ENDED, states.PENDING):
        return
    artifacts = Artifacts(play.artifacts, session.name)
    artifacts.remove(session.id)
    if session.state in states.ENDED:
        KeptRequests(play.artifacts).forget(session.id)
    play.warn(shared_config.update(artifacts.base))
