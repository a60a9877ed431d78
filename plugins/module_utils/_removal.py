# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: may change in any release.

"""Taking things off an engine again: many at once, more than one try each, never without a deadline."""

from __future__ import annotations

import time
from typing import Callable, Iterable, List, Sequence

from ansible_collections.cluster.compute.plugins.module_utils._engine import Engine, UnreachableError
from ansible_collections.cluster.compute.plugins.module_utils._errors import ComputeError, ConflictError, EngineError
from ansible_collections.cluster.compute.plugins.module_utils._model import LABEL_SESSION, Json
from ansible_collections.cluster.compute.plugins.module_utils._pool import first_error, map_bounded
from ansible_collections.cluster.compute.plugins.module_utils._report import engine_name

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 2.0


def deadline_in(seconds: float) -> float:
    """A point of the monotonic clock."""
    return time.monotonic() + seconds


def persist(call: Callable[[], None], deadline: float) -> None:
    """Call until it succeeds; its last error once C(deadline), by the monotonic clock, has come.

    An engine refuses for a moment what still goes away: a removal in progress, a network whose last endpoint is leaving
    (https://github.com/moby/moby/issues/27754, https://github.com/moby/moby/issues/32634).
    """
    pause = FIRST_PAUSE
    while True:
        try:
            return call()
        except UnreachableError:
            raise
        except (EngineError, ConflictError):
            if time.monotonic() + pause > deadline:
                raise
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


def session_containers(engine: Engine, sessions: Sequence[str]) -> List[Json]:
    """What an engine has of these sessions."""
    listed = engine.containers(session=sessions[0]) if len(sessions) == 1 else engine.containers()
    return [one for one in listed if one["Labels"].get(LABEL_SESSION) in sessions]


def remove_containers(engine: Engine, listed: Iterable[Json], parallelism: int, deadline: float) -> None:
    """Remove them all; what cannot be removed does not keep the rest, and is told by its first error."""

    def remove(one: Json) -> None:
        persist(lambda: engine.remove(one["Id"], engine_name(one)), deadline)

    error = first_error(map_bounded(remove, list(listed), parallelism, keep_going=True))
    if error is not None:
        raise error


def session_volumes(engine: Engine, sessions: Sequence[str]) -> List[str]:
    """The volumes that these sessions describe and own; a user's own volume has no label of ours."""
    volumes = engine.volumes(sessions[0] if len(sessions) == 1 else "")
    return [one["Name"] for one in volumes if (one.get("Labels") or {}).get(LABEL_SESSION) in sessions]


def remove_volumes(engine: Engine, names: Iterable[str], deadline: float) -> None:
    for name in names:
        persist(lambda name=name: engine.remove_volume(name), deadline)  # type: ignore[misc]


def clear_away(engine: Engine, session: str, keep: Callable[[Json], bool], parallelism: int, deadline: float) -> str:
    """Undo after the first error, which is the one to tell; gives back what to add to it where undoing fails too."""
    try:
        listed = session_containers(engine, [session])
        made = [one for one in listed if not keep(one)]
        remove_containers(engine, made, parallelism, deadline)
        if len(made) == len(listed):
            remove_volumes(engine, session_volumes(engine, [session]), deadline)
    except ComputeError as error:
        return " What this launch had made there is not all removed: %s" % error.message
    return ""
