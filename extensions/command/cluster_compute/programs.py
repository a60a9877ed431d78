# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Programs that run for the command or the front end, and end with it."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import ExitStack
from typing import Any, Callable, List, Sequence

INTERRUPTED = 130


def run(words: Sequence[str], watch: Callable[[Any], object] = id, *, interrupt: int = 0, **options: Any) -> int:
    """Run a program and return its exit code, or 130 after a signal. SIGTERM and SIGHUP end it, also while it starts.

    ``watch`` is called with the started program. ``interrupt`` is the signal that the program gets for the first Ctrl-C. The
    default, 0, sends nothing: a program on the same terminal gets SIGINT anyway, and a second one would stop its cleanup.
    """
    came: List[int] = []
    program: subprocess.Popen[Any] | None = None

    def pass_on(number: int, _frame: Any) -> None:
        came.append(number)
        if program and program.poll() is None and came.count(number) == 1:
            # Up to ansible-core 2.18, the workers of a playbook outlive it.
            whom = -program.pid if options.get("start_new_session") else program.pid
            os.kill(whom, interrupt if number == signal.SIGINT else signal.SIGTERM)

    with ExitStack() as after:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # Ignored signals stay ignored: nohup ignores SIGHUP, and a shell ignores SIGINT for background programs.
            if signal.getsignal(number) != signal.SIG_IGN:
                after.callback(signal.signal, number, signal.signal(number, pass_on))
        program = subprocess.Popen(words, **options)
        after.callback(program.terminate)
        if came:
            pass_on(came.pop(), None)
        watch(program)
        code = program.wait()
    return INTERRUPTED if came else code
