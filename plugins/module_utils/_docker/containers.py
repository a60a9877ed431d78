# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Many containers of one agent at once: create, start, stop. All of them, or none of what this call or launch made."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Callable, Dict, List, Sequence, Tuple

from ansible_collections.cluster.compute.plugins.module_utils._core.constants import (
    LABEL_CONTAINER,
    LABEL_LAUNCH,
    LABEL_SESSION,
    LABEL_SPEC,
    RUNTIME_VOLUME,
)
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import (
    ComputeError,
    ConflictError,
    EngineError,
    StateError,
)
from ansible_collections.cluster.compute.plugins.module_utils._core.model import (
    Container,
    Json,
    Plan,
)
from ansible_collections.cluster.compute.plugins.module_utils._core.parallel import first_error, map_bounded
from ansible_collections.cluster.compute.plugins.module_utils._docker.batch import wait_bootstrapped
from ansible_collections.cluster.compute.plugins.module_utils._docker.client import AbsentError, Engine
from ansible_collections.cluster.compute.plugins.module_utils._docker.image_reference import names_of
from ansible_collections.cluster.compute.plugins.module_utils._docker.payloads import (
    NO_LIMITS,
    AgentSettings,
    Limits,
    container_body,
    endpoint,
)
from ansible_collections.cluster.compute.plugins.module_utils._docker.removal import (
    GOING,
    ContainerChanges,
    clear_away,
    session_containers,
    state_of,
)
from ansible_collections.cluster.compute.plugins.module_utils._docker.reports import container_entry, engine_name

RUNNING = frozenset({"running", "restarting"})
# How long a container must have lived to count as started: one that cannot run ends within this.
SETTLE = 0.25
LAST_LINES = 5


