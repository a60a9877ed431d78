# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The containers of roles on one agent: their commands begin, and each container becomes ready."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Callable, List, Tuple

from ..._shared.constants import RUNTIME_PATH
from ..._shared.documents.plan import Container, Plan, Role
from ..._shared.documents.step_documents import Begun
from ..._shared.errors import ConflictError, EngineError, NotFoundError
from ..._shared.names import run_folder
from ..._shared.parallel import run_all
from ..._shared.units import ready_port
from ..._shared.waiting import deadline_in, wait_until
from .batch import read_exit
from .client import Engine
from .data_folders import check_mounts_answer
from .logs import death
from .removal import state_of

_FIRST_PAUSE = 0.3
# Seconds that a command may take to find out whether a container is ready.
_LONGEST_TRY = 10
# The function of the apps asks for the path, or looks for a port that other containers reach.
_ANSWERS = 'runtime=%s; . "$runtime/libexec/apps.sh"; port=%d; ready=%s; hex=$(hexadecimal "$port"); answers'

# A container of the plan, its role, and the ID of the engine.
Member = Tuple[Container, Role, str]


@dataclass(frozen=True)
class RoleContainers:
    """The containers of the roles of a plan that run on one agent."""

    engine: Engine
    plan: Plan
    agent: str

    def begun(self, seconds: float) -> Begun:
        members = self._members()
        check_mounts_answer(list(self.engine.members(self.plan.session.id).values()), self.agent)
        with_command = [member for member in members if member[1].command]
        # At each start PID 1 unpacks its files and removes `go`, before it accepts logins.
        self._wait([(member, str(self.plan.network.ssh_port)) for member in with_command], seconds)
        run_all(self._begin, with_command)
        with_sign = [(member, member[1].ready) for member in members if member[1].ready]
        self._wait(with_sign, seconds, self._must_not_have_failed)
        names = tuple(container.hostname for container, _role, _identity in with_command)
        return Begun(bool(names), names)

    def _begin(self, member: Member) -> None:
        """Let PID 1 run the command of the role. One that has run, or runs, is left alone."""
        container, _role, identity = member
        self.engine.put_file(identity, run_folder(container.id) + "/go", b"", container.hostname)

    def _wait(
        self, waiting: List[Tuple[Member, str]], seconds: float, check: Callable[[Member], None] | None = None
    ) -> None:
        """Wait until all of them answer. An EngineError names the first that is not in time, has ended, or fails the check."""

        def are_ready() -> bool:
            nonlocal waiting
            self._must_run([member for member, _ready in waiting])
            done = run_all(self._is_ready, waiting)
            waiting = [one for one, is_ready in zip(waiting, done) if not is_ready]
            if check:
                run_all(check, [member for member, _ready in waiting])
            return not waiting

        if not wait_until(are_ready, deadline_in(seconds), _FIRST_PAUSE):
            self._must_run([member for member, _ready in waiting])
            names = ", ".join(container.hostname for (container, _role, _identity), _ready in waiting)
            message = "%s: not ready after %g s (%s); look at its log, or raise session_apps_timeout."
            raise EngineError(message % (names, seconds, waiting[0][1]), self.agent)

    def _members(self) -> List[Member]:
        listed, members = self.engine.members(self.plan.session.id), []
        for container in self.plan.on(self.agent):
            role = self.plan.session.role(container.role)
            if container.id not in listed or role is None:
                raise NotFoundError(f"{container.hostname} does not exist on {self.agent}: launch the session again.")
            members.append((container, role, str(listed[container.id]["Id"])))
        return members

    def _must_run(self, members: List[Member]) -> None:
        listed = self.engine.members(self.plan.session.id)
        for container, _role, identity in members:
            if state_of(listed.get(container.id)) != "running":
                raise death(self.engine, container, identity, self.agent)

    def _must_not_have_failed(self, member: Member) -> None:
        container, _role, identity = member
        ended = read_exit(self.engine, identity, container.id, container.hostname)
        if ended.exit_code:
            why = f": {ended.reason}" if ended.reason else ""
            message = "%s: the command of its role ended with exit code %d before it was ready%s; look at its log."
            raise EngineError(message % (container.hostname, ended.exit_code, why), self.agent)

    def _is_ready(self, waiting: Tuple[Member, str]) -> bool:
        (container, _role, identity), ready = waiting
        port, path = ready_port(ready)
        user = self.plan.session.user
        script = _ANSWERS % (RUNTIME_PATH, port, f"'{path or port}'") if port else ready
        shell = [f"{RUNTIME_PATH}/bin/busybox", "timeout", str(_LONGEST_TRY), f"{RUNTIME_PATH}/bin/sh", "-c", script]
        with suppress(ConflictError):  # it has just ended: the next look says why
            return self.engine.execute(identity, shell, container.hostname, "%d:%d" % (user.uid, user.gid))[0] == 0
        return False
