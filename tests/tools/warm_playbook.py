# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ansible-playbook without its imports: a process that has imported Ansible forks for each run.

The imports take two fifths of the processor time of a short playbook. A run is otherwise the program itself: the same arguments,
environment, working directory and exit code, and a process tree of its own, which can be killed. Tests of other signals and of what
process lists show start the program. A process of another account, with another copy of the checkout, makes the runs of that account.

    code, text = run_warm(environment, ["playbooks/sessions.yml"], cwd, seconds)

Programs that start ansible-playbook themselves start a stand-in, which lets such a process make the run. For a program that gives its
runs another environment:

    warm_playbook.py PROGRAM [ARGUMENT ...]
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "drill"))

from playbook_runs import Interruption, kill_family
from warm_ansible import LONGEST

MOST = 4  # processes: each environment needs one, except for
# What a run changes after the import.
OF_RUNS = ("HOME", "PATH", "PWD", "PYTEST_CURRENT_TEST", "XDG_RUNTIME_DIR")
PROGRAM = (sys.executable, str(Path(__file__).with_name("warm_ansible.py")))
PIECE = 1 << 16
ROOT = Path(__file__).resolve().parents[2]
BRIEF = 120  # seconds of a run that takes few
PATIENCE = 30  # seconds for runs to end that a test has left
# A stand-in for ansible-playbook, of the same account as the process that makes its runs.
STAND_IN = """#!/usr/bin/python3 -IS
import json, os, socket, sys
asked = {"environment": dict(os.environ), "arguments": sys.argv[1:], "cwd": os.getcwd()}
status, theirs = os.pipe()
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as runs:
    runs.connect(PATH)
    socket.send_fds(runs, [json.dumps(asked).encode()], [1, theirs, 2])
os.close(theirs)
with os.fdopen(status) as said:
    _process, code = said.read().split()
sys.exit(int(code))
"""
_processes: dict[str, WarmPlaybook] = {}
_lock = threading.Lock()


class WarmPlaybook:
    """The process for environments that differ in OF_RUNS: Ansible reads the rest and the file of ANSIBLE_CONFIG as it is imported."""

    def __init__(self, environment: Mapping[str, str], program: Sequence[str] = PROGRAM) -> None:
        self._socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            command = [*program, str(other.fileno())]
            self._process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, pass_fds=[other.fileno()]
            )

    def run(
        self,
        environment: Mapping[str, str],
        arguments: Sequence[str],
        cwd: Path,
        seconds: float,
        more: Mapping[str, str] | None = None,
    ) -> tuple[int, str]:
        """The exit code and the output of a run. At the deadline, everything that it has started is killed."""
        asked = {**_asked(environment, arguments, cwd), **(more or {})}
        with self._run(asked, seconds) as (_pid, output, status, deadline):
            text = b"".join(iter(lambda: _piece(output, deadline), b""))
            return int(_line(status, deadline)), text.decode(errors="replace")

    def interrupted(
        self,
        environment: Mapping[str, str],
        arguments: Sequence[str],
        cwd: Path,
        seconds: float,
        interruption: Interruption,
    ) -> tuple[bool, str]:
        """Whether a run was killed at a line of its output, and its output until then. What it has left running is not awaited."""
        text = ""
        with self._run(_asked(environment, arguments, cwd), seconds) as (pid, output, status, deadline):
            while piece := _piece(output, deadline):
                text += piece.decode(errors="replace")
                if any(map(interruption.matches, text.splitlines())):
                    interruption.send(pid)
                    _line(status, deadline)
                    return True, text
        return False, text

    @contextmanager
    def _run(self, asked: Mapping[str, object], seconds: float) -> Iterator[tuple[int, int, int, float]]:
        """A run: its process, the descriptors of its output and of its exit code, and its deadline."""
        output, status = self._begin(json.dumps(asked).encode())
        deadline = time.monotonic() + seconds
        with os.fdopen(output, "rb", 0), os.fdopen(status, "rb", 0):
            pid = int(_line(status, deadline))
            try:
                yield pid, output, status, deadline
            except BaseException:
                kill_family(pid)
                raise

    def make(self, request: bytes, descriptors: Sequence[int]) -> None:
        """Make a run for a stand-in, with the descriptors that came with its request."""
        socket.send_fds(self._socket, [request], descriptors)

    def end(self) -> None:
        self._socket.close()
        self._process.wait()

    def _begin(self, request: bytes) -> tuple[int, int]:
        """The descriptors of its output, and of the line with its process, which the line with its exit code follows."""
        output, their_output = os.pipe()
        status, their_status = os.pipe()
        try:
            socket.send_fds(self._socket, [request], [their_output, their_status])
        finally:
            os.close(their_output)
            os.close(their_status)
        return output, status


