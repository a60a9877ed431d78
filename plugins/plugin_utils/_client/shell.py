# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands in the containers of a session, from the controller, over the ``ssh_config`` of the session."""

from __future__ import annotations

import os
import resource
import secrets
import selectors
import shlex
import signal
import subprocess
import time
from contextlib import suppress
from typing import IO, Any, List, Sequence

from ...module_utils._shared.constants import CONFIG_FOLDER, RUNTIME_PATH
from ...module_utils._shared.documents import validation
from ...module_utils._shared.errors import ComputeError, InputError, NotLaunchedError, visible_lines
from .answers import LATE, UNREACHABLE, Answer, most_bytes
from .session_dir import Artifacts

# Each call has connections of its own, which end with it.
OPTIONS = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "-o", "ControlPath=none")
# Bytes of a command: it goes through a pipe before the connection stands.
LONGEST = 60000
_BLOCK = 1 << 16
# Files that this process has open beside the pipes of ssh.
_OTHER_FILES = 256

# Runs in any image: it needs nothing but the runtime. The command arrives on standard input, so that no list of processes on
# the controller shows it. When the connection ends, for whatever reason, what the command has started ends, in any process group.
SCRIPT = """
command=$({bin}/head -c "$1")
echo "$2"
exec 3<&0
{bin}/setsid "${{SHELL:-{bin}/sh}}" -c "$command" </dev/null 3<&- &
child=$!
runtime={runtime} config={config}
. $runtime/libexec/life.sh
{{ {bin}/cat; end_session $child; }} <&3 3<&- >/dev/null 2>&1 &
watcher=$!
wait $child
code=$?
kill $watcher 2>/dev/null
exit $code
""".format(bin=RUNTIME_PATH + "/bin", runtime=RUNTIME_PATH, config=CONFIG_FOLDER)


class Shell:
    """The containers of one session, as ``session.json`` on the controller names them."""

    def __init__(self, artifacts: str, name: str) -> None:
        folder = Artifacts(artifacts, name)
        content = folder.read("session.json")
        if content is None:
            rule = (
                "%s has no session.json: sessions.yml lists the sessions; only the controller of a launch has the keys"
            )
            raise NotLaunchedError("session_name", name, rule % folder.folder)
        self.config = os.path.join(folder.folder, "ssh_config")
        self.document = validation.session_document(content, folder.folder + "/session.json")

    def command(self, host: str, script: str) -> List[str]:
        """The command line of ssh for a script of the user's shell."""
        return ["ssh", "-F", self.config, *OPTIONS, "--", host, script]

    def run(self, hosts: Sequence[str], command: str, seconds: float) -> List[Answer]:
        """Run a command in all containers at the same time; one answer for each, in order."""
        sent = command.encode("utf-8", "surrogateescape")
        if len(sent) > LONGEST:
            raise InputError("session_exec_command", command, "must be at most %d bytes long" % LONGEST)
        marker = f"cluster-compute-{secrets.token_hex(16)}"
        arguments = [RUNTIME_PATH + "/bin/sh", "-c", SCRIPT, "sh", str(len(sent)), marker]
        script = " ".join(map(shlex.quote, arguments))
        talks: List[_Talk] = []
        _permit_pipes(len(hosts))
        try:
            for host in hosts:
                talks.append(_Talk(host, self.command(host, script), marker, most_bytes(len(hosts))))
                talks[-1].send(sent)
            read_answers(talks, time.monotonic() + seconds)
        finally:
            for talk in talks:
                talk.end()
        return [talk.answer(seconds) for talk in talks]


class Output:
    """The output of a container: everything up to a line that proves the connection, then the last bytes."""

    def __init__(self, marker: str, limit: int) -> None:
        self._marker, self._limit = marker.encode() + b"\n", limit
        self._head = b""
        self._tail = bytearray()
        self._dropped = 0
        self.is_connected = False

    def add(self, block: bytes) -> None:
        if not self.is_connected:
            # A shell of the image may print something of its own before.
            before, found, block = (self._head + block).partition(self._marker)
            self.is_connected, self._head = bool(found), before[-_BLOCK:]
        self._tail += block
        excess = len(self._tail) - self._limit
        if excess > self._limit:
            del self._tail[:excess]
            self._dropped += excess

    @property
    def left_out(self) -> int:
        return self._dropped + max(0, len(self._tail) - self._limit)

    @property
    def content(self) -> bytes:
        return bytes(self._tail[-self._limit :])

    @property
    def complaint(self) -> str:
        """Return what ssh wrote before it gave up: its last line."""
        lines = [line for line in visible_lines(self._head) if line.strip()]
        return lines[-1].strip().rstrip(".") if lines else "ssh ended without a message"


class _Talk:
    """One ssh process."""

    def __init__(self, host: str, command: Sequence[str], marker: str, limit: int) -> None:
        self.host = host
        self.output = Output(marker, limit)
        self.is_open = True
        self.process = start_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def send(self, content: bytes) -> None:
        """The command. Standard input stays open: its end ends the command."""
        with suppress(BrokenPipeError):  # ssh has failed already: its output says why
            pipe(self.process.stdin).write(content)
            pipe(self.process.stdin).flush()

    def read(self) -> bool:
        """Take what is there; says whether there may be more."""
        block = os.read(pipe(self.process.stdout).fileno(), _BLOCK)
        self.is_open = bool(block)
        self.output.add(block)
        return self.is_open

    def end(self) -> None:
        """End the process if it still runs, and close its pipes."""
        if not self.is_open:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(5)
        stop_process(self.process)

    def answer(self, seconds: float) -> Answer:
        kept = (self.output.content, self.output.left_out)
        if self.is_open:
            return Answer(self.host, LATE, *kept, problem=f"no end within {seconds:g} s")
        if not self.output.is_connected:
            return Answer(self.host, UNREACHABLE, problem=f"no connection: {self.output.complaint}")
        code = self.process.returncode
        return Answer(self.host, code if code >= 0 else UNREACHABLE, *kept)


def _permit_pipes(processes: int) -> None:
    """Let this process open two pipes for each of these processes, as far as its hard limit goes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = min(2 * processes + _OTHER_FILES, hard)
    if soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def read_answers(talks: Sequence[Any], deadline: float) -> None:
    """Read all outputs until each has ended, or the time is over."""
    with selectors.DefaultSelector() as selector:
        for talk in talks:
            selector.register(pipe(talk.process.stdout), selectors.EVENT_READ, talk)
        while selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                return
            ready = [key for key, _events in selector.select(left)]
            for key in [key for key in ready if not key.data.read()]:
                selector.unregister(key.fileobj)


def start_process(command: Sequence[str], **streams: Any) -> subprocess.Popen[bytes]:
    """A process in a group of its own: ssh starts another one for the way through main1."""
    try:
        return subprocess.Popen(command, start_new_session=True, **streams)
    except FileNotFoundError as error:
        raise ComputeError(f"{command[0]} is missing on the controller: install it.") from error
    except OSError as error:
        raise ComputeError(f"{command[0]} cannot be started on the controller: {error.strerror}.") from error


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and those that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def stop_process(process: subprocess.Popen[bytes]) -> None:
    """End a process and those that it has started, and close its pipes."""
    kill(process)
    for stream in filter(None, (process.stdin, process.stdout, process.stderr)):
        with suppress(BrokenPipeError):
            stream.close()
    process.wait()


def pipe(stream: IO[bytes] | None) -> IO[bytes]:
    """A stream that this module has asked for."""
    if stream is None:
        raise ValueError("this process has no such pipe")
    return stream