@dataclass(frozen=True)
class AgentContainers:
    """The containers of a plan on one agent."""

    engine: Engine
    plan: Plan
    agent: str
    parallelism: int
    deadline: float
    limits: Limits = NO_LIMITS
    runtime: str = RUNTIME_VOLUME
    bootstrap_timeout: float = 300.0
    check: bool = False

    @property
    def mine(self) -> List[Container]:
        return self.plan.on(self.agent)

    def created(self) -> ContainerChanges:
        """Every container is there, with what the plan says, though it need not run."""
        listed, outcome = self._look()
        wanted: List[Tuple[Container, Json | None]] = []
        for container in self.mine:
            old = listed.get(container.id)
            action = required_action(container, old, self.plan.session.launch, self.agent)
            if action:
                wanted.append((container, old))
                outcome.act(container.name, action, "created")
        if wanted and not self.check:
            self._create_all(wanted)
            listed, _before = self._look()
        outcome.containers = self._entries(listed)
        return outcome

    def started(self) -> ContainerChanges:
        """Every container runs, and still does a moment after its start."""
        listed, outcome = self._look()
        waiting = [one for one in self.mine if state_of(listed.get(one.id)) not in RUNNING]
        for container in waiting:
            outcome.act(container.name, "started", "running")
        if self.check or not waiting:
            outcome.containers = self._entries(listed)
            return outcome
        try:
            self._start_all([(one, self._found(one, listed)) for one in waiting])
            listed, _before = self._look()
            outcome.containers = self._entries(listed)
        except Exception as error:
            launch = self.plan.session.launch
            self._undo(error, lambda one: one["Labels"].get(LABEL_LAUNCH) != launch)
            raise
        return outcome

    def stopped(self, grace: int) -> ContainerChanges:
        """No container runs; their files stay."""
        listed, outcome = self._look()
        running = [one for one in self.mine if state_of(listed.get(one.id)) in RUNNING | {"paused"}]
        for container in running:
            outcome.act(container.name, "stopped", "exited")
        if running and not self.check:

            def stop(one: Container) -> None:
                self.engine.stop(listed[one.id]["Id"], grace, one.hostname)

            error = first_error(map_bounded(stop, running, self.parallelism, keep_going=True))
            if error is not None:
                raise error
            listed, _before = self._look()
        outcome.containers = self._entries(listed)
        return outcome

    def _look(self) -> Tuple[Dict[str, Json], ContainerChanges]:
        """What is there of this session, by container id; one request."""
        found = {
            one["Labels"].get(LABEL_CONTAINER): one for one in session_containers(self.engine, [self.plan.session.id])
        }
        listed = {one.id: found[one.id] for one in self.mine if one.id in found}
        before = {one.name: state_of(listed.get(one.id)) for one in self.mine}
        return listed, ContainerChanges(before=before, after=dict(before))

    def _entries(self, listed: Dict[str, Json]) -> List[Json]:
        """Report entries in rank order; in check mode a container that is not there is shown as planned."""
        there = [listed[one.id] if one.id in listed else self._planned(one) for one in self.mine]
        return describe(self.engine, there, self.parallelism)

    def _planned(self, container: Container) -> Json:
        place = {self.plan.network.name: endpoint(container)}
        return {
            "Id": "",
            "Names": ["/" + container.name],
            "Image": self.plan.session.image,
            "State": "planned",
            "Labels": dict(container.labels),
            "NetworkSettings": {"Networks": place},
        }

    # Creating

    def _create_all(self, wanted: Sequence[Tuple[Container, Json | None]]) -> None:
        ground = self._ground()

        def create(pair: Tuple[Container, Json | None]) -> str:
            container, old = pair
            if old is not None:
                self.engine.remove(old["Id"], container.hostname)
            return self._create(container, ground)

        outcomes = map_bounded(create, wanted, self.parallelism)
        error = first_error(outcomes)
        if error is not None:
            made = {one.value for one in outcomes if one.done}
            self._undo(error, lambda one: one["Id"] not in made)
            raise error

    def _create(self, container: Container, ground: AgentSettings) -> str:
        body = container_body(self.plan, container, ground)
        try:
            return self.engine.create(container.name, body, container.hostname)
        except ConflictError as error:
            holder = self.engine.inspect(container.name, container.hostname)
            if holder is None or _is_ours(holder, self.plan):
                raise
            message = (
                "%s: on %s the name %s is held by a container that is not this session's (%s); remove or rename it."
            )
            raise ConflictError(
                message % (container.hostname, self.agent, container.name, holder["Id"][:12]), self.agent
            ) from error

    def _ground(self) -> AgentSettings:
        """What the engine adds: the image's PATH. Looked at once, so that what is missing is told once and clearly."""
        reference = self.plan.session.image
        image = self.engine.image(reference)
        if image is None:
            message = "Agent %s does not have image %s; build or pull it there, or choose another."
            raise EngineError(message % (self.agent, reference), self.agent)
        if self.engine.volume(self.runtime) is None:
            message = "Agent %s does not have the SSH runtime (volume %s); run provision_agents.yml."
            raise EngineError(message % (self.agent, self.runtime), self.agent)
        environment = (image.get("Config") or {}).get("Env") or []
        path = next((text[len("PATH=") :] for text in environment if text.startswith("PATH=")), "")
        return AgentSettings(path, self.limits, self.runtime, _name_of(image, reference))

    # Starting

    def _start_all(self, waiting: Sequence[Tuple[Container, Json]]) -> None:
        error = first_error(map_bounded(self._start, waiting, self.parallelism))
        if error is not None:
            raise error
        time.sleep(SETTLE)
        self._must_run(waiting)
        if self.plan.session.bootstrap:
            wait_bootstrapped(self.engine, waiting, self._must_run, self.bootstrap_timeout, self.parallelism)

    def _start(self, pair: Tuple[Container, Json]) -> None:
        container, listed = pair
        if state_of(listed) == "paused":
            self.engine.unpause(listed["Id"], container.hostname)
            return
        try:
            self.engine.start(listed["Id"], container.hostname)
        except AbsentError:
            # The network was made anew while the container was down, which knows the old one by its id.
            if not self.engine.networks(session=self.plan.session.id):
                raise
            self.engine.connect(listed["Id"], self.plan.network.name, endpoint(container), container.hostname)
            self.engine.start(listed["Id"], container.hostname)

    def _must_run(self, started: Sequence[Tuple[Container, Json]]) -> None:
        """One request tells of all; the first that does not run is asked how it came to its end."""
        now, _before = self._look()
        for container, listed in started:
            if state_of(now.get(container.id)) not in RUNNING:
                raise self._death(container, listed["Id"])

    def _death(self, container: Container, identity: str) -> EngineError:
        now = self.engine.inspect(identity, container.hostname)
        if now is None:
            message = "%s: somebody has removed it from %s right after its start; launch the session again."
            return EngineError(message % (container.hostname, self.agent), self.agent)
        state = now.get("State") or {}
        killed, code = state.get("OOMKilled"), state.get("ExitCode")
        why = "was killed for lack of memory" if killed else "ended with exit code %s" % code
        message = "%s: on %s it %s right after its start; its last lines: %s."
        said = self._last_lines(identity).rstrip(".")
        return EngineError(message % (container.hostname, self.agent, why, said), self.agent)

    def _last_lines(self, identity: str) -> str:
        """What a container said at last; a log that cannot be read hides nothing of what is to be told."""
        try:
            lines = self.engine.logs(identity, tail=LAST_LINES).split("\n")
        except EngineError as error:
            return "they cannot be read (%s)" % error.message.rstrip(".")
        return " | ".join(line.strip() for line in lines if line.strip()) or "it wrote nothing"

    def _found(self, container: Container, listed: Dict[str, Json]) -> Json:
        if container.id not in listed:
            message = "%s: agent %s does not have it; create it before it is started." % (
                container.hostname,
                self.agent,
            )
            raise StateError(message, self.agent)
        return listed[container.id]

    def _undo(self, error: Exception, keep: Callable[[Json], bool]) -> None:
        """Remove all of the session here but what is to be kept; the error tells it where that fails, too."""
        rest = clear_away(self.engine, self.plan.session.id, keep, self.parallelism, self.deadline)
        if isinstance(error, ComputeError):
            error.message += rest


