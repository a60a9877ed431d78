# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The engine's requests for containers: their state, their logs and their files."""

from __future__ import annotations

import math
import posixpath
import re
import socket
import tarfile
from contextlib import contextmanager, suppress
from typing import Any, Callable, Iterator, Mapping, Sequence, Tuple

from ..._shared import label
from ..._shared.codec import Json
from ..._shared.constants import RUNTIME_PATH
from ..._shared.errors import ConflictError, EngineError, escape_control
from ..._shared.waiting import deadline_in, retry_until, wait_until
from .archives import Entry, pack_archive
from .connection import Connection
from .streams import Answers, Pieces, last, reading, unframed, until

MOST_LINKS = 8
# Attempts to read a file that a program writes.
_MOST_READS = 5
# Seconds in which the engine notices the end of a container.
_READING = 2.0
HTTP_NOT_FOUND = 404
CHUNK = 1 << 16
# No more is read of a file, whatever an image or a container's user has put in its place.
LONGEST_FILE = 1 << 20
# A program of the runtime with a script, and the script's exit code if there is no such file.
_BUSYBOX = RUNTIME_PATH + "/bin/busybox"
_SHELL, _ABSENT = (_BUSYBOX, "sh", "-c"), 44
# Seconds for busy managers of a Swarm. An engine waits 20 s for them: swarmRequestTimeout of
# https://github.com/moby/moby/blob/v26.1.5/daemon/cluster/cluster.go
BUSY_SWARM = 90.0
_BUSY_SWARM = re.compile("attaching to network failed.*context deadline exceeded")
_BEING_REMOVED = "is already in progress"
# Seconds for what PID 1 confirms: longer than it waits for it (60), and than it takes to unpack it (60).
CONFIRMATION = 150.0
# No more is kept of a log.
LONGEST_LOG = 4 << 20


class _ReadError(EngineError):
    """A program in a container could not read a file."""


def _may_have_ended(error: Exception) -> bool:
    """The container may end before this program starts, or while it reads. One that is paused stays so."""
    return isinstance(error, (ConflictError, _ReadError)) and " is paused" not in str(error)


