# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the logs of a session's containers on one engine: within a deadline, and a bounded size in total.

The last lines of a container that has died are part of the error.
"""

from __future__ import annotations

import re
import time
from typing import Collection, List

from ..._shared.documents.plan import Container
from ..._shared.documents.report import ObservedContainer
from ..._shared.documents.step_documents import ContainerLog, LogRequest
from ..._shared.documents.topology import order_of
from ..._shared.errors import ComputeError, EngineError
from ..._shared.parallel import run_all
from ..._shared.waiting import deadline_in
from .client import Engine
from .connection import UNPAUSE
from .container_requests import LONGEST_LOG
from .data_folders import CHECKED
from .reports import container_entry, is_member
from .streams import RECEIVED

# Bytes of each log that remain, however many containers the session has: enough for a traceback.
LEAST_LOG = 4096
ENDED = frozenset({"exited", "dead"})
# So much of a log may precede what PID 1 confirms.
_FIRST = 1 << 14


def read_logs(engine: Engine, request: LogRequest, hung: Collection[str] = ()) -> List[ContainerLog]:
    """The log of each container, main1 first. The text of a log that cannot be read says why. The IDs ``hung`` are not asked for."""
    members = [listed for listed in engine.containers(session=request.session) if is_member(listed)]
    entries = [container_entry(listed) for listed in members]
    named = [entry for entry in entries if not request.containers or entry.hostname in request.containers]
    chosen = [entry for entry in named if entry.state in ENDED or not request.ended]
    # Not by the rank in the labels, which is the one at the creation: roles change their sizes.
    ordered = sorted(chosen, key=lambda entry: order_of(entry.hostname))

    share = min(LONGEST_LOG, max(LEAST_LOG, request.total // max(1, len(ordered))))
    deadline = deadline_in(request.deadline)

    def read(entry: ObservedContainer) -> str:
        """The log, or why it cannot be read: that must not hide the other logs, or stop the end of the session."""
        try:
            if entry.engine_id in hung:
                return "(its log cannot be read: the container hangs)\n"
            if time.monotonic() >= deadline:
                return "(its log was not read: reading the logs took longer than %d s)\n" % request.deadline
            if request.ended:
                return _last_words(engine, entry.engine_id, share, deadline)
            text = engine.logs(entry.engine_id, request.tail, request.since, request.timestamps, share, deadline)
            return _of_programs(text, request.timestamps)
        except ComputeError as error:  # also a conflict: the engine is removing the container
            return f"(its log cannot be read: {error.message.rstrip('.')})\n"

    texts = run_all(read, ordered)
    return [ContainerLog(entry.hostname, entry.state, text, entry.engine_name) for entry, text in zip(ordered, texts)]


def _of_programs(text: str, timestamps: bool = False) -> str:
    r"""A log without what PID 1 confirms to the launch. The same words once more are a line of a program.

    That is at the beginning, though under load the engine may have logged other output before it.

    >>> _of_programs("cluster-compute: the files of the session have arrived\nepoch 1\n")
    'epoch 1\n'
    """
    first, rest = text[:_FIRST], text[_FIRST:]
    for said in (CHECKED, RECEIVED):
        moment = r"\S+ " if timestamps else ""
        first = re.sub(rf"^{moment}cluster-compute: {said.decode()}(?:\n|\Z)", "", first, count=1, flags=re.MULTILINE)
    return first + rest


LAST_LINES, LAST_ERRORS = 5, 2
LONGEST_LINE = 300
# Bytes and seconds for these lines, whatever the container has written.
_MOST, _SECONDS = 1 << 14, 10


def death(engine: Engine, container: Container, identity: str, agent: str) -> EngineError:
    now = engine.inspect(identity, container.hostname)
    if now is None:
        message = "%s: the container was removed from %s right after its start; launch the session again."
        return EngineError(message % (container.hostname, agent), agent)
    state = now.get("State") or {}
    if state.get("Paused"):
        return EngineError(f"{container.hostname}: on {agent} the container is paused; {UNPAUSE}.", agent)
    killed, code = state.get("OOMKilled"), state.get("ExitCode")
    why = "was killed because memory ran out" if killed else f"ended with exit code {code}"
    message = "%s: on %s the container %s right after its start; its last lines: %s."
    lines = _last_lines(engine, identity).rstrip(".")
    return EngineError(message % (container.hostname, agent, why, lines), agent)


def joined_lines(text: str) -> str:
    """The last lines of a log as one line."""
    lines = [line.strip()[:LONGEST_LINE] for line in text.split("\n") if line.strip()]
    return " | ".join(lines[-LAST_LINES:]) or "it wrote nothing"


def _last_lines(engine: Engine, identity: str) -> str:
    """The last lines of a container's log, or why it cannot be read: that must not hide the first error."""
    try:
        return joined_lines(_last_words(engine, identity, _MOST, deadline_in(_SECONDS)))
    except ComputeError as error:
        return f"they cannot be read ({error.message.rstrip('.')})"


def _last_words(engine: Engine, identity: str, most: int, deadline: float) -> str:
    """The last lines of a container, with the last errors: under load, the engine may have logged those before other output."""
    both, errors = (
        _lines(_of_programs(engine.logs(identity, tail, most=most, deadline=deadline, errors_only=only)))
        for tail, only in ((LAST_LINES, False), (LAST_ERRORS, True))
    )
    earlier = [line for line in errors if line not in both]
    return "".join([*both[max(0, len(both) + len(earlier) - LAST_LINES) :], *earlier])


def _lines(text: str) -> List[str]:
    return (text if text.endswith("\n") or not text else text + "\n").splitlines(keepends=True)
