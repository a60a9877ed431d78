# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The client of a Docker Engine, and the only importer of the Docker SDK for Python."""

from __future__ import annotations

import sys
import threading
import traceback
from typing import Any, Dict, List, Mapping, Sequence

from ..._shared import label
from ..._shared.codec import Json
from ..._shared.documents.report import ObservedContainer
from ..._shared.errors import LibraryError
from ..._shared.image_reference import names_of
from ..._shared.names import run_folder
from ..._shared.parallel import run_all
from .connection import AbsentError, Connection, LateError, UnreachableError, label_filter
from .container_requests import ContainerRequests
from .reports import EngineInfo, container_entry, engine_name, has_own_hostname, is_ours, may_be_renamed


class NetworkRequests(Connection):
    """Requests for networks and for the place of a container on a network."""

    def networks(self, session: str = "", everyone: bool = False) -> List[Json]:
        filters = {} if everyone else label_filter(session)
        with self._asking("list its networks") as client:
            return list(client.networks(filters=filters))

    def network(self, identity: str) -> Json | None:
        with self._asking(f"inspect network {identity}") as client:
            return self._or_none(client.inspect_network, identity)

    def create_network(self, name: str, body: Mapping[str, Any]) -> str:
        """Create a network, and return its ID. The body holds the keyword arguments of the SDK's low-level call."""
        with self._asking(f"create network {name}") as client:
            return str(client.create_network(name, check_duplicate=True, **body)["Id"])

    def remove_network(self, identity: str, name: str = "") -> None:
        with self._asking("remove network %s" % (name or identity)) as client:
            self._or_none(client.remove_network, identity)

    def connect(self, identity: str, network: str, place: Mapping[str, Any], subject: str = "") -> None:
        with self._asking(f"connect it to network {network}", subject) as client:
            client.connect_container_to_network(identity, network, **place)

    def disconnect(self, identity: str, network: str, subject: str = "") -> None:
        """Disconnect a container from a network that may be gone."""
        with self._asking(f"disconnect it from network {network}", subject) as client:
            self._or_none(client.disconnect_container_from_network, identity, network, force=True)


__all__ = ["AbsentError", "Engine", "LateError", "UnreachableError", "load_sdk"]


class Engine(ContainerRequests, NetworkRequests):
    """The Docker Engine of one agent.

    ``docker_host`` is its address, as in ``DOCKER_HOST``. ``timeout`` is in seconds, for each request. ``agent`` is the name
    that error messages use. Every request raises an EngineError (AbsentError, UnreachableError) or a ConflictError.
    """

    def __init__(self, docker_host: str, timeout: int = 60, agent: str = "") -> None:
        super().__init__(load_sdk(docker_host), docker_host, timeout, agent)

    def info(self) -> EngineInfo:
        with self._asking("describe itself") as client:
            return EngineInfo.of(client.info())

    def api(self) -> str:
        """The version of the API that the engine and the SDK have negotiated."""
        with self._asking("return its version") as client:
            return str(client.api_version)

    def containers(self, session: str = "", everyone: bool = False) -> List[Json]:
        """The engine's list of containers in any state: of one session, of all sessions, or with C(everyone) all containers."""
        filters = {} if everyone else label_filter(session)
        with self._asking("list its containers") as client:
            listed = client.containers(all=True, filters=filters)
        self._unbounded.update(one["Id"] for one in listed if not (one.get("Labels") or {}).get(label.FOLDERS))
        return [container for container in listed if everyone or self.is_own(container)]

    def is_own(self, listed: Json) -> bool:
        """Return whether a container belongs to a session, also if someone has renamed it. Only such a container takes a request."""
        if is_ours(listed) or not may_be_renamed(listed):
            return is_ours(listed)
        return has_own_hostname(listed, self.inspect(listed["Id"], engine_name(listed)))

    def members(self, session: str) -> Dict[str, Json]:
        """The containers of a session by their ID in its plan. One with its own name comes before one that was renamed."""
        found = sorted(self.containers(session), key=is_ours)
        return {container["Labels"].get(label.CONTAINER, ""): container for container in found}

    def image(self, reference: str) -> Json | None:
        with self._asking(f"inspect image {reference}") as client:
            return next(filter(None, (self._or_none(client.inspect_image, name) for name in names_of(reference))), None)

    def volume(self, name: str) -> Json | None:
        with self._asking(f"inspect volume {name}") as client:
            return self._or_none(client.inspect_volume, name)

    def volumes(self, labelled: str = label.SESSION) -> List[Json]:
        with self._asking("list volumes") as client:
            return list(client.volumes(filters={"label": [labelled]}).get("Volumes") or [])

    def create_volume(self, name: str, labels: Mapping[str, str]) -> None:
        """Create a volume; one that exists stays as it is."""
        with self._asking(f"create volume {name}") as client:
            client.create_volume(name, labels=dict(labels))

    def remove_volume(self, name: str) -> None:
        """Remove a volume that no container mounts. A volume that is gone is no error."""
        with self._asking(f"remove volume {name}") as client:
            self._or_none(client.remove_volume, name)


# What a thread hides is hidden from all.
_LOADING = threading.Lock()


def load_sdk(docker_host: str) -> Any:
    """The Docker SDK, without paramiko, whose import takes as long as all the rest, until an address is an ssh:// address."""
    is_by_ssh = docker_host.startswith("ssh://")
    with _LOADING:
        hidden = not is_by_ssh and not {"docker", "paramiko"} & sys.modules.keys()
        if hidden:
            sys.modules["paramiko"] = None  # type: ignore[assignment]
        try:
            import docker

            if is_by_ssh:
                from docker.transport.sshconn import SSHHTTPAdapter

                # The SDK may have been loaded without it.
                docker.api.client.SSHHTTPAdapter = SSHHTTPAdapter  # type: ignore[attr-defined]
        except ImportError as error:
            raise LibraryError("paramiko" if error.name == "paramiko" else "docker", traceback.format_exc()) from error
        finally:
            if hidden:
                del sys.modules["paramiko"]
    return docker


def session_containers(engine: Engine, sessions: Sequence[str]) -> List[Json]:
    listed = engine.containers(session=sessions[0]) if len(sessions) == 1 else engine.containers()
    return [container for container in listed if container["Labels"].get(label.SESSION) in sessions]


def waits_for_secrets(engine: Engine, identity: str, container: str, hostname: str) -> bool:
    """Return whether PID 1 of a container that runs waits: it was started without its secrets, and has no sshd yet."""
    return engine.has_path(identity, run_folder(container) + "/.waits_for_secrets", hostname)


def container_entries(engine: Engine, listed: Sequence[Json]) -> List[ObservedContainer]:
    """Report entries of containers, in their order. Only stopped containers are inspected, for how they have ended."""

    def entry(container: Json) -> ObservedContainer:
        has_ended = container["State"] not in ("created", "planned", "running")
        try:
            inspected = engine.inspect(container["Id"], engine_name(container)) if has_ended else None
        except LateError:
            engine.check_answers()
            inspected = None
        return container_entry(container, inspected)

    return run_all(entry, listed)
