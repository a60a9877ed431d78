# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A connection to a Docker Engine: clients with a timeout, and one sentence for each request that fails."""

from __future__ import annotations

import copy
import math
import re
import socket
import sys
import threading
import time
from contextlib import closing, contextmanager
from typing import Any, Callable, Dict, Iterator, List, Mapping, Sequence, Set, TypeVar

from ..._shared import label
from ..._shared.calls import timed
from ..._shared.constants import RUNTIME_PATH
from ..._shared.errors import ComputeError, ConflictError, EngineError, TakenError
from ..._shared.waiting import deadline_in, retry_until

HTTP_CONFLICT = 409
# Seconds for a request or a program in a container after one deadline: that of a healthy container needs one on a busy host.
_LEAST = 10.0
PODMAN = "Libpod-API-Version"
_OTHER = (
    "%s at %s is Podman (API %s), which does not run sessions: disable podman.socket on that host, remove the package podman-docker, "
    "and run provision_agents.yml, which installs Docker Engine; or set agent_docker_host to the address of a Docker Engine."
)
DEFAULT_ADVICE = "check the log of that engine"
_LATE = "timed out"
# A manager with Engine 23 or newer asks the Swarm for a volume that it does not have, and a leader with an older engine knows no
# volumes of a Swarm: https://github.com/moby/moby/blob/v23.0.0/api/server/router/volume/volume_routes.go
_UNKNOWN_TO_LEADER = re.compile(r"unknown method \w*Volumes? for service docker\.swarmkit\.v1\.Control")


Self = TypeVar("Self", bound="Connection")
Value = TypeVar("Value")
Found = TypeVar("Found")


class AbsentError(EngineError):
    """The engine has no such container, image, network or volume."""

    code = "absent"


class UnreachableError(EngineError):
    """The engine does not answer."""

    code = "unreachable"


class OtherEngineError(EngineError):
    """Another program answers in the place of Docker Engine."""

    code = "other_engine"


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
        self._end = math.inf
        self._version = ""
        self._idle: List[Any] = []
        self._lock = threading.Lock()
        # Containers whose folders no policy bounds: a container keeps its labels.
        self._unbounded: Set[str] = set()

    def hasty(self: Self, seconds: int) -> Self:
        """A connection to the same engine, each request of which takes at most so many seconds."""
        made = copy.copy(self)
        made._timeout = min(seconds, self._timeout)
        return made

    def with_one_deadline(self: Self) -> Self:
        """The same connection, whose requests and programs in containers together wait little longer than one may: each can hang."""
        made = copy.copy(self)
        made._end = deadline_in(self._timeout)
        return made

    def _left(self) -> float:
        """Seconds for the next request, or for a program in a container."""
        return min(self._timeout, max(_LEAST, self._end - time.monotonic()))

    def _or_none(self, call: Callable[..., Found], *arguments: Any, **options: Any) -> Found | None:
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
        # The SDK lets errors of these libraries through. The second is loaded for an ssh:// address.
        from urllib3.exceptions import HTTPError

        errors, ssh_error = self._sdk.errors, getattr(sys.modules.get("paramiko"), "SSHException", HTTPError)
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
        except (errors.DockerException, HTTPError, ssh_error, OSError) as error:  # requests' own errors are OSErrors
            kind = LateError if _root(error) == _LATE else UnreachableError
            raise kind(self._silence(subject, error), self.agent) from error
        # A client is not used again after an error: its connection may be in any state.
        with self._lock:
            self._idle.append(client)

    def _borrow(self) -> Any:
        with self._lock:
            client = self._idle.pop() if self._idle else None
        if client is None:
            self._version = self._version or self._answered()
            client = self._client(self._version)
        client.timeout = self._left()
        return client

    def check_answers(self) -> None:
        """Raise UnreachableError if the engine is silent: after a late answer, it may be silent about one container alone."""
        with self._asking("answer") as client:
            _pinged(client)

    def _answered(self) -> str:
        """The engine's version of the API, as Docker's own client asks for it: for what the SDK asks, an engine starts programs."""
        with closing(self._client(self._sdk.constants.DEFAULT_DOCKER_API_VERSION)) as client:
            headers = _pinged(client).headers
        # Each answer of Podman has it: https://github.com/containers/podman/blob/main/pkg/api/server/handler_api.go
        if PODMAN in headers:
            raise OtherEngineError(_OTHER % (self._speaker(""), self._host, headers[PODMAN]), self.agent)
        return str(headers.get("Api-Version") or "auto")

    def _client(self, version: str) -> Any:
        client = self._sdk.APIClient(base_url=self._host, version=version, timeout=self._timeout, max_pool_size=1)
        # No proxy and no password of the environment is for a socket: `requests` would look for them at each request.
        client.trust_env = not self._host.startswith("unix://")
        return client

    def _sentence(self, what: str, subject: str, error: Any) -> str:
        text = error.explanation or str(error)
        reason = clean_message(text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text))
        return f"{self._speaker(subject)} could not {what}: {reason}; {advice(reason, DEFAULT_ADVICE)}."

    def _silence(self, subject: str, error: Exception) -> str:
        reason = _root(error) or clean_message(str(error))
        advised = advice(reason, DEFAULT_ADVICE, is_silent=True)
        return f"{self._speaker(subject)} does not answer at {self._host}: {reason}; {advised}."

    def _speaker(self, subject: str) -> str:
        return f"{subject}: {self.where}" if subject else self.where[:1].upper() + self.where[1:]


