# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Notifications of what happens to sessions: C(session_notify), a URL or a command.

A process of its own sends them. It gets everything through its standard input, so that a token in the address is in no
process list; nothing waits for it, and a failure is a line of the system log.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Iterable, List, Tuple

from ...module_utils._shared import states
from ...module_utils._shared.codec import Json
from ...module_utils._shared.constants import SCHEMA
from ...module_utils._shared.documents.decision import DecidedSession

if TYPE_CHECKING:
    from .action import ComputeAction

RUNNING, ENDED, FAILED, DEGRADED, FINISHED = "running", "ended", "failed", "degraded", "finished"
RELOCATED, RESTARTED = "relocated", "restarted"
# What a notification contains of a session: no request, no environment, no key.
_FIELDS = ("id", "name", "owner", "group", "state", "result", "reason", "created", "changed")
_SENDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "notification_sender.py")

Event = Tuple[str, DecidedSession]


def document(event: str, session: DecidedSession) -> Json:
    """The notification of an event, as docs/notifications.md describes it."""
    shown = {name: session.data[name] for name in _FIELDS if name in session.data}
    return {"schema": SCHEMA, "event": event, "time": round(time.time(), 3), "session": shown}


def event_of(changed: bool, state: str, result: str = "") -> str:
    """The event of a session whose ``state`` has ``changed``, or whose command's ``result`` was recorded; empty for none."""
    if result and state == states.RUNNING:
        return FAILED if result == "FAILURE" else FINISHED
    if not changed:
        return ""
    if state == states.ERROR:
        return FAILED
    if state in states.ENDED:
        return ENDED
    return RUNNING if state == states.RUNNING else ""


def notify(action: ComputeAction, events: Iterable[Event]) -> None:
    """Send a notification of each event, if the user wants any. Check mode changes nothing, so it sends nothing."""
    listed = [(event, session) for event, session in events if event]
    target = str(action.value("session_notify") or "") if listed else ""
    if target and not action._task.check_mode:
        send(target, [document(event, session) for event, session in listed])


def send(target: str, documents: List[Json]) -> None:
    """Begin to send documents to a target, in their order, and return at once."""
    content = json.dumps({"target": target, "documents": documents}).encode()
    # The sender reads all, starts a child and ends, so that no process of Ansible has to wait for its end.
    command = [sys.executable, "-I", _SENDER]
    with suppress(OSError):  # no process can be started: a launch must not fail because of that
        subprocess.run(command, input=content, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
