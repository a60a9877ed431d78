# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Programs that run for the command or the front end, and end with it."""

from __future__ import annotations

import signal
import subprocess
from contextlib import ExitStack
from typing import Any, Callable, List, Sequence

INTERRUPTED = 130


def run(words: Sequence[str], watch: Callable[[Any], object] = id, *, interrupt: int = 0, **options: Any) -> int:
    """The exit code of a program, which TERM and the end of the terminal end from the moment at which it is begun.

    ``watch`` gets the program that has begun. ``interrupt`` is what it gets, once, for Ctrl-C. One on the same terminal
    gets that anyway, and another would cut short how it undoes its work.
    """
    came: List[int] = []
    program: subprocess.Popen[Any] | None = None

    def pass_on(number: int, _frame: Any) -> None:
        came.append(number)
        if program and came.count(number) == 1:
            program.send_signal(interrupt if number == signal.SIGINT else signal.SIGTERM)

    with ExitStack() as after:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # nohup ignores the end of the terminal, and a shell Ctrl-C for what it runs in the background.
            if signal.getsignal(number) != signal.SIG_IGN:
                after.callback(signal.signal, number, signal.signal(number, pass_on))
        program = subprocess.Popen(words, **options)
        after.callback(program.terminate)
        if came:
            pass_on(came.pop(), None)
        watch(program)
        code = program.wait()
    return INTERRUPTED if came else code
