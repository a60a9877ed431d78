# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Remove containers and volumes from an engine: in parallel, with retries until a deadline."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Collection, Dict, FrozenSet, Iterable, List, Mapping, Sequence, Set, Tuple

from ..._shared import label
from ..._shared.codec import Json
from ..._shared.constants import GRACE, LONGEST_GRACE
from ..._shared.documents.report import ObservedContainer
from ..._shared.documents.schema import is_number
from ..._shared.documents.step_documents import Action, ContainerChanges, ContainerLog, Difference, LogRequest
from ..._shared.errors import ComputeError, ConflictError, StateError
from ..._shared.parallel import Outcome, map_bounded, run_all, values_of
from ..._shared.waiting import deadline_in, wait_until
from .client import Engine, session_containers
from .connection import AbsentError, LateError, persist
from .data_folders import folders_of, silent_folders, waiting_programs
from .logs import read_logs
from .payloads import STOP_MARGIN, goes_with_container, orphans
from .reports import active, engine_name, is_ours, is_relay, session_of

# Seconds for each request about a container that may hang. The engine takes ten to kill a program that does not end.
_HASTE = 30
# States of a container that the engine is removing and never starts again.
GOING = frozenset({"dead", "removing"})
# How many containers are signaled or removed at the same time; each may take as long as a request.
_MOST_AT_ONCE = 64
NO_LIMIT: Mapping[str, int] = MappingProxyType({})


class ChangeLog:
    """The changes of containers that are made, or that check mode would make. ``states`` are those before."""

    def __init__(self, states: Mapping[str, str]) -> None:
        self.before, self.after = dict(states), dict(states)
        self.actions: List[Action] = []

    def act(self, name: str, action: str, state: str) -> None:
        self.actions.append(Action(name, action))
        self.after[name] = state

    def changes(self, containers: Iterable[ObservedContainer] = (), **more: Any) -> ContainerChanges:
        names = tuple(dict.fromkeys(action.name for action in self.actions))
        diff = Difference({"containers": self.before}, {"containers": self.after})
        return ContainerChanges(bool(names), (diff,), tuple(containers), names, tuple(self.actions), **more)


@dataclass(frozen=True)
class _Removed:
    """The remains of a removal: containers, volumes that others mount, and the first failure. ``logs`` is None if none were read."""

    staying: Sequence[Json] = ()
    mounted: Sequence[str] = ()
    logs: Sequence[ContainerLog] | None = None
    failure: ComputeError | None = None


# The end of programs: PID 1 (roles/image/files/life.sh) passes TERM to each and exits when all have ended, or after the grace.


def grace_of(listed: Json) -> int:
    """Seconds between TERM and KILL in a container of the engine's list; the default without a valid label.

    No session may have more than an hour: commands of all owners wait for it.
    """
    text = str((listed.get("Labels") or {}).get(label.GRACE, ""))
    return int(text) if is_number(text) and int(text) <= LONGEST_GRACE else GRACE


def end_programs(
    engine: Engine, listed: Sequence[Json], most: Mapping[str, int] = NO_LIMIT
) -> Tuple[List[Json], List[Json]]:
    """Send TERM to all of these containers that run, and wait for their end. Returns those that still run, and those that hang.

    The wait is as long as the longest grace of these containers, and not longer than ``most`` says for their session: every member
    of the engine's group can label a container. An error of the engine for a single container is no error: what does
    not end is killed. A container hangs if the engine did not answer the signal in time, and the container did not end, either.
    """
    running, hasty = active(listed), engine.hasty(_HASTE)
    if not running:
        return [], []
    asked = map_bounded(lambda container: _terminate(hasty, container), running, _MOST_AT_ONCE, keep_going=True)
    late = {outcome.item["Id"] for outcome in asked if isinstance(outcome.error, LateError)}
    seconds = max(min(grace_of(one), most.get(session_of(one), LONGEST_GRACE)) + STOP_MARGIN for one in running)

    def is_over() -> bool:
        nonlocal running
        running = _still_active(engine, running)
        return not running

    # Pauses of a twentieth of the time so far: a removal begins soon after the last end, and a long grace takes few requests.
    wait_until(is_over, deadline_in(seconds), growth=1.05)
    return [one for one in running if one["Id"] not in late], [one for one in running if one["Id"] in late]


