# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Create, start and stop all containers of a plan on one agent.

After an error, the containers stay: the conductor reads their logs and removes them on all agents.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Callable, Dict, List, Mapping, Sequence, Tuple

from ..._shared import label
from ..._shared.codec import Json
from ..._shared.constants import CONFIG_FOLDER
from ..._shared.documents.condition import limit_faults
from ..._shared.documents.label_rules import invalid_labels
from ..._shared.documents.plan import Container, Mount, Plan
from ..._shared.documents.report import Enforced, EngineLimits, ObservedContainer
from ..._shared.documents.step_documents import ContainerChanges
from ..._shared.errors import ConflictError, EngineError, InputError, StateError, TakenError
from ..._shared.image_reference import names_of
from ..._shared.parallel import run_all
from . import place
from .client import Engine, container_entries, waits_for_secrets
from .control_groups import enforced
from .data_folders import check_folders_answer, check_mounts_answer, found_folders
from .device_nodes import amd_gpus, mps_fault
from .fabric import is_connected
from .payloads import NO_LIMITS, AgentSettings, container_body, endpoint
from .removal import GOING, ChangeLog, remove_orphans, state_of, stop_containers
from .reports import claims, engine_name
from .runtime import find_runtime
from .secrets import SecretFiles
from .starting import RUNNING, Starting

_STRANGER = "%s: on %s the name %s is used by container %s, which does not belong to this session; remove or rename it."
_NEWER = (
    "%s: on %s the name %s is used by container %s of a newer session of this name, which the store does not know: do not remove it. "
    "End this session with terminate.yml; then the list shows the newer one."
)
# The file of the limits, which PID 1 reads.
_LIMITS = CONFIG_FOLDER + "/limits"


