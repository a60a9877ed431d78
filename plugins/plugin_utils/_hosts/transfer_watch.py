# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pass on to the callback what actions want shown, such as the bytes of a transfer, which a second connection counts on the host."""

from __future__ import annotations

import copy
import os
import re
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Iterator

from ansible.errors import AnsibleError

# Seconds between two questions. Over SSH, each is a command on the connection that Ansible keeps open.
PERIOD = 2.0
# Connections whose commands do not disturb each other: each is a process of its own.
_SEPARATE = frozenset(("ssh", "local"))
_COUNT = re.compile(rb"([0-9]{1,18})(?: ([0-9]{1,18}))?\n")


@dataclass
class Terminal:
    """The callback's side of the live line. ``clear`` erases its live line: an action writes it before a line of its own on standard
    error, and ``clear_result`` before one on standard output, which may go to a file.

    ``folder`` takes a file for each host on which a transfer is in progress: the bytes that have arrived, and all or 0.
    ``agents`` is a file for a task that works on many agents: how many have ended, and all. ``phase`` is a file for a task with
    phases of its own: the phase in progress. The file ``unread`` appears when no one reads standard output any more.
    """

    clear: str = ""
    clear_result: str = ""
    folder: str = ""
    agents: str = ""
    phase: str = ""
    unread: str = ""

    @property
    def is_unread(self) -> bool:
        return bool(self.unread) and os.path.exists(self.unread)


# Set by the callback before Ansible forks the workers, which run the actions.
TERMINAL = Terminal()


@contextmanager
def watched(connection: Any, host: str, command: str, total: int = 0) -> Iterator[None]:
    """Ask the host for bytes during the block, and leave them where the callback finds them.

    The command prints the bytes that have been transferred and, if it knows them, all; ``total`` stands for those otherwise.
    Where nothing shows the count, nothing is asked.
    """
    transport = str(getattr(connection, "transport", "")).rpartition(".")[2]
    if not TERMINAL.folder or transport not in _SEPARATE:
        yield
        return
    path, ended = os.path.join(TERMINAL.folder, host), threading.Event()
    # The module waits on the original.
    asker = threading.Thread(
        target=_ask_repeatedly, args=(copy.copy(connection), command, total, path, ended), daemon=True
    )
    asker.start()
    try:
        yield
    finally:
        ended.set()
        asker.join(PERIOD)
        with suppress(OSError):
            os.unlink(path)


def _ask_repeatedly(connection: Any, command: str, total: int, path: str, ended: threading.Event) -> None:
    while not ended.wait(PERIOD):
        try:
            code, printed, _errors = connection.exec_command(command, in_data=None, sudoable=False)
        except AnsibleError:
            continue
        found = _COUNT.match(printed) if code == 0 else None
        if found and not ended.is_set():
            with suppress(OSError):
                write_whole(path, "%d %d" % (int(found.group(1)), int(found.group(2) or total)))


def write_whole(path: str, text: str) -> None:
    """Replace the file, so that a reader finds a whole text. Workers of several hosts may write the same file at once."""
    new = f"{path}.{os.getpid()}-{threading.get_ident()}~"
    with open(new, "w", encoding="ascii") as file:
        file.write(text)
    os.replace(new, path)
