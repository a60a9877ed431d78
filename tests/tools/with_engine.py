#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a command with a Docker Engine: the engine that answers, or else an engine that is started and stopped here.

Usage: with_engine.py COMMAND [ARGUMENT ...]
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

DEFAULT_HOST = "unix:///var/run/docker.sock"
PATIENCE = 60.0  # seconds for an engine to start or to stop
# Engine 20.10 runs its own program four times for each start of a container. Half of their processor time is garbage collection,
# which is not worth it in a program that ends at once: https://pkg.go.dev/runtime#hdr-Environment_Variables
SPARING = "GOGC=800"


class EngineError(RuntimeError):
    """Why there is no engine, as a sentence."""


def engine_host() -> str:
    """The address of the engine of this run."""
    return os.environ.get("DOCKER_HOST") or DEFAULT_HOST


def answers(host: str) -> bool:
    """Whether an engine answers at a unix socket; an address of another kind is assumed to be correct."""
    if not host.startswith("unix://"):
        return True
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        try:
            connection.connect(host[len("unix://") :])
            connection.sendall(b"GET /_ping HTTP/1.0\r\nHost: engine\r\n\r\n")
            return b" 200 " in connection.recv(64)
        except OSError:
            return False


def _start(host: str, log: Path) -> subprocess.Popen[bytes]:
    if host != DEFAULT_HOST:
        raise EngineError(f"No Docker Engine answers at DOCKER_HOST={host}: start it, or unset DOCKER_HOST.")
    if shutil.which("dockerd") is None:
        raise EngineError("No Docker Engine answers and dockerd is not installed: apt-get install -y docker.io")
    if os.geteuid() != 0:
        raise EngineError("No Docker Engine answers and only root can start one: start the docker service first.")
    with log.open("wb") as sink:
        command = ["env", SPARING, "dockerd"]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, start_new_session=True)


def _await(process: subprocess.Popen[bytes], host: str, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not answers(host):
        if process.poll() is not None or time.monotonic() > deadline:
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
            raise EngineError(
                f"The Docker Engine that was started for this run does not answer; the end of its log:\n{tail}"
            )
        time.sleep(0.2)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(timeout=PATIENCE)


@contextlib.contextmanager
def engine() -> Iterator[str]:
    """The address of an engine that answers. An engine that is started here is stopped at the end."""
    host = engine_host()
    if answers(host):
        yield host
        return
    with tempfile.TemporaryDirectory(prefix="cluster-compute-engine-") as folder:
        log = Path(folder) / "dockerd.log"
        process = _start(host, log)
        try:
            _await(process, host, log)
            yield host
        finally:
            _stop(process)


def main(command: list[str]) -> int:
    """Run the command and return its exit code."""
    if not command:
        print(__doc__, file=sys.stderr)
        return 64
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with engine():
            return subprocess.call(command)
    except EngineError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