@dataclass(frozen=True)
class AgentContainers:
    """The containers of a plan on one agent. For ``files`` see Starting."""

    engine: Engine
    plan: Plan
    agent: str
    deadline: float
    limits: EngineLimits = NO_LIMITS
    runtime: str = ""
    edition: str = ""
    delivery: SecretFiles | None = None
    files: Mapping[str, Callable[[], bytes]] = field(default_factory=dict)
    bootstrap_timeout: float = 300.0
    mps: str = ""
    check: bool = False

    @property
    def mine(self) -> List[Container]:
        return self.plan.on(self.agent)

    def created(self) -> ContainerChanges:
        listed, log = self._look()
        wanted: List[Tuple[Container, Json | None]] = []
        for container in self.mine:
            old = listed.get(container.id)
            action = required_action(container, old, self.plan.session.launch, self.agent)
            if action:
                wanted.append((container, old))
                log.act(container.name, action, "created")
        if wanted and not self.check:
            self._check_mps([container for container, _old in wanted])
            self._create_all(wanted)
            listed, _before = self._look()
        return log.changes(self._entries(listed))

    def started(self) -> ContainerChanges:
        """Start the containers that do not run, and check that they still run a moment later."""
        listed, log = self._look()
        waiting = [container for container in self.mine if self._must_start(container, listed.get(container.id))]
        self._rename(listed, log)
        self._set_limits(listed, log)
        for container in waiting:
            log.act(container.name, "started", "running")
        if waiting and self.plan.session.secrets and self.delivery is None and not self.check:
            raise InputError("secrets", None, "is set by the action plugin; use the module in a task")
        if self.check or not waiting:
            return log.changes(self._entries(listed))
        self._check_mps(waiting)
        self._check_volumes()
        pairs = [(container, self._found(container, listed)) for container in waiting]
        parts = (self.engine, self.plan, self.agent, self.files, self.delivery, self.bootstrap_timeout)
        Starting(*parts).carry_out(pairs)
        listed, _before = self._look()
        return log.changes(self._entries(listed))

    def _must_start(self, container: Container, listed: Json | None) -> bool:
        """Return whether a container is down, lacks its place or its fabric, or waits for secrets after the engine restarted it."""
        if listed is None or state_of(listed) not in RUNNING or not is_connected(self.plan, listed):
            return True
        if not place.is_planned(self.plan, container, listed):
            return True
        is_kept = bool(self.plan.session.secrets)
        return is_kept and waits_for_secrets(self.engine, listed["Id"], container.id, container.hostname)

    def _rename(self, listed: Dict[str, Json], log: ChangeLog) -> None:
        """Give the containers that someone has renamed their names again."""
        for container in self.mine:
            found = listed.get(container.id)
            if found is None or claims(found):
                continue
            log.act(container.name, "renamed", state_of(found))
            if not self.check:
                self.engine.rename(found["Id"], container.name, container.hostname)
                listed[container.id] = {**found, "Names": ["/" + container.name]}

    def _set_limits(self, listed: Dict[str, Json], log: ChangeLog) -> None:
        """Give the limits of the plan to the containers that run here with others."""
        running = [one for one in self.mine if state_of(listed.get(one.id)) == "running"]
        found = enforced([listed[one.id]["Id"] for one in running])
        known = [(one, found.get(listed[one.id]["Id"]) or Enforced()) for one in running]
        changed = [one for one, limits in known if limit_faults(self.plan, one, limits)]
        for container in changed:
            log.act(container.name, "updated", "running")
        if not self.check:
            run_all(lambda one: place.set_limits(self.engine, self.plan, one, listed[one.id]), changed)

    def stopped(self) -> ContainerChanges:
        """Stop the containers that run: TERM in all at once, KILL after the grace. Their files stay."""
        listed, log = self._look()
        stop_containers(self.engine, list(listed.values()), log, check=self.check)
        if log.actions and not self.check:
            listed, _before = self._look()
        return log.changes(self._entries(listed))

    def limited(self) -> ContainerChanges:
        """Write the session's limits into those of the containers that run and have others."""
        listed, log = self._look()
        check_mounts_answer(list(listed.values()), self.agent)
        wanted = self.plan.session.limits.encode()

        def differs(container: Json) -> bool:
            return self.engine.read_file(container["Id"], _LIMITS, engine_name(container)) != wanted

        def write(container: Json) -> None:
            self.engine.put_file(container["Id"], _LIMITS, wanted, engine_name(container))

        running = [container for container in listed.values() if container["State"] == "running"]
        changed = [one for one, other in zip(running, run_all(differs, running)) if other]
        for container in changed:
            log.act(engine_name(container), "limited", "running")
        if not self.check:
            run_all(write, changed, keep_going=True)
        return log.changes(self._entries(listed))

    def _look(self) -> Tuple[Dict[str, Json], ChangeLog]:
        """The session's containers in the engine, by their ID in the plan; one request."""
        found = self.engine.members(self.plan.session.id)
        listed = {container.id: found[container.id] for container in self.mine if container.id in found}
        before = {container.name: state_of(listed.get(container.id)) for container in self.mine}
        return listed, ChangeLog(before)

    def _entries(self, listed: Dict[str, Json]) -> List[ObservedContainer]:
        """Report entries in rank order; in check mode, a container that does not exist has the state ``planned``."""
        known = [listed.get(container.id) or self._planned(container) for container in self.mine]
        return container_entries(self.engine, known)

    def _planned(self, container: Container) -> Json:
        place = {self.plan.network.name: endpoint(container)}
        return {
            "Id": "",
            "Names": ["/" + container.name],
            "Image": self.plan.session.image_of(container),
            "State": "planned",
            "Labels": dict(container.labels),
            "NetworkSettings": {"Networks": place},
        }

    # Creating

    def _create_all(self, wanted: Sequence[Tuple[Container, Json | None]]) -> None:
        check_folders_answer(self.plan.session, self.agent)
        with found_folders(self.plan.session, self.agent):
            pass  # refused before anything is created; each start looks again
        images = {self.plan.session.image_of(container) for container, _old in wanted}
        settings = {image: self._settings(image) for image in images}
        self._check_volumes()
        if self.plan.session.read_only_root:
            remove_orphans(self.engine, {container.id for container, old in wanted if old is None}, self.deadline)

        def create(pair: Tuple[Container, Json | None]) -> None:
            container, old = pair
            if old is not None:
                self.engine.remove(old["Id"], container.hostname)
            self._create(container, settings[self.plan.session.image_of(container)])

        run_all(create, wanted)

    def _settings(self, reference: str) -> AgentSettings:
        """An EngineError if the image or the SSH runtime is missing. Without a volume, the newest of this edition is mounted."""
        image = self.engine.image(reference)
        if image is None:
            message = "Agent %s does not have image %s; build or pull the image there, or use another image."
            raise EngineError(message % (self.agent, reference), self.agent)
        volume = self.runtime or find_runtime(self.engine, self.edition)
        if not volume or (self.runtime and self.engine.volume(self.runtime) is None):
            missing = f" (volume {self.runtime})" if self.runtime else ""
            message = "Agent %s does not have the SSH runtime of this release%s; run provision_agents.yml."
            raise EngineError(message % (self.agent, missing), self.agent)
        entries = (image.get("Config") or {}).get("Env") or []
        environment = dict(entry.split("=", 1) for entry in entries if "=" in entry)
        driver = self.engine.info().log_driver
        # The name of a copy is another than its reference, which has a digest.
        known = image.get("RepoTags") or ()
        name = next((name for name in names_of(reference)[1:] if name in known), reference)
        return AgentSettings(environment, self.limits, volume, name, driver, amd_gpus(), self.mps)

    def _check_mps(self, containers: Sequence[Container]) -> None:
        """Without its daemon, nothing limits a part of a GPU: programs then use the GPU as if they had all of it."""
        fault = mps_fault(self.mps) if any(container.resources.mps for container in containers) else ""
        if fault:
            raise StateError(f"Agent {self.agent} {fault}; start the daemon there.", self.agent)

    def _check_volumes(self) -> None:
        """Refuse the mounts of volumes that belong to the collection or to another owner, or that differ from their description.

        Before containers are created, and before they start: another launch may create a volume of the same name in between. Sessions
        of one owner may share a volume that they describe alike.
        """
        session = self.plan.session
        for mount in session.mounts:
            found = self.engine.volume(mount.source) if mount.type == "volume" else None
            if found is not None:
                reason = refusal(mount, found, session.owner, self.runtime, own_only=session.own_volumes)
                if reason:
                    raise ConflictError(f"On {self.agent} the volume {mount.source} {reason}.", self.agent)

    def _create(self, container: Container, settings: AgentSettings) -> None:
        body = container_body(self.plan, container, settings)
        try:
            self.engine.create(container.name, body, container.hostname)
        except ConflictError as error:
            holder = self.engine.inspect(container.name, container.hostname)
            labels = ((holder or {}).get("Config") or {}).get("Labels") or {}
            if holder is None or labels.get(label.SESSION) == self.plan.session.id:
                raise
            values = (container.hostname, self.agent, container.name, holder["Id"][:12])
            message = _NEWER if self._is_newer(labels) else _STRANGER
            # What an ended session has left is removed by the next command.
            is_of_session = claims({"Names": [holder["Name"]], "Labels": labels})
            kind = ConflictError if is_of_session else TakenError
            raise kind(message % values, self.agent) from error

    def _is_newer(self, labels: Json) -> bool:
        """Return whether the labels are of a later session of the same name and owner: a store that was restored does not know it."""
        session, began = self.plan.session, str(labels.get(label.BEGAN) or "")
        is_alike = (labels.get(label.OWNER), labels.get(label.NAME)) == (session.owner, session.name)
        return is_alike and not invalid_labels(labels) and float(began or 0) > session.began

    def _found(self, container: Container, listed: Dict[str, Json]) -> Json:
        if container.id not in listed:
            message = "%s: agent %s does not have this container; create it before starting it."
            raise StateError(message % (container.hostname, self.agent), self.agent)
        return listed[container.id]


