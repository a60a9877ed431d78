# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Record a change of a session: in the store on the head, and in the directory of the session on the controller."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import json
from typing import Any, List, Sequence

from ...module_utils._core import states
from ...module_utils._core.documents import Json
from ...module_utils._core.model import Plan
from ...module_utils._planning.deployment import Deployment
from ...module_utils._text.views import session_document
from .. import _notification as notification
from .. import _shared_config as shared_config
from .. import _trace as trace
from .._artifacts import Artifacts
from .._ended_folders import EndedFolders
from .._holder import holder
from .._kept_requests import KeptRequests
from .._ssh_identity import ID_CONTAINER, SessionIdentity
from .phases import PHASES
from .play import Play

DOCUMENT = "session.json"
# The files that a controller needs of a session that runs. All but the secret can be written again.
_NEEDED = (ID_CONTAINER, "known_hosts", DOCUMENT, "ssh_config")
_NO_KEYS = (
    "Session %s runs, but %s does not have its keys: copy that folder from the controller that launched the session, or terminate "
    "the session and launch it again."
)


def record(play: Play, state: str, **change: Any) -> Json:
    """Record the new state of a session, and return the head's answer. Raises StepError if that fails."""
    is_end = state in ("terminating", "terminated")
    folders = EndedFolders.of(play.artifacts if is_end else None, check=play.check)
    result = play.on_head("session.record", {"state": state, **change, **folders.option(), "holder": holder()})
    event = notification.event_of(bool(result.get("changed")), result["session"], str(change.get("result") or ""))
    play.notify(event, result["session"])
    play.notify(notification.ENDED, *result.get("ended") or ())
    folders.remove(result)
    play.warn(*result.pop("warnings", None) or ())
    _remove_files(play, result["session"])
    return result


def record_result(play: Play, session: Json, result: str, reason: str) -> None:
    """Record the result of the command of a batch session."""
    recorded = record(play, "running", session=session["id"], result=result, reason=reason)["session"]
    if recorded["state"] == states.RUNNING and not play.check:
        Artifacts(play.artifacts, recorded["name"]).record_command(result, recorded["reason"])


def record_running(play: Play, plan: Plan, work: Deployment) -> str:
    """Record that a session runs, and write C(session.json) and C(trace.json). Returns where the time of the launch went."""
    with play.phase("record"):
        recorded = record(play, "running", session=plan.session.id, launch=plan.session.launch)
    artifacts = Artifacts(play.artifacts, plan.session.name)
    timings = {**{phase.timing: 0.0 for phase in PHASES.values() if phase.timing}, **play.timings}
    document = session_document(plan, recorded["session"], work.address, timings, artifacts.folder)
    artifacts.write_json(DOCUMENT, document)
    entries = trace.notes()
    artifacts.write(trace.NAME, json.dumps(trace.trace_document(entries), separators=(",", ":")).encode())
    # The next session of this command has a trace of its own.
    trace.forget()
    play.warn(shared_config.update(artifacts.base))
    return trace.explanation(entries, plan)


def record_failure(play: Play, plan: Plan, reason: str, *, retry: bool, logs: Sequence[Json]) -> Json:
    """Record why a launch has failed. With C(retry), the session waits again."""
    trace.forget()
    change = {"session": plan.session.id, "launch": plan.session.launch, "reason": reason, "retry": retry}
    return record(play, "failed", **change, logs=list(logs))


def restore_files(play: Play, plan: Plan, session: Json, address: str) -> List[str]:
    """Write the files of a running session that the controller has lost; returns their names. Lost keys are a warning."""
    artifacts = Artifacts(play.artifacts, plan.session.name)
    if artifacts.session != plan.session.id:
        play.warn(_NO_KEYS % (plan.session.name, artifacts.folder))
        return []
    missing = [name for name in _NEEDED if artifacts.read(name) is None]
    if missing and not play.check:
        route = play.route_to(plan.main.agent, address)
        SessionIdentity.of(plan, artifacts, check=False).keep({}, route, check=False, diff=False)
        if artifacts.read(DOCUMENT) is None:
            artifacts.write_json(DOCUMENT, session_document(plan, session, address, {}, artifacts.folder))
        play.warn(shared_config.update(artifacts.base))
    return missing


def _remove_files(play: Play, session: Json) -> None:
    """Remove the directory of a session that has ended. One that waits again gets new keys with its next plan."""
    if play.check or not session or session["state"] not in (*states.ENDED, states.PENDING):
        return
    artifacts = Artifacts(play.artifacts, session["name"])
    artifacts.remove(session["id"])
    if session["state"] in states.ENDED:
        KeptRequests(play.artifacts).forget(session["id"])
    play.warn(shared_config.update(artifacts.base))
