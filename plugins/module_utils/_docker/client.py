# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The only door to a Docker Engine: its requests, each with a timeout, and its refusals as one sentence each."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import posixpath
import sys
import tarfile
import threading
import traceback
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Mapping, Sequence

from ansible_collections.cluster.compute.plugins.module_utils._core.constants import LABEL_SESSION
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import (
    ConflictError,
    EngineError,
    LibraryError,
)
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._docker.error_text import advice, clean
from ansible_collections.cluster.compute.plugins.module_utils._docker.image_reference import names_of
from ansible_collections.cluster.compute.plugins.module_utils._docker.reports import is_ours
from ansible_collections.cluster.compute.plugins.module_utils._docker.streams import MIB, Pieces, last, unframed

MOST_LINKS = 8
HTTP_NOT_FOUND = 404
CHUNK = 1 << 16
# Whatever an image or a container's user has put in place of a small file: no more of it is read.
LONGEST_FILE = MIB
# An agent holds several logs at once, hands them on as JSON, and the head keeps them: nobody reads more of one than this.
LONGEST_LOG = 4 * MIB
LOOK = "look at that engine's log"


class AbsentError(EngineError):
    """The engine does not know what was asked for."""

    code = "absent"


class UnreachableError(EngineError):
    """The engine does not answer at all."""

    code = "unreachable"