def required_action(container: Container, listed: Json | None, launch: str, agent: str) -> str:
    """What a container needs to be there: ``created``, ``recreated`` or nothing.

    One that has ended keeps its files: a start brings it back. One that an earlier launch created and never started
    may lack its keys, so it is made anew.
    """
    if listed is None:
        return "created"
    state = state_of(listed)
    if state in GOING:
        return "recreated"
    if state == "created" and listed["Labels"].get(LABEL_LAUNCH) != launch:
        return "recreated"
    if listed["Labels"].get(LABEL_SPEC) != container.labels.get(LABEL_SPEC):
        message = "%s: on %s it was made from another plan than this one; end the session before it is launched anew."
        raise StateError(message % (container.hostname, agent), agent)
    return ""


def describe(engine: Engine, listed: Sequence[Json], parallelism: int) -> List[Json]:
    """Report entries; the engine is asked about those alone that have stopped, for how they ended."""

    def entry(one: Json) -> Json:
        is_told = one["State"] in ("created", "planned", "running")
        return container_entry(one, None if is_told else engine.inspect(one["Id"], engine_name(one)))

    outcomes = map_bounded(entry, listed, parallelism)
    error = first_error(outcomes)
    if error is not None:
        raise error
    return [one.value for one in outcomes if one.value is not None]


def _name_of(image: Json, reference: str) -> str:
    """What the engine knows the image as: its reference, or the name that a copy has by digest."""
    known = image.get("RepoTags") or ()
    return next((name for name in names_of(reference)[1:] if name in known), reference)


def _is_ours(inspected: Json, plan: Plan) -> bool:
    labels = (inspected.get("Config") or {}).get("Labels") or {}
    return labels.get(LABEL_SESSION) == plan.session.id
