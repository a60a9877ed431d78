# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A container's bootstrap and main1's batch command, as they show from outside: files that PID 1 keeps, and states.

roles/image/files/init.sh writes what is read here.
"""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import io
import re
import tarfile
import time
from dataclasses import dataclass
from typing import Callable, Sequence, Tuple

from ansible_collections.cluster.compute.plugins.module_utils._core.constants import LABEL_CONTAINER
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import EngineError, NotFoundError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import (
    Container,
    Json,
    Plan,
)
from ansible_collections.cluster.compute.plugins.module_utils._core.names import run_folder
from ansible_collections.cluster.compute.plugins.module_utils._core.parallel import first_error, map_bounded
from ansible_collections.cluster.compute.plugins.module_utils._docker.client import Engine

_INTERVAL = 0.2
_SLOWEST = 2.0
# The exit code of a command of which nobody can tell how it ended.
UNREADABLE = 255
_ENDED = re.compile(rb"(\d{1,3})( oom)?\n")
# More than any exit code takes.
_LONGEST = 64

Started = Tuple[Container, Json]


def wait_bootstrapped(
    engine: Engine,
    started: Sequence[Started],
    must_run: Callable[[Sequence[Started]], None],
    seconds: float,
    parallelism: int,
) -> None:
    """Wait until every container's bootstrap script has ended well; one that failed has ended its container."""
    deadline = time.monotonic() + seconds
    waiting = list(started)
    pause = _INTERVAL
    while True:
        must_run(waiting)
        looks = map_bounded(lambda one: _is_bootstrapped(engine, one), waiting, parallelism)
        error = first_error(looks)
        if error is not None:
            raise error
        waiting = [look.item for look in looks if not look.value]
        if not waiting:
            return
        if time.monotonic() >= deadline:
            names = ", ".join(container.hostname for container, _listed in waiting)
            raise EngineError(
                "%s: the bootstrap script did not end within %g s; raise session_bootstrap_timeout." % (names, seconds)
            )
        time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
        pause = min(_SLOWEST, pause * 1.5)


def _is_bootstrapped(engine: Engine, started: Started) -> bool:
    container, listed = started
    return engine.has_path(listed["Id"], run_folder(container.id) + "/.bootstrapped", container.hostname)


@dataclass(frozen=True)
class Batch:
    """The batch command of a session, seen from one agent of it."""

    engine: Engine
    plan: Plan
    agent: str

    def start(self, *, check: bool) -> Json:
        """Let main1's PID 1 begin the command: it waits for the file ``go``, which it forgets when it starts anew.

        So a command that main1's death cut short begins again with the repair, and one that is done is not done again.
        """
        main = self._main()
        folder = run_folder(self.plan.main.id)
        status = self.status()
        begun = status["exit_code"] is not None or self.engine.has_path(main["Id"], folder + "/go", "main1")
        if not begun and not check:
            self.engine.put_archive(main["Id"], folder, _empty_file("go"), "main1")
        return {"changed": not begun, **status}

    def wait(self, seconds: float) -> Json:
        """The status, as soon as the command has ended or a container here has died, and at the latest after ``seconds``."""
        deadline = time.monotonic() + seconds
        pause = _INTERVAL
        status = self.status()
        while status["exit_code"] is None and not status["dead"] and time.monotonic() < deadline:
            time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
            pause = min(_SLOWEST, pause * 1.2)
            status = self.status()
        return {"changed": False, **status}

    def status(self) -> Json:
        """``exit_code`` (null while it runs, or where main1 is not), ``oom_killed``, ``reason``, and who died here."""
        listed = {one["Labels"].get(LABEL_CONTAINER): one for one in self.engine.containers(self.plan.session.id)}
        mine = self.plan.on(self.agent)
        dead = [_death(self.engine, one, listed.get(one.id)) for one in mine if not _runs(listed.get(one.id))]
        main = listed.get(self.plan.main.id)
        return {**read_exit(self.engine, main["Id"] if main else "", self.plan.main.id), "dead": dead}

    def _main(self) -> Json:
        for one in self.engine.containers(self.plan.session.id):
            if one["Labels"].get(LABEL_CONTAINER) == self.plan.main.id:
                return one
        raise NotFoundError(
            "main1: agent %s does not have it; launch the session again to repair it." % self.agent, self.agent
        )


def read_exit(engine: Engine, main: str, container: str) -> Json:
    """How a batch command ended, from the file that PID 1 wrote."""
    path = run_folder(container) + "/exit_code"
    return parse_exit(engine.read_file(main, path, "main1", _LONGEST) if main else None)


def parse_exit(text: bytes | None) -> Json:
    """An exit code, and ``oom`` if memory ran out; nothing while the command runs.

    Root of the container may have written anything: what is no exit code is a failure, with a reason.

    >>> parse_exit(b"137 oom\\n")
    {'exit_code': 137, 'oom_killed': True, 'reason': ''}
    """
    if text is None:
        return {"exit_code": None, "oom_killed": False, "reason": ""}
    ended = _ENDED.fullmatch(text)
    if ended is None:
        return {"exit_code": UNREADABLE, "oom_killed": False, "reason": "what main1 says of its exit code is no number"}
    return {"exit_code": int(ended.group(1)), "oom_killed": bool(ended.group(2)), "reason": ""}


def _runs(listed: Json | None) -> bool:
    return listed is not None and listed["State"] in ("running", "restarting", "paused")


def _death(engine: Engine, container: Container, listed: Json | None) -> Json:
    """How a container came to its end."""
    state = ((engine.inspect(listed["Id"], container.hostname) if listed else None) or {}).get("State") or {}
    return {
        "hostname": container.hostname,
        "agent": container.agent,
        "state": str(state.get("Status", "missing")),
        "exit_code": state.get("ExitCode"),
        "oom_killed": bool(state.get("OOMKilled")),
    }


def _empty_file(name: str) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        entry = tarfile.TarInfo(name)
        entry.mode, entry.mtime = 0o644, int(time.time())
        tar.addfile(entry)
    return archive.getvalue()
