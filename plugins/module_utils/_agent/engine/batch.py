# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The bootstrap of containers and the batch command of main1, observed through the files of PID 1 and the containers' states.

roles/image/files/init.sh writes these files.
"""

from __future__ import annotations

import re
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Callable, Dict, Sequence, Tuple

from ..._shared.codec import Json
from ..._shared.constants import CONFIG_FOLDER
from ..._shared.documents.container_view import BatchStatus, ContainerView
from ..._shared.documents.plan import Container, Plan
from ..._shared.documents.report import BatchState
from ..._shared.documents.step_documents import StartedCommand
from ..._shared.documents.topology import timeout_text
from ..._shared.errors import ConflictError, EngineError, NotFoundError, StateError
from ..._shared.names import run_folder
from ..._shared.parallel import run_all
from ..._shared.waiting import deadline_in, wait_until
from .client import Engine
from .data_folders import check_mounts_answer
from .reports import ACTIVE

_FIRST_PAUSE = 0.2
# Seconds in which PID 1 takes another command. It looks for one twice a second.
_LONGEST_TAKE = 60
# The exit code that is reported if the command's own exit code is unknown.
UNREADABLE = 255
_ENDED = re.compile(rb"(\d{1,3})( oom)?\s+")
# Bytes: longer than any exit code.
_LONGEST = 64

Started = Tuple[Container, Json]


def wait_bootstrapped(
    engine: Engine,
    started: Sequence[Started],
    must_run: Callable[[Sequence[Started]], None],
    seconds: float,
) -> None:
    """Wait until the bootstrap script of every container has succeeded. A script that fails ends its container."""
    waiting = list(started)

    def all_bootstrapped() -> bool:
        nonlocal waiting
        must_run(waiting)
        are_done = run_all(lambda pair: _is_bootstrapped(engine, pair), waiting)
        waiting = [pair for pair, is_done in zip(waiting, are_done) if not is_done]
        return not waiting

    if not wait_until(all_bootstrapped, deadline_in(seconds), _FIRST_PAUSE):
        names = ", ".join(container.hostname for container, _listed in waiting)
        message = "%s: the bootstrap script did not end within %g s; raise session_bootstrap_timeout."
        raise EngineError(message % (names, seconds))


def _is_bootstrapped(engine: Engine, started: Started) -> bool:
    container, listed = started
    return engine.has_path(listed["Id"], run_folder(container.id) + "/.bootstrapped", container.hostname)


@dataclass(frozen=True)
class Batch:
    """The batch command of a session, observed from one of its agents."""

    engine: Engine
    plan: Plan
    agent: str

    def start(self, *, check: bool, again: bool = False) -> StartedCommand:
        """Start the command: PID 1 of main1 waits for the file ``go``, and removes it at each start of the container.

        So a repair starts a command again that ended with main1, and never a command that has an exit code. If the plan has another
        command than main1, the plan's command runs as soon as the other has ended. With ``again``, a command runs again after its end.
        """
        check_mounts_answer(self.engine.members(self.plan.session.id).values(), self.agent)
        main = self._main()["Id"]
        status = self.status()
        is_next = self._is_next(main) or (again and status.has_ended)
        must_start = is_next or not status.begun
        if is_next and status.begun and not status.has_ended:
            message = "session_command: the former command still runs in main1 on %s; wait for its end."
            raise StateError(message % self.agent, self.agent)
        since = ""
        if must_start and not check:
            if is_next:
                since = _engine_time()
                self._put_next(main)
            self.engine.put_file(main, self._folder + "/go", b"", "main1")
            self._must_be_taken(main)
        return StartedCommand(must_start, since)

    def _is_next(self, main: str) -> bool:
        """Return whether main1 has another command than the plan, or another timeout for it."""
        return any(
            self.engine.read_file(main, f"{CONFIG_FOLDER}/{name}", "main1", len(text) + 1) != text
            for name, text in self._files().items()
        )

    def _put_next(self, main: str) -> None:
        """Give PID 1 the command of the plan. It reads the files as soon as the last one exists."""
        for name, text in self._files().items():
            self.engine.put_file(main, f"{self._folder}/next_{name}", text, "main1")
        self.engine.put_file(main, self._folder + "/next", b"", "main1")

    def _must_be_taken(self, main: str) -> None:
        """Wait until PID 1 has the command of the plan, so that no exit code of the previous command is read."""
        is_taken = wait_until(
            lambda: not self.engine.has_path(main, self._folder + "/next", "main1"),
            deadline_in(_LONGEST_TAKE),
            _FIRST_PAUSE,
        )
        if not is_taken:
            message = (
                "main1: on %s PID 1 has not taken another command within %d s, because it is busy or older than this command; run "
                "this again, or end the session and launch it again."
            )
            raise EngineError(message % (self.agent, _LONGEST_TAKE), self.agent)

    def _files(self) -> Dict[str, bytes]:
        session = self.plan.session
        return {
            "command": session.command.encode("utf-8", "surrogateescape"),
            "timeout": timeout_text(session).encode(),
        }

    @property
    def _folder(self) -> str:
        return run_folder(self.plan.session.id)

    def wait(self, seconds: float) -> BatchStatus:
        """The status once the command has ended or a container of this agent has died, at the latest after ``seconds``."""
        check_mounts_answer(self.engine.members(self.plan.session.id).values(), self.agent)
        status = BatchStatus()

        def has_ended() -> bool:
            nonlocal status
            status = self.status()
            return status.has_ended or bool(status.dead) or not status.begun

        wait_until(has_ended, deadline_in(seconds), _FIRST_PAUSE, growth=1.2)
        return status

    def status(self) -> BatchStatus:
        """Return the state of the command, which runs as far as is known without main1, and the containers here that do not run."""
        listed = self.engine.members(self.plan.session.id)
        here = self.plan.on(self.agent)
        stopped = [one for one in here if (listed.get(one.id) or {}).get("State") not in ACTIVE]
        dead = tuple(_death(self.engine, container, listed.get(container.id)) for container in stopped)
        main = listed.get(self.plan.session.id)
        state = parse_exit(None)
        if main is not None:
            with suppress(ConflictError):  # main1 is paused
                state = read_state(self.engine, main["Id"], self.plan.session.id)
        return BatchStatus(**vars(state), dead=dead)

    def _main(self) -> Json:
        main = self.engine.members(self.plan.session.id).get(self.plan.session.id)
        if main is None:
            message = "main1: agent %s does not have this container; launch the session again to repair it."
            raise NotFoundError(message % self.agent, self.agent)
        return main


def _engine_time() -> str:
    """Now, in the form of the times in an engine's logs."""
    seconds, nanoseconds = divmod(time.time_ns(), 10**9)
    return "%s.%09dZ" % (time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)), nanoseconds)