def _unended(listed: Sequence[Json], silent: Collection[str], agent: str) -> StateError:
    """The error for containers that do not end: programs wait for a folder, or the engine does not answer."""
    waiting = [container for container in listed if folders_of(container) & set(silent)]
    hung = [container for container in listed if container not in waiting]
    lost = {folder for container in waiting for folder in folders_of(container)}.intersection(silent)
    groups = ((waiting, lost), (hung, ()))
    texts = [waiting_programs(sorted(map(engine_name, group)), folders, agent) for group, folders in groups if group]
    return StateError(" ".join(texts), agent)


def kill_all(engine: Engine, listed: Sequence[Json]) -> List[Outcome[Json, None]]:
    """Kill these containers, and return the outcome of each. A container that is gone is no error.

    The kernel does not end a program that waits for a lost file server. The engine answers a request for such a container late or
    never, so none of them waits for another.
    """

    def kill(container: Json) -> None:
        with suppress(AbsentError):
            engine.stop(container["Id"], 0, engine_name(container))

    return map_bounded(kill, listed, _MOST_AT_ONCE, keep_going=True)


def _still_active(engine: Engine, running: Sequence[Json]) -> List[Json]:
    """The containers of these in which programs may still run. Takes one request."""
    sessions = list({container["Labels"][label.SESSION] for container in running})
    now = {container["Id"]: container for container in session_containers(engine, sessions)}
    return active([now[container["Id"]] for container in running if container["Id"] in now])


def _terminate(engine: Engine, container: Json) -> None:
    """Send TERM. A container that has ended in the meantime refuses it."""
    engine.terminate(container["Id"], engine_name(container))
    if container["State"] == "paused":
        engine.unpause(container["Id"], engine_name(container))


def remove_containers(engine: Engine, listed: Iterable[Json], deadline: float) -> None:
    """Remove all these containers. Raises the first error after all the others are removed."""
    run_all(lambda container: _remove_one(engine, container, deadline), list(listed), keep_going=True)


def _remove_one(engine: Engine, container: Json, deadline: float) -> None:
    persist(lambda: engine.remove(container["Id"], engine_name(container), deadline), deadline)


def ended_volumes(engine: Engine, sessions: Sequence[str], going: Sequence[Json]) -> Tuple[List[str], List[str]]:
    """The volumes to remove with these sessions after the containers ``going``, and their volumes that others mount."""
    volumes = engine.volumes()
    if not volumes:
        return [], []
    leaving = {container["Id"] for container in going}
    others = [container for container in engine.containers(everyone=True) if container["Id"] not in leaving]
    alive = {session_of(item) for item in [*filter(is_ours, others), *engine.networks()]} - set(sessions)
    going_along = mounted(going)
    volumes = [volume for volume in volumes if not goes_with_container(volume, going_along)]
    return sort_volumes(volumes, sessions, mounted(others), alive)


def remove_orphans(engine: Engine, containers: Collection[str], deadline: float) -> None:
    """Remove the volumes of containers that are gone: they have the files of the session, keys included."""
    names = orphans(engine.volumes(), containers, mounted(engine.containers(everyone=True)))
    remove_volumes(engine, names, deadline)


def sort_volumes(
    volumes: Iterable[Json], sessions: Sequence[str], used: Collection[str], alive: Collection[str]
) -> Tuple[List[str], List[str]]:
    """The labelled volumes to remove, and those of these sessions that stay in use. A user's own volume has no label.

    Sessions may share a volume. It has the label of the session that mounted it first, and is removed with the last one:
    therefore unused volumes are removed too whose session has nothing left on this engine (is not ``alive``).
    """
    go, left = [], []
    for volume in volumes:
        name, session = volume["Name"], session_of(volume)
        if name not in used and (session in sessions or session not in alive):
            go.append(name)
        elif session in sessions:
            left.append(name)
    return go, left


def mounted(listed: Iterable[Json]) -> Set[str]:
    """The volumes that containers mount, running or not, except containers that the engine is removing."""
    staying = [container for container in listed if container["State"] not in GOING]
    return {mount["Name"] for container in staying for mount in container.get("Mounts") or [] if mount.get("Name")}


def remove_volumes(engine: Engine, names: Iterable[str], deadline: float) -> List[str]:
    """Remove these volumes, and return those that a container has mounted in the meantime, which stay."""

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
    """The state of a container in the engine's list; ``absent`` without an entry."""
    return str(listed["State"]) if listed else "absent"


def states_of(listed: Iterable[Json]) -> Dict[str, str]:
    return {engine_name(container): state_of(container) for container in listed}