def _pinged(client: Any) -> Any:
    """The response to the request for which an engine does no work."""
    response = client._get(client._url("/_ping", versioned_api=False))
    client._raise_for_status(response)
    return response


def _root(error: BaseException | None) -> str:
    """The operating system's message at the bottom of a chain of errors, which ends where an error of a former request begins."""
    words = ""
    while error is not None and not isinstance(error, ComputeError):
        words = getattr(error, "strerror", None) or words
        if isinstance(error, (TimeoutError, socket.timeout)):  # the same since Python 3.10
            words = _LATE
        error = error.__cause__ or error.__context__
    return words


def label_filter(session: str = "") -> Dict[str, Sequence[str]]:
    """The engine's filter for what belongs to a session, or to any session."""
    return {"label": [label.SESSION + "=" + session if session else label.SESSION]}


def persist(call: Callable[[], Value], deadline: float) -> Value:
    """Call until the engine does not refuse; raises the last error at the deadline of the monotonic clock.

    An engine refuses for a moment to remove what is in use: a container that it already removes, a network whose last
    endpoint is leaving (https://github.com/moby/moby/issues/27754, https://github.com/moby/moby/issues/32634).
    """
    return retry_until(call, is_refusal, deadline)


def is_refusal(error: Exception) -> bool:
    """Return whether an engine that answers has refused a request about something that exists."""
    return isinstance(error, (EngineError, ConflictError)) and not isinstance(error, (AbsentError, UnreachableError))


# The words of an engine, and what people can do about them.
LONGEST = 300

_NOISE = (
    r"error response from daemon: ",
    r"failed to create shim(?: task)?: ",
    r"failed to create task for container: ",
    r"oci runtime create failed: ",
    r"(?:container_linux|standard_init_linux|process_linux)\.go:\d+: ",
    r"runc create failed: ",
    r"starting container process caused:? ",
    r"unable to start container process: ",
    r"failed to set up container networking: ",
    r"driver failed programming external connectivity on endpoint \S+ \([0-9a-f]+\): ",
)
_NOISE_PATTERN = re.compile("|".join(_NOISE), re.IGNORECASE)

UNPAUSE = "run `docker unpause` there, and this again"
# ``naming_image`` puts the name in the place of "its image".
THE_IMAGE = "correct its image, or choose another"

# Of an engine that does not answer.
_SILENT = (
    (r"permission denied", "add the user to group docker, or become root"),
    (r"connection refused|no such file or directory|connection aborted", "start the engine"),
    (
        r"not supported url scheme",
        "the Docker SDK for Python of that host is older than its library requests can serve: pip install --upgrade docker there",
    ),
    (r"known_hosts|authentication|unable to connect to port", "make sure that ssh logs in there without a question"),
)

