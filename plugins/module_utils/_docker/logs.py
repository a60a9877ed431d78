# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the logs of a session's containers on one engine: within a deadline, and a bounded size in total."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Dict, List, Sequence

from .._core.documents import Json
from .._core.errors import EngineError
from .._core.parallel import default_parallelism, run_all
from .._core.waiting import deadline_in
from .client import Engine
from .container_requests import LONGEST_LOG
from .reports import container_entry, is_member

# Bytes of each log that remain, however many containers the session has: enough for a traceback.
LEAST_LOG = 4096
ENDED = frozenset({"exited", "dead"})


@dataclass(frozen=True)
class LogRequest:
    """The logs to read: ``tail`` lines of each container, ``total`` bytes of all, in ``seconds``.

    Without ``containers``, the logs of all containers of the session; with ``ended``, of those that have ended. ``since`` is in
    seconds since the epoch.
    """

    session: str
    containers: Sequence[str] = ()
    tail: int | None = None
    since: int = 0
    timestamps: bool = False
    total: int = 64 << 20
    seconds: int = 60
    ended: bool = False

    @classmethod
    def from_options(cls, options: Dict[str, Any]) -> LogRequest:
        """The options of a module, where the seconds are called ``deadline``."""
        return cls(**{("seconds" if name == "deadline" else name): value for name, value in options.items()})


def read_logs(engine: Engine, request: LogRequest) -> List[Json]:
    """The log of each container in rank order. The text of a log that cannot be read says why."""
    members = [listed for listed in engine.containers(session=request.session) if is_member(listed)]
    entries = [container_entry(listed) for listed in members]
    chosen = [entry for entry in entries if _is_asked(entry, request)]
    ranked = sorted(chosen, key=lambda entry: entry["rank"])

    share = min(LONGEST_LOG, max(LEAST_LOG, request.total // max(1, len(ranked))))
    deadline = deadline_in(request.seconds)

    def read(entry: Json) -> str:
        """The log, or why it cannot be read: that must not hide the other logs, or stop the end of the session."""
        try:
            if time.monotonic() >= deadline:
                return "(its log was not read: reading the logs took longer than %d s)\n" % request.seconds
            return engine.logs(entry["engine_id"], request.tail, request.since, request.timestamps, share, deadline)
        except EngineError as error:
            return f"(its log cannot be read: {error.message.rstrip('.')})\n"

    texts = run_all(read, ranked, default_parallelism())
    return [_shown(entry, text) for entry, text in zip(ranked, texts)]


def _is_asked(entry: Json, request: LogRequest) -> bool:
    is_named = not request.containers or entry["hostname"] in request.containers
    return is_named and (entry["state"] in ENDED or not request.ended)


def _shown(entry: Json, text: str) -> Json:
    shown = {key: entry[key] for key in ("hostname", "rank", "state")}
    return {**shown, "name": entry["engine_name"], "text": text}