class ContainerRequests(Connection):
    """Requests for containers in any state."""

    def inspect(self, identity: str, subject: str = "") -> Json | None:
        with self._asking("inspect it", subject) as client:
            return self._or_none(client.inspect_container, identity)

    def create(self, name: str, body: Mapping[str, Any], subject: str = "") -> str:
        """Create a container from the body of the engine's request, and return its ID in the engine.

        No label of its image becomes a label of the collection.
        """
        labels = {**dict.fromkeys(label.OF_CONTAINERS, ""), **body.get("Labels", {})}
        with self._asking("create it", subject or name) as client:
            return str(client.create_container_from_config({**body, "Labels": labels}, name)["Id"])

    def start(self, identity: str, subject: str = "") -> None:
        """Start a container. A Swarm whose managers are too busy to attach it in time is asked again."""

        def started() -> None:
            with self._asking("start it", subject) as client:
                client.start(identity)

        retry_until(started, lambda error: bool(_BUSY_SWARM.search(str(error))), deadline_in(BUSY_SWARM))

    def unpause(self, identity: str, subject: str = "") -> None:
        with self._asking("resume it", subject) as client:
            client.unpause(identity)

    def update(self, identity: str, limits: Mapping[str, Any], subject: str = "") -> None:
        """Change the limits of a container."""
        with self._asking("change its limits", subject) as client:
            # The SDK's own call does not know all limits.
            answer = client._post_json(client._url("/containers/{0}/update", identity), data=limits)
            client._raise_for_status(answer)

    def terminate(self, identity: str, subject: str = "") -> None:
        """Send TERM to PID 1, without waiting for the container's end."""
        with self._asking("send TERM to it", subject) as client:
            client.kill(identity, "SIGTERM")

    def stop(self, identity: str, grace: int, subject: str = "") -> None:
        with self._asking("stop it", subject) as client:
            client.stop(identity, timeout=grace)

    def rename(self, identity: str, name: str, subject: str = "") -> None:
        with self._asking(f"rename it to {name}", subject) as client:
            client.rename(identity, name)

    def remove(self, identity: str, subject: str = "", deadline: float = math.inf) -> None:
        """Remove a container, running or not, with its anonymous volumes. It may be gone, or go at the request of another command.

        The other removal is waited for until the deadline, and not longer than a request may take.
        """

        def removed() -> None:
            with self._asking("remove it", subject) as client:
                self._or_none(client.remove_container, identity, v=True, force=True)

        retry_until(removed, lambda error: _BEING_REMOVED in str(error), min(deadline, deadline_in(self._timeout)))

    def logs(
        self,
        identity: str,
        tail: int | None = None,
        since: int = 0,
        timestamps: bool = False,
        most: int = LONGEST_LOG,
        deadline: float = math.inf,
        errors_only: bool = False,
    ) -> str:
        """Both output streams, with visible control characters; only the end of a log longer than ``most``. Each is in the order of
        writing; the engine reads one beside the other.

        A container can write faster than it is read: reading ends at the deadline of the monotonic clock.
        """
        params = {"stdout": int(not errors_only), "stderr": 1, "timestamps": int(timestamps), "since": since}
        params["tail"] = "all" if tail is None else tail  # type: ignore[assignment]
        with self._asking("read its logs") as client:
            # The SDK's own call holds the whole log in memory, or waits without a deadline.
            answer = client._get(client._url("/containers/{0}/logs", identity), params=params, stream=True)
            client._raise_for_status(answer)
            pieces = until(unframed(answer.iter_content(CHUNK)), deadline)
            text = last(pieces, most).decode("utf-8", "replace")
            # A connection whose answer is not read to its end is not used again.
            answer.close()
        return escape_control(text)

    def stats(self, identity: str) -> Json | None:
        """A reading of the counters of a container, or None if it is gone."""
        with self._asking("measure a container") as client:
            # The SDK's own call has no parameter for a single reading before its release 6.
            url, params = client._url("/containers/{0}/stats", identity), {"stream": False, "one-shot": True}
            return self._or_none(lambda: client._result(client._get(url, params=params), json=True))

    def put_archive(self, identity: str, path: str, archive: bytes, subject: str = "") -> None:
        """Unpack a tar archive below an existing folder of the container."""
        if self._looks_inside(identity, subject):
            self.unpack(identity, path, archive, subject)
            return
        with self._asking(f"take files below {path}", subject) as client:
            client.put_archive(identity, path, archive)

    def unpack(self, identity: str, path: str, archive: bytes, subject: str = "") -> None:
        """Let a program in a running container unpack it. Not every connection can say that its data end: the program counts."""
        script = '"$0" head -c "$1" | "$0" tar -x -f - -C "$2"'
        self.feed(identity, (*_SHELL, script, _BUSYBOX, str(len(archive)), path), archive, subject)

    def feed(self, identity: str, command: Sequence[str], data: bytes, subject: str = "") -> None:
        """Run a command of root in a running container with these bytes as its standard input. An EngineError if it fails."""
        with self._asking("pass files on", subject) as client:
            made = client.exec_create(identity, list(command), stdin=True, user="0:0")
            code, _output = self._run(client, made["Id"], subject, CHUNK, data)
        if code:
            message = "%s could not unpack files (exit code %d); check the log of that engine."
            raise EngineError(message % (self._speaker(subject), code), self.agent)

    def execute(self, identity: str, command: Sequence[str], subject: str = "", user: str = "0:0") -> Tuple[int, str]:
        """Run a command in a running container. Returns its exit code, and the end of its output."""
        with self._asking("run a command", subject) as client:
            made = client.exec_create(identity, list(command), user=user)
            code, output = self._run(client, made["Id"], subject, CHUNK)
        return code, escape_control(output.decode("utf-8", "replace").strip())

    def _run(self, client: Any, program: str, subject: str, most: int, data: bytes = b"") -> Tuple[int, bytes]:
        """The exit code of a program in a container that gets this data, and the end of its output.

        An EngineError for a program without an end. Root of the container can keep a program from its end: the SDK's own reading would
        then wait without a deadline.
        """

        def ended() -> Json:
            found: Json = client.exec_inspect(program)
            return {} if found.get("Running") else found

        seconds, answer = self._left(), client.exec_start(program, socket=True)
        deadline, found, output = deadline_in(seconds), {}, b""
        stream = getattr(answer, "_sock", answer)
        stream.settimeout(seconds)
        try:
            with suppress(socket.timeout):
                if data:
                    stream.sendall(data)
                read = reading(answer, stream)
                output = last(until(unframed(iter(lambda: read(CHUNK), b"")), deadline), most)
                # The engine has the exit code a moment after the end of the output.
                found = wait_until(ended, deadline)
        finally:
            answer.close()
        if not found:
            message = (
                "%s: a program in it does not end within %g s; end the container, or look at what its processes do."
            )
            raise EngineError(message % (subject or self.where, seconds), self.agent)
        return int(found.get("ExitCode") or 0), output

    @contextmanager
    def standard_input(self, identity: str, subject: str = "") -> Iterator[Callable[..., None]]:
        """A function that sends bytes to the standard input of PID 1. Before the container starts, the engine keeps them for it.

        It returns as soon as PID 1 has confirmed with these words, in an error message, that it has everything: when this end of the
        connection closes, an engine may drop what it has not passed on (Docker 28.5). An EngineError if the container ends instead.
        Not every connection can say that its data end: PID 1 must see the end in the data.
        """
        with self._asking("open its standard input", subject) as client:
            answer = client.attach_socket(identity, params={"stdin": 1, "stderr": 1, "stream": 1})
        stream = getattr(answer, "_sock", answer)
        stream.settimeout(CONFIRMATION)
        read = reading(answer, stream)
        answers = Answers(unframed(iter(lambda: read(CHUNK), b"")))

        def send(data: bytes, wanted: bytes) -> None:
            with self._asking("pass its files on", subject) as client:
                stream.sendall(data)
                try:
                    if answers.has(wanted, deadline_in(CONFIRMATION)):
                        return
                except TimeoutError as error:
                    message = "%s did not pass on what it was sent within %g s; check the load of that host, and run this again."
                    raise EngineError(message % (self._speaker(subject), CONFIRMATION), self.agent) from error
                client.wait(identity, timeout=self._timeout)
            message = "%s ended at its start; check its log on that engine."
            raise EngineError(message % self._speaker(subject), self.agent)

        try:
            yield send
        finally:
            # The SDK has the socket, too: only a shutdown ends the connection, so that PID 1 does not wait for what never comes.
            with suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)
            answer.close()

    def put_file(self, identity: str, path: str, content: bytes, subject: str = "") -> None:
        """Write a file of root into an existing folder of the container."""
        folder = posixpath.dirname(path)
        self.put_archive(identity, folder, pack_archive([Entry(path, content)], folder), subject)

    def sizes(self, identity: str) -> Json:
        """The engine's entry of a container with the bytes that it has written; empty if it is gone."""
        with self._asking("measure a container") as client:
            return next(iter(client.containers(all=True, size=True, filters={"id": identity})), {})

    def path_stat(self, identity: str, path: str, subject: str = "") -> Json | None:
        """Return what is at a path (``mode``, ``linkTarget`` …), or None. A final symlink is returned and not followed."""
        with self._asking(f"look for {path}", subject) as client:
            url = client._url("/containers/{0}/archive", identity)
            answer = client.head(url, params={"path": path}, timeout=client.timeout)
            if answer.status_code == HTTP_NOT_FOUND:
                return None
            client._raise_for_status(answer)
            header = answer.headers.get("x-docker-container-path-stat", "")
            return dict(self._sdk.utils.decode_json_header(header))

    def has_path(self, identity: str, path: str, subject: str = "") -> bool:
        return self.path_stat(identity, path, subject) is not None

    def read_file(self, identity: str, path: str, subject: str = "", most: int = LONGEST_FILE) -> bytes | None:
        """A file's first bytes, with symlinks followed inside the container; b"" if it is not a file, None if nothing is there."""

        def content() -> bytes | None:
            inside = self._looks_inside(identity, subject)
            return (self._read_inside if inside else self._read_outside)(identity, path, subject, most)

        return retry_until(content, _may_have_ended, deadline_in(_READING))

    def read_text(self, identity: str, path: str, subject: str = "") -> str:
        """The text of a file, empty if there is none; bytes that are not UTF-8 are kept."""
        return (self.read_file(identity, path, subject) or b"").decode("utf-8", "surrogateescape")

    def _read_outside(self, identity: str, path: str, subject: str, most: int) -> bytes | None:
        for _hop in range(MOST_LINKS):
            member, content = self._untorn(identity, path, subject, most)
            if member is None or not member.issym():
                return content
            path = posixpath.normpath(posixpath.join(posixpath.dirname(path), member.linkname))
        return b""

    def _looks_inside(self, identity: str, subject: str) -> bool:
        """Return whether a program in the container handles its files: the engine would mount folders again that users can replace.

        The program sees what PID 1 has compared: check_folders in roles/image/files/init.sh.
        """
        if identity in self._unbounded:
            return False
        found = self.inspect(identity, subject)
        if found is None:
            return False
        if not ((found.get("Config") or {}).get("Labels") or {}).get(label.FOLDERS):
            self._unbounded.add(identity)
            return False
        return bool((found.get("State") or {}).get("Running"))

    def _read_inside(self, identity: str, path: str, subject: str, most: int) -> bytes | None:
        script = '[ -e "$1" ] || exit %d; [ ! -f "$1" ] || exec "$0" head -c "$2" "$1"' % _ABSENT
        with self._asking(f"read {path}", subject) as client:
            command = [*_SHELL, script, _BUSYBOX, path, str(most)]
            made = client.exec_create(identity, command, stderr=False, user="0:0")
            code, content = self._run(client, made["Id"], subject, most)
        if code not in (0, _ABSENT):
            message = "%s: no program can read %s (exit code %d); run this again."
            raise _ReadError(message % (subject or self.where, path, code), self.agent)
        return None if code else content

    def _untorn(self, identity: str, path: str, subject: str, most: int) -> tuple[tarfile.TarInfo | None, bytes | None]:
        """The entry of a file. The engine cuts the archive short, without an error, if a program shortens the file meanwhile."""
        for _attempt in range(_MOST_READS):
            with suppress(tarfile.ReadError):
                return self._member(identity, path, subject, most)
        raise EngineError(f"{subject or self.where}: {path} changes while it is read; run this again.", self.agent)

    def _member(self, identity: str, path: str, subject: str, most: int) -> tuple[tarfile.TarInfo | None, bytes | None]:
        with self._asking(f"read {path}", subject) as client:
            found = self._or_none(client.get_archive, identity, path)
            if found is None:
                return None, None
            pieces = Pieces(found[0])
            with tarfile.open(fileobj=pieces, mode="r|") as archive:  # type: ignore[call-overload]
                member = archive.next()
                file = archive.extractfile(member) if member is not None and member.isfile() else None
                content = file.read(most) if file is not None else b""
            # A connection can be used again after the answer is read completely. For a folder or a long file, it is dropped.
            if member is not None and not member.isdir() and member.size <= most:
                pieces.drain()
            return member, content
