# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Build an image from a Dockerfile with the engine's classic builder, and count the bytes that the build writes."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Callable, Mapping

from ..._shared.errors import ComputeError, EngineError, StateError
from ..._shared.waiting import deadline_in
from .client import Engine
from .connection import failure_of
from .counting import ProgramOutput, run_counted

# Seconds in which the engine must measure a container; a slow answer costs one count.
COUNT_TIMEOUT = 10

_RUNNING = re.compile(r" ---> Running in ([0-9a-f]{12,64})\n?")
# Lines of the builder itself.
_BUILDER = re.compile(r" ---> |Step \d+/\d+ : |Removing intermediate container ")
# The last line of a build. Without it, the image of this name is that of a former build.
_NAMED = "Successfully tagged "

Listener = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True)
class Build:
    """An image to build from the folder of a Dockerfile within some seconds."""

    name: str
    folder: str
    arguments: Mapping[str, Any]
    seconds: int


class BuildEngine(Engine):
    """The engine's requests for builds."""

    def build(self, wanted: Build, listen: Listener) -> None:
        """Build the Dockerfile of the folder; passes each event of the engine to ``listen``.

        Steps use the network of the host. The engine ends a build, and removes its container, when the connection closes.
        """
        context = self._context(wanted.folder)
        with context, self._asking(f"build image {wanted.name}") as client:
            events = client.build(
                fileobj=context,
                custom_context=True,
                tag=wanted.name,
                buildargs={name: str(value) for name, value in wanted.arguments.items()},
                network_mode="host",
                rm=True,
                forcerm=True,
                decode=True,
                timeout=wanted.seconds,
            )
            for event in events:
                listen(event)

    def _context(self, folder: str) -> Any:
        try:
            return self._sdk.utils.tar(folder)
        except OSError as error:
            message = "%s: the directory %s cannot be read: %s."
            raise StateError(message % (self.agent, folder, error.strerror or error), self.agent) from error


class BuildLog:
    """The state of a build, from its events: the container of the step in progress, and why the build failed."""

    def __init__(self) -> None:
        self.container = ""
        self.is_whole = False
        self.error: Mapping[str, Any] = {}
        self._output = ProgramOutput()

    def add(self, event: Mapping[str, Any]) -> None:
        """Take an event of the engine: https://docs.docker.com/reference/api/engine/, "Build an image"."""
        text = str(event.get("stream") or "")
        self.is_whole = text.startswith(_NAMED) if text else self.is_whole
        running = _RUNNING.fullmatch(text)
        if running:
            self.container = running.group(1)
            self._output.clear()
        elif not _BUILDER.match(text):
            self._output.add(text)
        if failure_of(event):
            self.error = event

    def reason(self) -> str:
        """Why the build failed: for a command that failed, the line of its output that names the cause. Empty without a failure.

        >>> log = BuildLog()
        >>> log.add({"stream": "E: Unable to locate package x\\n"})
        >>> log.add({"error": "The command 'apt-get …' returned a non-zero code: 100", "errorDetail": {"code": 100}})
        >>> log.reason()
        'E: Unable to locate package x (exit code 100)'
        """
        if not self.error:
            return ""
        code, cause = (self.error.get("errorDetail") or {}).get("code"), self._output.cause()
        if code and cause:
            return f"{cause.rstrip('.')} (exit code {code})"
        return failure_of(self.error)


class BuildCount:
    """The bytes of a build: those that the step in progress has written, and those of the steps before it."""

    def __init__(self, engine: BuildEngine, log: BuildLog) -> None:
        self._engine, self._log = engine, log
        self._container, self._written, self._before = "", 0, 0

    def bytes(self) -> int:
        """Ask the engine. A container that is gone, or an engine that does not answer, leaves the count as it is."""
        container = self._log.container
        if container != self._container:
            self._before += self._written
            self._container, self._written = container, 0
        with suppress(ComputeError):
            found = self._engine.sizes(container) if container else {}
            self._written = int(found.get("SizeRw") or 0) if found else self._written
        return self._before + self._written


def build_image(engine: BuildEngine, wanted: Build, progress: str) -> str:
    """Build an image, and return its ID; raises an EngineError if it fails or lasts too long. Counts its bytes in ``progress``."""
    log, agent = BuildLog(), engine.agent
    count = BuildCount(engine.hasty(COUNT_TIMEOUT), log)
    in_time = run_counted(lambda: engine.build(wanted, log.add), count.bytes, progress, deadline_in(wanted.seconds))
    late = "it has not ended within %d s; raise image_build_timeout, or check the network of the agent"
    reason = log.reason() if in_time else late % wanted.seconds
    image = engine.image(wanted.name) if log.is_whole and not reason else None
    if image is None:
        reason = reason or "the engine ended the build early; check the log of that engine"
        raise EngineError(f"{agent or 'The engine'}: {wanted.name} cannot be built: {reason}.", agent)
    return str(image["Id"])