def read_state(engine: Engine, identity: str, container: str, hostname: str = "main1") -> BatchState:
    """The result of a command, from the file that PID 1 writes, and whether it has begun since its container was started."""
    ended = read_exit(engine, identity, container, hostname)
    begun = ended.exit_code is not None or engine.has_path(identity, run_folder(container) + "/go", hostname)
    return replace(ended, begun=begun)


def read_exit(engine: Engine, identity: str, container: str, hostname: str) -> BatchState:
    """Return how a command has ended, from the file that PID 1 writes."""
    return parse_exit(engine.read_file(identity, run_folder(container) + "/exit_code", hostname, _LONGEST))


def parse_exit(text: bytes | None) -> BatchState:
    """The state of a command that has begun.

    Root of the container may have written anything: text that is not an exit code is a failure, with a reason.
    """
    if text is None:
        return BatchState()
    ended = _ENDED.fullmatch(text)
    if ended is None:
        return BatchState(UNREADABLE, reason="the file with the exit code does not hold a number")
    return BatchState(int(ended.group(1)), bool(ended.group(2)))


def _death(engine: Engine, container: Container, listed: Json | None) -> ContainerView:
    state = ((engine.inspect(listed["Id"], container.hostname) if listed else None) or {}).get("State") or {}
    return ContainerView(
        hostname=container.hostname,
        agent=container.agent,
        state=str(state.get("Status", "missing")),
        exit_code=state.get("ExitCode"),
        oom_killed=bool(state.get("OOMKilled")),
    )