@contextmanager
def stand_in(folder: Path, environment: Mapping[str, str], patience: float = PATIENCE) -> Iterator[Path]:
    """A stand-in for ansible-playbook in a directory, and the process for its runs, in this environment. What has not ended is killed."""
    with _requests(folder) as (made, runs):
        command = [*PROGRAM, str(runs.fileno())]
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, pass_fds=[runs.fileno()]
        )
        try:
            yield made
        finally:
            runs.sendto(b"", runs.getsockname())
            try:
                process.wait(patience)
            except subprocess.TimeoutExpired:
                kill_family(process.pid)
                process.wait()


@contextmanager
def _requests(folder: Path) -> Iterator[tuple[Path, socket.socket]]:
    """A stand-in for ansible-playbook in a directory, and the socket for its requests."""
    path, made = folder / "runs", folder / "ansible-playbook"
    made.write_text(STAND_IN.replace("PATH", repr(str(path))))
    made.chmod(0o755)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as runs:
        runs.bind(str(path))
        path.chmod(0o700)
        yield made, runs


def run_warm(
    environment: Mapping[str, str],
    arguments: Sequence[str],
    cwd: Path,
    seconds: float,
    program: Sequence[str] = PROGRAM,
) -> tuple[int, str]:
    """A run in the process for this environment."""
    return warm_playbook(environment, program).run(environment, arguments, cwd, seconds)


def run_of_checkout(
    cli: str, arguments: Sequence[str], cwd: Path, own: Mapping[str, str] | None = None, before: str = ""
) -> tuple[int, str]:
    """A run of ansible-playbook, ansible-inventory or ansible (``adhoc``) with the settings of the checkout, in one process for all.

    ``own`` is added to the environment, and ``before`` runs in the process of the run: it may replace parts of the collection.
    """
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
    process = warm_playbook(environment)
    return process.run({**environment, **(own or {})}, arguments, cwd, BRIEF, {"cli": cli, "before": before})


def warm_playbook(environment: Mapping[str, str], program: Sequence[str] = PROGRAM) -> WarmPlaybook:
    """The process for this environment and program. The oldest one ends if there are too many; its runs go on."""
    kept = {name: value for name, value in environment.items() if name not in OF_RUNS}
    key = json.dumps([*program, kept], sort_keys=True)
    with _lock:
        if key not in _processes:
            while len(_processes) >= MOST:
                _processes.pop(next(iter(_processes))).end()
            _processes[key] = WarmPlaybook(environment, program)
        return _processes[key]


def with_stand_in(command: Sequence[str]) -> int:
    """The exit code of a program that starts the stand-in. Each environment that it gives a run has its own process."""
    with tempfile.TemporaryDirectory() as folder, _requests(Path(folder)) as (_made, runs):
        threading.Thread(target=_hand_out, args=[runs], daemon=True).start()
        environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
        code = subprocess.run(command, env=environment, check=False).returncode
        runs.sendto(b"", runs.getsockname())
    for process in _processes.values():
        process.end()
    return code


def _hand_out(runs: socket.socket) -> None:
    """Give each request of a stand-in to the process for its environment, until an empty one."""
    while True:
        request, descriptors, _flags, _address = socket.recv_fds(runs, LONGEST, 3)
        if not request:
            return
        try:
            warm_playbook(json.loads(request)["environment"]).make(request, descriptors)
        except Exception as error:  # The stand-in fails when the descriptors are closed.
            print(error, file=sys.stderr)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)


def _asked(environment: Mapping[str, str], arguments: Sequence[str], cwd: Path) -> dict[str, object]:
    """The request of a run."""
    return {"environment": dict(environment), "arguments": list(arguments), "cwd": str(cwd)}


def _piece(descriptor: int, deadline: float) -> bytes:
    ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
    if not ready:
        raise TimeoutError("the playbook has not ended in time")
    return os.read(descriptor, PIECE)


def _line(descriptor: int, deadline: float) -> bytes:
    """A line of a few bytes, which arrives in one piece."""
    line = _piece(descriptor, deadline)
    if not line:
        raise ChildProcessError("the process that runs playbooks has ended")
    return line


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    sys.exit(with_stand_in(sys.argv[1:]))
