# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A connection to a Docker Engine: clients with a timeout, and one sentence for each request that fails."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import copy
import re
import threading
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Sequence, Set, TypeVar

from .._core.calls import timed
from .._core.constants import LABEL_SESSION
from .._core.errors import ConflictError, EngineError, TakenError
from .._core.waiting import retry_until
from .error_text import advice, clean, is_taken

HTTP_CONFLICT = 409
DEFAULT_ADVICE = "check the log of that engine"
_LATE = "timed out"
# A manager with Engine 23 or newer asks the Swarm for a volume that it does not have, and a leader with an older engine knows no
# volumes of a Swarm: https://github.com/moby/moby/blob/v23.0.0/api/server/router/volume/volume_routes.go
_UNKNOWN_TO_LEADER = re.compile(r"unknown method \w*Volumes? for service docker\.swarmkit\.v1\.Control")


Self = TypeVar("Self", bound="Connection")
Value = TypeVar("Value")


class AbsentError(EngineError):
    """The engine has no such container, image, network or volume."""

    code = "absent"


class UnreachableError(EngineError):
    """The engine does not answer."""

    code = "unreachable"


class LateError(UnreachableError):
    """The engine did not answer in time: it may answer later."""


class Connection:
    """A connection that threads may share: each request borrows a client, and returns it for the next request.

    ``agent`` is the name that error messages use. The engine is not contacted before the first request.
    """

    def __init__(self, sdk: Any, docker_host: str, timeout: int, agent: str) -> None:
        self.agent = agent
        self.where = f"the engine of {agent}" if agent else "the engine"
        self._host = docker_host
        self._timeout = timeout
        self._sdk = sdk
        self._version = "auto"
        self._idle: List[Any] = []
        self._lock = threading.Lock()
        # Containers whose folders no policy bounds: a container keeps its labels.
        self._unbounded: Set[str] = set()

    def hasty(self: Self, seconds: int) -> Self:
        """A connection to the same engine, each request of which takes at most so many seconds."""
        made = copy.copy(self)
        made._timeout, made._idle, made._lock = min(seconds, self._timeout), [], threading.Lock()
        return made

    def _or_none(self, call: Any, *arguments: Any, **options: Any) -> Any:
        """The call's answer, or None if the engine has no such object."""
        try:
            return call(*arguments, **options)
        except self._sdk.errors.NotFound:
            return None
        except self._sdk.errors.APIError as error:
            if not _UNKNOWN_TO_LEADER.search(str(error)):
                raise
            return None

    @contextmanager
    def _asking(self, what: str, subject: str = "") -> Iterator[Any]:
        """Lend a client, and turn its error into one sentence: what failed, for which container, and why."""
        errors = self._sdk.errors
        try:
            client = self._borrow()
            with timed(what, subject):
                yield client
        except errors.NotFound as error:
            raise AbsentError(self._sentence(what, subject, error), self.agent) from error
        except errors.APIError as error:
            sentence = self._sentence(what, subject, error)
            kind = ConflictError if error.status_code == HTTP_CONFLICT else EngineError
            raise (TakenError if is_taken(sentence) else kind)(sentence, self.agent) from error
        except (errors.DockerException, OSError) as error:  # requests' own errors are OSErrors
            kind = LateError if _root(error) == _LATE else UnreachableError
            raise kind(self._silence(subject, error), self.agent) from error
        # A client is not used again after an error: its connection may be in any state.
        with self._lock:
            self._idle.append(client)

    def _borrow(self) -> Any:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        client = self._sdk.APIClient(base_url=self._host, version=self._version, timeout=self._timeout, max_pool_size=1)
        self._version = client.api_version
        return client

    def _sentence(self, what: str, subject: str, error: Any) -> str:
        text = error.explanation or str(error)
        reason = clean(text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text))
        return f"{self._speaker(subject)} could not {what}: {reason}; {advice(reason, DEFAULT_ADVICE)}."

    def _silence(self, subject: str, error: Exception) -> str:
        reason = _root(error) or clean(str(error))
        advised = advice(reason, DEFAULT_ADVICE, is_silent=True)
        return f"{self._speaker(subject)} does not answer at {self._host}: {reason}; {advised}."

    def _speaker(self, subject: str) -> str:
        return f"{subject}: {self.where}" if subject else self.where[:1].upper() + self.where[1:]


def _root(error: BaseException | None) -> str:
    """The operating system's message at the bottom of a chain of errors."""
    words = ""
    while error is not None:
        words = getattr(error, "strerror", None) or words
        if isinstance(error, TimeoutError):
            words = _LATE
        error = error.__cause__ or error.__context__
    return words


def label_filter(session: str = "") -> Dict[str, Sequence[str]]:
    """The engine's filter for what belongs to a session, or to any session."""
    return {"label": [LABEL_SESSION + "=" + session if session else LABEL_SESSION]}


def persist(call: Callable[[], Value], deadline: float) -> Value:
    """Call until the engine does not refuse; raises the last error at the deadline of the monotonic clock.

    An engine refuses for a moment to remove what is in use: a container that it already removes, a network whose last
    endpoint is leaving (https://github.com/moby/moby/issues/27754, https://github.com/moby/moby/issues/32634).
    """
    return retry_until(call, is_refusal, deadline)


def is_refusal(error: Exception) -> bool:
    """Whether an engine that answers has refused a request."""
    return isinstance(error, (EngineError, ConflictError)) and not isinstance(error, UnreachableError)