_ADVICE = (
    (r"no such image|pull access denied|manifest unknown", "build or pull the image there, or choose another"),
    (
        r"unauthorized|authentication required|no basic auth credentials",
        "log in: set session_registry, session_registry_username and session_registry_password",
    ),
    (
        r"no such host|network is unreachable|no route to host|connection refused|i/o timeout|handshake timeout|awaiting headers",
        "make sure that this host can reach it",
    ),
    (
        r"port is already allocated|bind (?:for|host port) .*: address already in use|listen tcp",
        "free that port or choose another",
    ),
    (r"could not select device driver", "install the NVIDIA container toolkit there, or ask for no GPUs"),
    (r"unknown device|nvidia-container-cli", "check the GPUs that this agent declares"),
    (r"failed to mount local volume", "check the options of that mount, and that the host can mount it"),
    (r"gathering device information|no such device", "use a device that exists there"),
    (r"bind source path does not exist", "create that directory on the agent"),
    (r"range of cpus|requested cpus are not available", "ask for fewer CPUs"),
    (r"minimum memory limit", "ask for more memory"),
    (r"error setting rlimit", "restart its engine with higher limits"),
    (r"no space left on device", "free some space on that disk"),
    (r"pool overlaps", "choose another pool of subnets, or remove the overlapping network"),
    (r"storage-opt|storage option|pquota", "set session_disk to 0, or use a storage driver with quotas there"),
    (r"address already in use", "remove the container that has that address on the network"),
    (r"could not find an available|all predefined address pools", "remove unused networks"),
    (r"does not support reading", "read it where its logging driver sends it"),
    (r"not a swarm manager", "run this on a manager of the Swarm"),
    (r"permission denied", "give the engine of that host access to that path: a file server may refuse root"),
    (re.escape(RUNTIME_PATH) + r"\S*: no such file", "run provision_agents.yml, which fills the SSH runtime"),
    (r"no such file or directory|not a directory|is a directory|executable file not found", THE_IMAGE),
    (
        r"did not receive an exit event",
        "a program in it waits for a file server or a disk: end the session again when that answers",
    ),
    (r"timed out|timeout", "check the load of that host, and run the same command again"),
    (r"network \S+ not found", "run the same command again to create the network"),
    (
        r"active endpoints",
        "remove the containers that are still on it; if there are none, the engine has lost track of one: start the engine again",
    ),
    (r" is paused", UNPAUSE),
    (r"in use by task", "an agent still has containers on it: terminate the session again once that agent answers"),
)


_TAKEN = re.compile(
    r"port is already allocated|(?:bind (?:for|host port)|listen tcp).*address already in use|pool overlaps",
    re.IGNORECASE,
)


def is_taken(text: str) -> bool:
    """Return whether the engine refuses a port or a subnet because something else has it.

    >>> is_taken("Pool overlaps with other one on this address space")
    True
    """
    return bool(_TAKEN.search(text))


def clean_message(text: str) -> str:
    """The engine's message as one line, without prefixes that name its internal functions."""
    line = _NOISE_PATTERN.sub("", " ".join(text.split()))
    line = re.sub(r"(?:: unknown|[.\s])+$", "", line)
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def failure_of(event: Mapping[str, Any]) -> str:
    """Return the error in a progress event. An engine may leave one of the two fields for it empty."""
    text = (event.get("errorDetail") or {}).get("message") or event.get("error") or ""
    return clean_message(str(text)).rstrip(".")


def advice(text: str, otherwise: str, is_silent: bool = False) -> str:
    """Return a remedy for an engine's message, or for an engine that does not answer; ``otherwise`` if none is known."""
    known = _SILENT + _ADVICE if is_silent else _ADVICE
    return next((what for pattern, what in known if re.search(pattern, text, re.IGNORECASE)), otherwise)


@contextmanager
def naming_image(image: str) -> Iterator[None]:
    """Errors of the image, with its name."""
    try:
        yield
    except ComputeError as error:
        error.message = error.message.replace(THE_IMAGE, THE_IMAGE.replace("its image", "image " + image))
        raise