def required_action(container: Container, listed: Json | None, launch: str, agent: str) -> str:
    """The action that makes a container exist: ``created``, ``recreated``, or empty for none.

    A stopped container is kept, because a start brings it back with its files. A container that an earlier launch created
    and never started may lack its keys, so it is created again. Raises a StateError if it differs from the plan.
    """
    if listed is None:
        return "created"
    state = state_of(listed)
    if state in GOING:
        return "recreated"
    if state == "created" and listed["Labels"].get(label.LAUNCH) != launch:
        return "recreated"
    if listed["Labels"].get(label.SPEC) != container.labels.get(label.SPEC):
        message = (
            "%s: on %s the container was created from another plan; terminate the session before launching it again."
        )
        raise StateError(message % (container.hostname, agent), agent)
    return ""


# An engine mounts any volume by its name, so the collection decides which existing volumes a session may mount.
# The driver of the volumes that a session describes: the engine's own.
_DRIVER = "local"


def refusal(mount: Mount, found: Json, owner: str, runtime: str, *, own_only: bool = False) -> str:
    """Why a session of this owner must not mount this volume, and what to do; empty if it may.

    ``own_only``: the policy of the site permits only volumes that sessions of this owner have created.
    """
    labels = found.get("Labels") or {}
    holder = labels.get(label.OWNER, "")
    if (runtime and mount.source == runtime) or (not holder and any(name.startswith(label.PREFIX) for name in labels)):
        return "belongs to the collection and is not for data; choose another name in session_mounts"
    if holder and holder != owner:
        return f"belongs to a session of owner {holder}; choose another name in session_mounts"
    if own_only and not holder:
        advice = "choose another name in session_mounts"
        return f"was not created by a session of {owner}, as the policy of this site demands; {advice}"
    is_as_described = found.get("Driver") == _DRIVER and dict(found.get("Options") or {}) == dict(mount.options)
    if mount.options and not is_as_described:
        advice = "remove that volume, or choose another name in session_mounts"
        return f"exists with another driver or other options than session_mounts describes; {advice}"
    return ""
