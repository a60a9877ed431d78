# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""End the programs of containers: TERM in all of them at once, time to save their state, then KILL.

PID 1 of a container (roles/image/files/life.sh) passes TERM to every program and exits when all have ended, or after the
session's grace.
"""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import List, Sequence

from .._core.constants import GRACE, LABEL_GRACE, LABEL_SESSION
from .._core.documents import Json
from .._core.parallel import map_bounded, run_all
from .._core.waiting import deadline_in, wait_until
from .client import Engine
from .payloads import STOP_MARGIN
from .reports import engine_name

# Containers that are killed at the same time, where each may take as long as a request.
_MOST_AT_ONCE = 64
ACTIVE = frozenset({"running", "restarting", "paused"})


def active(listed: Sequence[Json]) -> List[Json]:
    """The containers that programs may run in."""
    return [container for container in listed if container["State"] in ACTIVE]


def grace_of(listed: Json) -> int:
    """Seconds between TERM and KILL in a container of the engine's list; the default without a valid label."""
    text = str((listed.get("Labels") or {}).get(LABEL_GRACE, ""))
    return int(text) if text.isdigit() and len(text) < 8 else GRACE


def end_programs(engine: Engine, listed: Sequence[Json], parallelism: int, grace: int | None = None) -> List[Json]:
    """Send TERM to all of these containers that run, wait for their end, and return those that still run.

    The wait is as long as the longest grace of these containers, or ``grace`` seconds. An error of the engine for a
    single container is no error: what does not end is killed.
    """
    running = active(listed)
    if not running:
        return []
    map_bounded(lambda container: _terminate(engine, container), running, parallelism, keep_going=True)
    seconds = max(grace_of(container) + STOP_MARGIN for container in running) if grace is None else grace

    def is_over() -> bool:
        nonlocal running
        running = _still_active(engine, running)
        return not running

    # Pauses of a twentieth of the time so far: a removal begins soon after the last end, and a long grace takes few requests.
    wait_until(is_over, deadline_in(seconds), growth=1.05)
    return running


def kill_all(engine: Engine, listed: Sequence[Json], parallelism: int) -> None:
    """Kill these containers. Raises the first error after all the others are killed."""
    run_all(
        lambda container: engine.stop(container["Id"], 0, engine_name(container)), listed, parallelism, keep_going=True
    )


def survivors(engine: Engine, listed: Sequence[Json]) -> List[Json]:
    """Kill these containers, and return those that still run: the kernel does not end a program that waits for a lost file server.

    The engine answers a request for such a container late or never, so none of them waits for another.
    """
    if not listed:
        return []
    parallelism = min(len(listed), _MOST_AT_ONCE)
    map_bounded(lambda container: engine.stop(container["Id"], 0, engine_name(container)), listed, parallelism, True)
    return _still_active(engine, listed)


def _still_active(engine: Engine, running: Sequence[Json]) -> List[Json]:
    """Those of the containers that programs may run in now; one request."""
    sessions = {container["Labels"][LABEL_SESSION] for container in running}
    listed = engine.containers(session=sessions.pop() if len(sessions) == 1 else "")
    now = {container["Id"]: container for container in listed}
    return active([now[container["Id"]] for container in running if container["Id"] in now])


def _terminate(engine: Engine, container: Json) -> None:
    """Send TERM. A container that has ended in the meantime refuses it."""
    engine.terminate(container["Id"], engine_name(container))
    if container["State"] == "paused":
        engine.unpause(container["Id"], engine_name(container))