@dataclass(frozen=True)
class Removal:
    """Removes the containers of these sessions, or of one launch; and volumes with the last container that mounts them.

    Programs that run receive TERM first, and the grace period of their session, as far as ``most`` permits. Programs of sessions that
    are ``over`` have had both, and are killed at once: the command of another owner does not wait for them. A removal that the engine
    refuses is repeated for ``seconds`` after that. ``logs`` are read in between. With ``keep``, the containers with these IDs and the
    relays stay.
    """

    engine: Engine
    sessions: Sequence[str]
    launch: str
    seconds: int
    logs: LogRequest | None = None
    keep: FrozenSet[str] = frozenset()
    over: FrozenSet[str] = frozenset()
    most: Mapping[str, int] = field(default_factory=dict)

    def carry_out(self, *, check: bool) -> ContainerChanges:
        everything = session_containers(self.engine, self.sessions) if self.sessions else []
        listed = [item for item in everything if self._goes(item)]
        goes_whole = self.sessions and len(listed) == len(everything)
        volumes, left = ended_volumes(self.engine, self.sessions, listed) if goes_whole else ([], [])
        done = _Removed() if check else self._remove(listed, volumes)
        left = [*left, *done.mounted]
        log = ChangeLog(states_of(listed))
        for container in listed:
            if container not in done.staying:
                log.act(engine_name(container), "removed", "absent")
        for name in volumes if done.failure is None else ():
            if name not in left:
                log.act(name, "volume removed", "absent")
        failure = done.failure.failure if done.failure else None
        # What an ended session has left fails no command: a warning names it. No logs are read of such a session.
        warnings = (failure.message,) if failure and self.logs is None else None
        return log.changes(left=tuple(left), logs=done.logs, failure=failure and failure.to_json(), warnings=warnings)

    def _goes(self, listed: Json) -> bool:
        if self.keep and (is_relay(listed) or listed["Labels"].get(label.CONTAINER) in self.keep):
            return False
        return not self.launch or bool(listed["Labels"].get(label.LAUNCH) == self.launch)

    def _remove(self, listed: Sequence[Json], volumes: Sequence[str]) -> _Removed:
        """Remove what can be removed. Neither logs nor other containers wait for containers that stay."""
        silent, hasty = silent_folders(listed), self.engine.hasty(_HASTE)
        engine = hasty if silent else self.engine
        over = [container for container in listed if session_of(container) in self.over]
        killed = kill_all(hasty, active(over))
        running, hung = end_programs(engine, [container for container in listed if container not in over], self.most)
        hung += [outcome.item for outcome in killed if isinstance(outcome.error, LateError)]
        killed += kill_all(hasty, running if silent or self.logs is not None else ())
        logs = None if self.logs is None else read_logs(engine, self.logs, {container["Id"] for container in hung})
        unended = [outcome.item for outcome in killed if outcome.error and folders_of(outcome.item) & silent]
        others = {container["Id"] for container in (*unended, *hung)}
        deadline = deadline_in(self.seconds)
        # The engine may only have been busy.
        asked = map_bounded(lambda one: _remove_one(hasty, one, deadline), hung, _MOST_AT_ONCE, keep_going=True)
        unended += [outcome.item for outcome in asked if isinstance(outcome.error, LateError)]
        failure: ComputeError | None = _unended(unended, silent, self.engine.agent) if unended else None
        still_mounted: List[str] = []
        try:
            remove_containers(engine, [one for one in listed if one["Id"] not in others], deadline)
            values_of([one for one in asked if not isinstance(one.error, LateError)])
            still_mounted = remove_volumes(engine, () if unended else volumes, deadline)
        except ComputeError as error:
            failure = failure or error
        alive = {one["Id"] for one in session_containers(engine, self.sessions)} if failure else set()
        return _Removed([one for one in listed if one["Id"] in alive], still_mounted, logs, failure)


def stopped(engine: Engine, sessions: Sequence[str], *, check: bool) -> ContainerChanges:
    listed = session_containers(engine, sessions) if sessions else []
    log = ChangeLog(states_of(listed))
    stop_containers(engine, listed, log, check=check)
    return log.changes()


def stop_containers(engine: Engine, listed: Sequence[Json], log: ChangeLog, *, check: bool) -> None:
    """Stop the running containers, and note it."""
    running = active(listed)
    for container in running:
        log.act(engine_name(container), "stopped", "exited")
    if not check:
        left, hung = end_programs(engine, running)
        killed = kill_all(engine, [*left, *hung])
        late = [outcome.item for outcome in killed if isinstance(outcome.error, LateError)]
        if late:
            raise _unended(late, (), engine.agent)
        values_of(killed)
