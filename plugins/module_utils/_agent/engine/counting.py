# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Work that takes minutes: count its bytes in a file that others can read meanwhile, and find why it failed."""

from __future__ import annotations

import os
import re
import threading
import time
from contextlib import contextmanager, suppress
from typing import Callable, Iterator, List, Optional

from ..._shared.errors import escape_control
from ..._shared.parallel import Outcome, map_bounded, values_of
from ..._shared.waiting import wait_until

# Seconds between two counts. A count that takes long is made less often: it gets at most a fifth of the time.
PERIOD = 2.0
PATIENCE = 4
# Characters that are kept of an output, lines that are searched, and characters of a message.
LONGEST = 1 << 14
MOST_LINES = 20
LONGEST_LINE = 300

# As apt, pip, compilers and shells begin the line of a failure. Lines of programs that report the failure of another one follow.
_ERROR = re.compile(r"E: |error\b|fatal\b|.*: (?:fatal )?error: ", re.IGNORECASE)
# As pip names a file after a longer text: its package, its address, and lines with the two digests.
_OTHER_CONTENT = re.compile(r"(\S+==\S+) from (\S+)(?: \(from .*\))?: Expected sha256 ")

Write = Callable[[str], None]


@contextmanager
def progress_file(path: Optional[str]) -> Iterator[Optional[Write]]:
    """A function that writes one line into a new file, which all users can read. Without a file: None.

    A file that cannot be written costs the count, not the work. The name is never followed if it is a link.
    """
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644) if path else -1
    except OSError:
        file = -1
    if file < 0:
        yield None
        return

    def write(text: str) -> None:
        # The end of a longer text may remain behind the line. A full disk costs the count, too.
        with suppress(OSError):
            os.pwrite(file, text.encode() + b"\n", 0)

    try:
        yield write
    finally:
        os.close(file)


def run_counted(work: Callable[[], None], count: Callable[[], object], path: Optional[str], deadline: float) -> bool:
    """Do the work in a thread, and keep what ``count`` returns in the file; raises the error of the work.

    Returns False at the deadline of the monotonic clock. The thread does not keep the process from ending, and what it still
    does ends with the process.
    """
    outcomes: List[Outcome[Callable[[], None], None]] = []
    worker = threading.Thread(target=lambda: outcomes.extend(map_bounded(lambda one: one(), [work])), daemon=True)
    worker.start()
    with progress_file(path) as write:
        pause = PERIOD

        def has_ended() -> bool:
            """Wait for the thread for a while, and then count."""
            nonlocal pause
            worker.join(max(0.0, min(pause, deadline - time.monotonic())))
            if worker.is_alive() and write is not None:
                begun = time.monotonic()
                write(str(count()))
                pause = max(PERIOD, PATIENCE * (time.monotonic() - begun))
            return not worker.is_alive()

        if not wait_until(has_ended, deadline, first_pause=0.0):
            return False
    [_done] = values_of(outcomes)
    return True


class ProgramOutput:
    """The end of an output that arrives in pieces: the memory used does not depend on the program."""

    def __init__(self) -> None:
        self._end = ""

    def add(self, text: str) -> None:
        self._end = (self._end + text)[-LONGEST:]

    def clear(self) -> None:
        self._end = ""

    def cause(self) -> str:
        """The first of the last lines that reports an error, else the last line, without control characters; may be empty.

        >>> output = ProgramOutput()
        >>> output.add("Reading…\\nE: Unable to locate package x\\nI: removing files…\\nE: failed to run\\n")
        >>> output.cause()
        'E: Unable to locate package x'
        """
        lines = [" ".join(line.split()) for line in escape_control(self._end).split("\n") if line.strip()][-MOST_LINES:]
        replaced = _OTHER_CONTENT.search(" ".join(lines))
        if replaced:
            lines = ["ERROR: {} at {} does not have the digest that the requirements name".format(*replaced.groups())]
        found = next((line for line in lines if _ERROR.match(line)), lines[-1] if lines else "")
        return found if len(found) <= LONGEST_LINE else found[: LONGEST_LINE - 1] + "…"
