# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Start created containers of a session on one agent, and pass on what PID 1 waits for: the files of the session, and its secrets."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Callable, Mapping, Sequence, Tuple

from ..._shared.codec import Json
from ..._shared.constants import SECRETS_FOLDER
from ..._shared.documents.plan import Container, Plan
from ..._shared.errors import ComputeError
from ..._shared.parallel import run_all
from . import fabric, place
from .batch import wait_bootstrapped
from .client import AbsentError, Engine
from .data_folders import CHECKED, check_folders_answer, check_image_paths, found_folders
from .logs import death
from .payloads import STOP_MARGIN
from .removal import state_of
from .secrets import SecretFiles
from .streams import RECEIVED

RUNNING = frozenset({"running", "restarting"})
# Seconds that a container must run to count as started: a container that cannot run ends within this time.
SETTLE = 0.25

# A container of the plan, and as the engine lists it.
Pair = Tuple[Container, Json]


@dataclass(frozen=True)
class Starting:
    """Container starts on an agent. ``files`` has, by hostname, a function for the archive that PID 1 without files waits for."""

    engine: Engine
    plan: Plan
    agent: str
    files: Mapping[str, Callable[[], bytes]]
    delivery: SecretFiles | None = None
    bootstrap_timeout: float = 300.0

    def carry_out(self, waiting: Sequence[Pair]) -> None:
        check_folders_answer(self.plan.session, self.agent)
        with found_folders(self.plan.session, self.agent) as folders:
            run_all(lambda pair: self._start(pair, folders), waiting)
        time.sleep(SETTLE)
        self._must_run(waiting)
        if self.plan.session.bootstrap:
            wait_bootstrapped(self.engine, waiting, self._must_run, self.bootstrap_timeout)

    def _start(self, pair: Pair, folders: bytes) -> None:
        container, listed = pair
        if state_of(listed) == "paused":
            self.engine.unpause(listed["Id"], container.hostname)
            return
        files, is_started = self.files.get(container.hostname), state_of(listed) in RUNNING
        # An engine answers nothing about a container while it starts it, and the files of all are made of what the last one contains.
        archive = files() if files and container.hostname in list(self.files)[-1:] else b""
        if is_started and not (
            fabric.is_connected(self.plan, listed) and place.is_planned(self.plan, container, listed)
        ):
            self.engine.stop(listed["Id"], self.plan.session.grace + STOP_MARGIN, container.hostname)
            is_started = False
        is_bounded = bool(self.plan.session.permitted_folders) and not is_started
        if is_bounded:
            check_image_paths(self.engine, self.plan.session, container, listed["Id"])
        if files is not None or is_bounded:
            with self.engine.standard_input(listed["Id"], container.hostname) as send:
                self._power_on(container, listed)
                if is_bounded:
                    self._pass_on(pair, lambda: send(folders, CHECKED))
                if files is not None:
                    archive = archive or files()
                    self._pass_on(pair, lambda: send(b"%d\n" % len(archive) + archive, RECEIVED))
        elif not is_started:
            self._power_on(container, listed)
        if self.delivery is not None:
            secrets = self.delivery.archive(self.plan.session.user)
            self._pass_on(pair, lambda: self.engine.unpack(listed["Id"], SECRETS_FOLDER, secrets, container.hostname))

    def _pass_on(self, pair: Pair, call: Callable[[], None]) -> None:
        """Send something to a container that runs. One that has ended says why."""
        try:
            call()
        except ComputeError:  # also a conflict: the container does not run
            self._must_run([pair])
            raise

    def _power_on(self, container: Container, listed: Json) -> None:
        fabric.leave_fabric(self.engine, self.plan, container, listed)
        place.restore(self.engine, self.plan, container, listed)
        self._start_program(container, listed)
        fabric.join_fabric(self.engine, self.plan, container, listed)

    def _start_program(self, container: Container, listed: Json) -> None:
        try:
            self.engine.start(listed["Id"], container.hostname)
        except AbsentError:
            # The network was created again while the container was stopped, which refers to the old network by its ID.
            if not self.engine.networks(session=self.plan.session.id):
                raise
            place.connect_networks(self.engine, self.plan, container, listed)
            self.engine.start(listed["Id"], container.hostname)

    def _must_run(self, started: Sequence[Pair]) -> None:
        """Raise an error for the first container that does not run; one request for all containers."""
        now = self.engine.members(self.plan.session.id)
        for container, listed in started:
            if state_of(now.get(container.id)) not in RUNNING:
                raise death(self.engine, container, listed["Id"], self.agent)
