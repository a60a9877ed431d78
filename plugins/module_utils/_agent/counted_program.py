# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run a program until a deadline, and count the bytes of the folder that it fills."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from typing import Sequence

from .._shared.errors import StateError
from .._shared.waiting import deadline_in, wait_until
from .engine.counting import ProgramOutput, run_counted

CHUNK = 1 << 16
# Seconds in which a program must end after TERM, and in which a folder must be measured.
GRACE = 10
COUNT_TIMEOUT = 10


def run_program(agent: str, argv: Sequence[str], folder: str, seconds: int, progress: str) -> None:
    """Run a program that fills a folder, whose bytes are counted in ``progress``. A StateError if it fails or lasts too long."""
    where, program = agent or "the host", argv[0]
    output = ProgramOutput()
    # What it makes is for all users of an image, whatever the umask of root is.
    umask = os.umask(0o022)
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        message = f"{where}: {program} cannot be run: {error.strerror}."
        raise StateError(message, agent) from error
    finally:
        os.umask(umask)
    try:
        in_time = run_counted(
            lambda: _read(process, output),
            lambda: size_of(folder),
            progress,
            deadline_in(seconds),
        )
    finally:
        _stop(process)
    if not in_time:
        message = "%s: %s has not ended within %d s; raise image_build_timeout, or check the network of the agent."
        raise StateError(message % (where, program, seconds), agent)
    if process.returncode:
        reason = output.cause().rstrip(".") or "no output"
        message = "%s: %s failed (exit code %d): %s." % (where, program, process.returncode, reason)
        raise StateError(message, agent)


def size_of(folder: str) -> int:
    """The bytes that a folder takes on its file system, without file systems that are mounted below it; 0 if unknown.

    >>> size_of("/nowhere")
    0
    """
    command = ["du", "-s", "-k", "-x", "--", folder]
    try:
        # Files that vanish meanwhile fail the program, which prints the sum nevertheless.
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=COUNT_TIMEOUT, check=False
        )
        return 1024 * int(done.stdout.split()[0])
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError):
        return 0


def _read(process: subprocess.Popen[bytes], output: ProgramOutput) -> None:
    """Take the output to its end. A character that two pieces share becomes an escape."""
    pipe = process.stdout
    while pipe is not None:
        piece = os.read(pipe.fileno(), CHUNK)
        if not piece:
            break
        output.add(piece.decode("utf-8", "backslashreplace"))
    process.wait()


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a program, and all that it has started, which may outlive it: TERM first, so that it can remove its files."""
    if _is_gone(process):
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        if wait_until(lambda: _is_gone(process), deadline_in(GRACE)):
            return


def _is_gone(process: subprocess.Popen[bytes]) -> bool:
    """Return whether neither the program nor any process of its group is left."""
    process.poll()
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return True
    return False
