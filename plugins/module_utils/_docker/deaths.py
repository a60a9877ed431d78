# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why a container does not run after its start: its exit code, and the last lines that it wrote."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from .._core.errors import EngineError
from .._core.model import Container
from .._core.waiting import deadline_in
from .client import Engine

LAST_LINES = 5
LONGEST_LINE = 300
# Bytes and seconds for these lines, whatever the container has written.
_MOST, _SECONDS = 1 << 14, 10


def death(engine: Engine, container: Container, identity: str, agent: str) -> EngineError:
    now = engine.inspect(identity, container.hostname)
    if now is None:
        message = "%s: the container was removed from %s right after its start; launch the session again."
        return EngineError(message % (container.hostname, agent), agent)
    state = now.get("State") or {}
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
        return joined_lines(engine.logs(identity, LAST_LINES, most=_MOST, deadline=deadline_in(_SECONDS)))
    except EngineError as error:
        return f"they cannot be read ({error.message.rstrip('.')})"
