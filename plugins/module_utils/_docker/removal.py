# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Taking things off an engine again: many at once, more than one try each, never without a deadline."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Callable, Collection, Dict, Iterable, List, Sequence, Set, Tuple, TypeVar

from ansible_collections.cluster.compute.plugins.module_utils._core.constants import LABEL_LAUNCH, LABEL_SESSION
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import (
    ComputeError,
    ConflictError,
    EngineError,
)
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._core.parallel import first_error, map_bounded
from ansible_collections.cluster.compute.plugins.module_utils._docker.client import Engine, UnreachableError
from ansible_collections.cluster.compute.plugins.module_utils._docker.reports import engine_name, is_ours

Value = TypeVar("Value")

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 2.0
# The engine has begun to remove such a container and will never start it again.
GOING = frozenset({"dead", "removing"})


@dataclass
class ContainerChanges:
    """What was done, or would be, and how the containers are after it."""

    containers: List[Json] = field(default_factory=list)
    actions: List[Dict[str, str]] = field(default_factory=list)
    before: Dict[str, str] = field(default_factory=dict)
    after: Dict[str, str] = field(default_factory=dict)
    left: List[str] = field(default_factory=list)

    def act(self, name: str, action: str, state: str) -> None:
        self.actions.append({"name": name, "action": action})
        self.after[name] = state

    def to_json(self) -> Json:
        return {
            "changed": bool(self.actions),
            "containers": self.containers,
            "changed_names": list(dict.fromkeys(action["name"] for action in self.actions)),
            "actions": self.actions,
            "left": self.left,
            "diff": {"before": {"containers": self.before}, "after": {"containers": self.after}},
        }


def persist(call: Callable[[], Value], deadline: float) -> Value:
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


def ended_volumes(engine: Engine, sessions: Sequence[str], going: Sequence[Json]) -> Tuple[List[str], List[str]]:
    """The volumes that go with these sessions once their containers have gone, and those of theirs that others mount."""
    volumes = engine.volumes()
    if not volumes:
        return [], []
    leaving = {one["Id"] for one in going}
    others = [one for one in engine.containers(everyone=True) if one["Id"] not in leaving]
    alive = {_session_of(one) for one in [*filter(is_ours, others), *engine.networks()]} - set(sessions)
    return sort_volumes(volumes, sessions, mounted(others), alive)


def sort_volumes(
    volumes: Iterable[Json], sessions: Sequence[str], used: Collection[str], alive: Collection[str]
) -> Tuple[List[str], List[str]]:
    """Which labelled volumes go, and which of these sessions' stay because they are used; a user's own has no label of ours.

    Sessions may name the same volume. It has the label of the one that was the first to mount it, and goes with the last:
    so there also goes what nobody uses, of a session that has nothing here any more.
    """
    go, left = [], []
    for one in volumes:
        name, session = one["Name"], _session_of(one)
        if name not in used and (session in sessions or session not in alive):
            go.append(name)
        elif session in sessions:
            left.append(name)
    return go, left


def mounted(listed: Iterable[Json]) -> Set[str]:
    """The volumes that containers hold, running or not; what the engine removes already will let go of its own."""
    staying = [one for one in listed if one["State"] not in GOING]
    return {mount["Name"] for one in staying for mount in one.get("Mounts") or [] if mount.get("Name")}


def remove_volumes(engine: Engine, names: Iterable[str], deadline: float) -> List[str]:
    """Remove them; gives back those that somebody has come to use, which are left to him."""

    def is_removed(name: str) -> bool:
        try:
            engine.remove_volume(name)
        except ConflictError:
            if name not in mounted(engine.containers(everyone=True)):
                raise
            return False
        return True

    return [name for name in names if not persist(lambda name=name: is_removed(name), deadline)]  # type: ignore[misc]


def state_of(listed: Json | None) -> str:
    """A container's state; one that is not listed is absent."""
    return str(listed["State"]) if listed else "absent"


def _session_of(one: Json) -> str:
    return str((one.get("Labels") or {}).get(LABEL_SESSION, ""))


def removed(
    engine: Engine, sessions: Sequence[str], launch: str, parallelism: int, deadline: float, *, check: bool
) -> ContainerChanges:
    """Nothing is left of these sessions, or of one launch of theirs; volumes go with the last container that mounts them."""
    outcome = ContainerChanges()
    everything = session_containers(engine, sessions) if sessions else []
    listed = [one for one in everything if not launch or one["Labels"].get(LABEL_LAUNCH) == launch]
    volumes: List[str] = []
    if sessions and len(listed) == len(everything):
        volumes, outcome.left = ended_volumes(engine, sessions, listed)
    if not check:
        remove_containers(engine, listed, parallelism, deadline)
        outcome.left = outcome.left + remove_volumes(engine, volumes, deadline)
    for one in listed:
        outcome.before[engine_name(one)] = state_of(one)
        outcome.act(engine_name(one), "removed", "absent")
    for name in volumes:
        if name not in outcome.left:
            outcome.act(name, "volume removed", "absent")
    return outcome


def clear_away(engine: Engine, session: str, keep: Callable[[Json], bool], parallelism: int, deadline: float) -> str:
    """Undo after the first error, which is the one to tell; gives back what to add to it where undoing fails too."""
    try:
        listed = session_containers(engine, [session])
        made = [one for one in listed if not keep(one)]
        remove_containers(engine, made, parallelism, deadline)
        if len(made) == len(listed):
            remove_volumes(engine, ended_volumes(engine, [session], made)[0], deadline)
    except ComputeError as error:
        return " What this launch had made there is not all removed: %s" % error.message
    return ""