class Engine:
    """One agent's engine. Threads may share it: a client is lent to one request at a time, and kept for the next.

    ``agent`` is the name that error sentences use. Nothing is asked of the engine before the first request.
    """

    def __init__(self, docker_host: str, timeout: int = 60, agent: str = "") -> None:
        self.agent = agent
        self.where = "the engine of %s" % agent if agent else "the engine"
        self._host = docker_host
        self._timeout = timeout
        self._sdk = load_sdk(docker_host)
        self._version = "auto"
        self._idle: List[Any] = []
        self._lock = threading.Lock()

    # What the engine is and has

    def info(self) -> Json:
        with self._asking("describe itself") as client:
            return dict(client.info())

    def api(self) -> str:
        """The version of the API that engine and SDK have agreed on."""
        with self._asking("tell its version") as client:
            return str(client.api_version)

    def image(self, reference: str) -> Json | None:
        """An image's own description, or nothing where the engine does not have it."""
        with self._asking("inspect image %s" % reference) as client:
            tried = (self._or_none(client.inspect_image, name) for name in names_of(reference))
            found: Json | None = next((one for one in tried if one is not None), None)
            return found

    def volume(self, name: str) -> Json | None:
        with self._asking("inspect volume %s" % name) as client:
            found: Json | None = self._or_none(client.inspect_volume, name)
            return found

    def volumes(self) -> List[Json]:
        """The volumes with our label."""
        with self._asking("list volumes") as client:
            return list(client.volumes(filters=_label_filter("")).get("Volumes") or [])

    def remove_volume(self, name: str) -> None:
        """Remove a volume that nobody mounts; one that is gone already is fine."""
        with self._asking("remove volume %s" % name) as client:
            self._or_none(client.remove_volume, name)

    # Containers

    def containers(self, session: str = "", everyone: bool = False) -> List[Json]:
        """Containers in any state as the engine lists them: ours, those of one session, or everyone's."""
        filters = {} if everyone else _label_filter(session)
        with self._asking("list its containers") as client:
            listed = client.containers(all=True, filters=filters)
        return [one for one in listed if everyone or is_ours(one)]

    def inspect(self, identity: str, subject: str = "") -> Json | None:
        with self._asking("inspect it", subject) as client:
            found: Json | None = self._or_none(client.inspect_container, identity)
            return found

    def create(self, name: str, body: Json, subject: str = "") -> str:
        """Create a container from the engine's own document; gives back the engine's id."""
        with self._asking("create it", subject or name) as client:
            return str(client.create_container_from_config(body, name)["Id"])

    def start(self, identity: str, subject: str = "") -> None:
        with self._asking("start it", subject) as client:
            client.start(identity)

    def unpause(self, identity: str, subject: str = "") -> None:
        with self._asking("resume it", subject) as client:
            client.unpause(identity)

    def stop(self, identity: str, grace: int, subject: str = "") -> None:
        with self._asking("stop it", subject) as client:
            client.stop(identity, timeout=grace)

    def remove(self, identity: str, subject: str = "") -> None:
        """Remove a container, running or not, with its anonymous volumes; one that is gone already is fine."""
        with self._asking("remove it", subject) as client:
            self._or_none(client.remove_container, identity, v=True, force=True)

    def logs(self, identity: str, tail: int | None = None, since: int = 0, timestamps: bool = False) -> str:
        """Both output streams, as they came; of what is long no more than the end."""
        params = {"stdout": 1, "stderr": 1, "timestamps": int(timestamps), "since": since}
        params["tail"] = "all" if tail is None else tail  # type: ignore[assignment]
        with self._asking("read its logs") as client:
            # The SDK's own call holds it all in memory, or waits without a deadline.
            answer = client._get(client._url("/containers/{0}/logs", identity), params=params, stream=True)
            client._raise_for_status(answer)
            return last(unframed(answer.iter_content(CHUNK)), LONGEST_LOG).decode("utf-8", "replace")

    # Files of a container, running or not

    def put_archive(self, identity: str, path: str, archive: bytes, subject: str = "") -> None:
        """Unpack a tar archive below a folder that exists in the container."""
        with self._asking("take files below %s" % path, subject) as client:
            client.put_archive(identity, path, archive)

    def path_stat(self, identity: str, path: str, subject: str = "") -> Json | None:
        """What is at a path (``mode``, ``linkTarget`` …) without reading it: a final link is told, not followed."""
        with self._asking("look for %s" % path, subject) as client:
            url = client._url("/containers/{0}/archive", identity)
            answer = client.head(url, params={"path": path}, timeout=self._timeout)
            if answer.status_code == HTTP_NOT_FOUND:
                return None
            client._raise_for_status(answer)
            header = answer.headers.get("x-docker-container-path-stat", "")
            return dict(self._sdk.utils.decode_json_header(header))

    def has_path(self, identity: str, path: str, subject: str = "") -> bool:
        return self.path_stat(identity, path, subject) is not None

    def read_file(self, identity: str, path: str, subject: str = "", most: int = LONGEST_FILE) -> bytes | None:
        """A file's first bytes, links followed inside the container; none of what is no file, None where nothing is."""
        for _hop in range(MOST_LINKS):
            member, content = self._member(identity, path, subject, most)
            if member is None or not member.issym():
                return content
            path = posixpath.normpath(posixpath.join(posixpath.dirname(path), member.linkname))
        return b""

    def _member(self, identity: str, path: str, subject: str, most: int) -> tuple[tarfile.TarInfo | None, bytes | None]:
        with self._asking("read %s" % path, subject) as client:
            found = self._or_none(client.get_archive, identity, path)
            if found is None:
                return None, None
            pieces = Pieces(found[0])
            with tarfile.open(fileobj=pieces, mode="r|") as archive:  # type: ignore[call-overload]
                member = archive.next()
                file = archive.extractfile(member) if member is not None and member.isfile() else None
                content = file.read(most) if file is not None else b""
            # A connection is used again once it is read to its end; that of a folder or a long file is given up instead.
            if member is not None and not member.isdir() and member.size <= most:
                pieces.drain()
            return member, content

    # Networks

    def networks(self, session: str = "", everyone: bool = False) -> List[Json]:
        filters = {} if everyone else _label_filter(session)
        with self._asking("list its networks") as client:
            return list(client.networks(filters=filters))

    def network(self, identity: str) -> Json | None:
        with self._asking("inspect network %s" % identity) as client:
            found: Json | None = self._or_none(client.inspect_network, identity)
            return found

    def create_network(self, name: str, body: Mapping[str, Any]) -> str:
        """Create a network; the body has the keyword arguments of the SDK's low-level call."""
        with self._asking("create network %s" % name) as client:
            return str(client.create_network(name, check_duplicate=True, **body)["Id"])

    def remove_network(self, identity: str, name: str = "") -> None:
        with self._asking("remove network %s" % (name or identity)) as client:
            self._or_none(client.remove_network, identity)

    def connect(self, identity: str, network: str, endpoint: Json, subject: str = "") -> None:
        """Put a container on a network again, after the network was made anew."""
        with self._asking("connect it to network %s" % network, subject) as client:
            self._or_none(client.disconnect_container_from_network, identity, network, force=True)
            address = (endpoint.get("IPAMConfig") or {}).get("IPv4Address")
            client.connect_container_to_network(
                identity, network, ipv4_address=address, aliases=endpoint.get("Aliases")
            )

    # The door itself

    def _or_none(self, call: Any, *arguments: Any, **options: Any) -> Any:
        """The call's answer, or nothing where the engine says that there is no such thing."""
        try:
            return call(*arguments, **options)
        except self._sdk.errors.NotFound:
            return None

    @contextmanager
    def _asking(self, what: str, subject: str = "") -> Iterator[Any]:
        """Lend a client, and say in one sentence what the engine would not do, to which container, and why."""
        errors = self._sdk.errors
        try:
            client = self._borrow()
            yield client
        except errors.NotFound as error:
            raise AbsentError(self._sentence(what, subject, error), self.agent) from error
        except errors.APIError as error:
            kind = ConflictError if error.status_code == 409 else EngineError
            raise kind(self._sentence(what, subject, error), self.agent) from error
        except (errors.DockerException, OSError) as error:  # requests' own errors are OSErrors
            raise UnreachableError(self._silence(subject, error), self.agent) from error
        # After an error the connection may be in any state: such a client is not used again.
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
        return "%s could not %s: %s; %s." % (self._speaker(subject), what, reason, advice(reason, LOOK))

    def _silence(self, subject: str, error: Exception) -> str:
        reason = _root(error) or clean(str(error))
        advised = advice(reason, LOOK)
        return "%s does not answer at %s: %s; %s." % (self._speaker(subject), self._host, reason, advised)

    def _speaker(self, subject: str) -> str:
        return "%s: %s" % (subject, self.where) if subject else self.where[:1].upper() + self.where[1:]


def _root(error: BaseException | None) -> str:
    """The operating system's words at the bottom of an error, below what the layers above made of them."""
    words = ""
    while error is not None:
        words = getattr(error, "strerror", None) or words
        if isinstance(error, TimeoutError):
            words = "timed out"
        error = error.__cause__ or error.__context__
    return words


def _label_filter(session: str) -> Dict[str, Sequence[str]]:
    return {"label": [LABEL_SESSION + "=" + session if session else LABEL_SESSION]}


def load_sdk(docker_host: str) -> Any:
    """The Docker SDK for Python.

    It imports paramiko where that is installed, which takes as long as all the rest, and needs it for ssh:// alone.
    """
    hidden = "paramiko" not in sys.modules and not docker_host.startswith("ssh://")
    if hidden:
        sys.modules["paramiko"] = None  # type: ignore[assignment]
    try:
        import docker
    except ImportError as error:
        raise LibraryError("docker", traceback.format_exc()) from error
    finally:
        if hidden:
            del sys.modules["paramiko"]
    return docker
