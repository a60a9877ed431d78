# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Output of the playbooks for people: a line for each phase, regular lines during a long phase, a failure as one sentence."""

from __future__ import annotations

DOCUMENTATION = r"""
name: progress
type: stdout
short_description: One line for each phase of a launch
description:
  - Prints a line for each phase of the collection's playbooks with its duration, to standard error.
  - Prints the text of M(ansible.builtin.debug) tasks as it is, to standard output, and each line at once. So tables are readable,
    and programs can read JSON.
  - On a terminal, the last line shows the phase in progress, the number of agents that have finished, the bytes of an image that is
    pulled, copied or built, and the seconds. In a log, a phase that runs longer than ten seconds prints such a line every ten seconds.
  - A failure is printed once, at the end, as one sentence. A failure that the playbook handles is not printed.
  - With C(-v) or more, the output is that of P(ansible.builtin.default#callback).
author: The cluster.compute authors (@cluster-compute)
extends_documentation_fragment:
  - default_callback
  - result_format_callback
requirements:
  - Set C(stdout_callback = cluster.compute.progress) in the section C([defaults]) of C(ansible.cfg), or E(ANSIBLE_STDOUT_CALLBACK).
"""

import atexit
import os
import select
import signal
import sys
import tempfile
import threading
import time
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

from ansible import constants
from ansible.plugins.callback.default import CallbackModule as DefaultCallback

from ..module_utils._shared.errors import SessionError, escape_control
from ..module_utils._shared.planning.role_placement import IMPOSSIBLE
from ..plugin_utils._hosts.progress import CLEAR, Conducted, Progress, TaskFacts
from ..plugin_utils._hosts.transfer_watch import TERMINAL

_DEBUG = frozenset(("debug", "ansible.builtin.debug", "ansible.legacy.debug"))


def _brief(method: Callable[..., None]) -> Callable[..., None]:
    """A method for the short output. When the user asks for details, the method of Ansible's default output takes its place."""

    @wraps(method)
    def chosen(self: CallbackModule, *args: Any, **options: Any) -> None:
        own = method if self._is_quiet() else getattr(DefaultCallback, method.__name__)
        own(self, *args, **options)

    return chosen


def _hidden(name: str) -> Callable[..., None]:
    """A method that shows nothing unless the user asks for details."""

    def chosen(self: CallbackModule, *args: Any, **options: Any) -> None:
        if not self._is_quiet():
            getattr(DefaultCallback, name)(self, *args, **options)

    return chosen


class _Lasting:
    """A stream whose other end may close, or whose disk may be full: the run goes on without it.

    An error would end the thread of Ansible that reads what workers show and return, and the run would wait forever.
    Each line is there at once, also in a pipe or a file: someone may read it, or stop this run before its end.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> None:
        with suppress(OSError):
            self._stream.write(text)
            if "\n" in text:
                self._stream.flush()

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()


class CallbackModule(DefaultCallback):
    """Falls back to Ansible's default output when the user asks for details."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "cluster.compute.progress"

    def __init__(self) -> None:
        super().__init__()
        sys.stdout, sys.stderr = _Lasting(sys.stdout), _Lasting(sys.stderr)  # type: ignore[assignment]
        self._progress = Progress(started=time.monotonic())
        self._lock = threading.Lock()
        self._is_terminal = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._is_live = False
        self._pid = os.getpid()
        self._stopped = threading.Event()
        self._begun = False
        self._before: Dict[int, Any] = {}
        self._is_interrupted = False

    # Output

    def _print(self, lines: List[str], error: bool = False, result: bool = False) -> None:
        """Only results of playbooks are on the standard output."""
        with self._lock:
            self._wipe()
            for line in lines:
                # Texts of agents and containers are among the lines.
                self._display.display(escape_control(line), color="red" if error else None, stderr=not result)
            if lines:
                self._progress.printed = time.monotonic()

    def _wipe(self) -> None:
        if self._is_live:
            _write(CLEAR)
            self._is_live = False

    def _beat(self) -> None:
        """The thread that shows that a long phase goes on."""
        while not self._stopped.wait(1.0):
            with self._lock:
                now = time.monotonic()
                if _is_unread(1):
                    Path(TERMINAL.unread).touch()
                self._progress.transfers = _transfers(TERMINAL.folder)
                self._progress.agents = _counted(Path(TERMINAL.agents))
                self._progress.conducted = _conducted(Path(TERMINAL.phase))
                if self._is_terminal:
                    text = self._progress.live(now)[: _columns() - 1]
                    _write(CLEAR + text)
                    self._is_live = bool(text)
                else:
                    _write("".join(line + "\n" for line in self._progress.heartbeat(now)))

    def _is_quiet(self) -> bool:
        return int(self._display.verbosity) < 1

    # Events of a run

    @_brief
    def v2_playbook_on_start(self, playbook: Any) -> None:  # noqa: ARG002 (Ansible's)
        self._begun = True
        TERMINAL.clear = CLEAR if self._is_terminal else ""
        TERMINAL.clear_result = TERMINAL.clear if sys.stdout.isatty() else ""
        # Ansible removes its own folder at the end of the run.
        TERMINAL.folder = tempfile.mkdtemp(prefix="transfers-", dir=constants.DEFAULT_LOCAL_TMP)
        TERMINAL.agents = TERMINAL.folder + "-agents"
        TERMINAL.phase = TERMINAL.folder + "-phase"
        TERMINAL.unread = TERMINAL.folder + "-unread"
        threading.Thread(target=self._beat, daemon=True).start()
        atexit.register(self._at_exit)
        with suppress(ValueError):  # only the main thread has signals
            self._before[signal.SIGTERM] = signal.signal(signal.SIGTERM, self._on_termination)
            self._before[signal.SIGINT] = signal.signal(signal.SIGINT, self._on_interrupt)
            # Ansible's workers have no terminal, and would continue after it closes. Under nohup, SIGHUP stays ignored.
            if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:
                signal.signal(signal.SIGHUP, lambda _number, frame: self._on_termination(signal.SIGTERM, frame))

    @_brief
    def v2_playbook_on_play_start(self, play: Any) -> None:
        self._play = play

    @_brief
    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:  # noqa: ARG002 (Ansible's)
        if self._is_interrupted:
            raise KeyboardInterrupt
        self._print(self._progress.start(task_facts(task), time.monotonic()))

    @_brief
    def v2_playbook_on_no_hosts_matched(self) -> None:
        self._print(["No host matches: the inventory needs a group agents with at least one host."], error=True)

    @_brief
    def v2_runner_on_start(self, host: Any, task: Any) -> None:  # noqa: ARG002 (Ansible's)
        with self._lock:
            self._progress.begin_on(host.get_name())

    @_brief
    def v2_runner_on_ok(self, result: Any) -> None:
        facts = document_of(result)
        with self._lock:
            self._progress.finish_on(host_of(result))
        self._handle_warnings(facts)
        if task_of(result).action in _DEBUG and not task_of(result).loop:
            self._show(facts)

    def _show(self, facts: Dict[str, Any]) -> None:
        message = facts.get("msg", "")
        lines = message if isinstance(message, list) else str(message).split("\n")
        self._print(self._progress.end(time.monotonic()))
        for line in map(str, lines):
            # The end of another session does not start it: the user must act.
            self._print([line], error=line.startswith("Session ") and IMPOSSIBLE in line, result=True)

    @_brief
    def v2_runner_on_skipped(self, result: Any) -> None:
        with self._lock:
            self._progress.finish_on(host_of(result))

    @_brief
    def v2_runner_item_on_ok(self, result: Any) -> None:
        if task_of(result).action in _DEBUG:
            self._show(document_of(result))

    v2_playbook_on_handler_task_start = _hidden("v2_playbook_on_handler_task_start")
    v2_playbook_on_cleanup_task_start = _hidden("v2_playbook_on_cleanup_task_start")
    v2_playbook_on_include = _hidden("v2_playbook_on_include")
    v2_runner_item_on_skipped = _hidden("v2_runner_item_on_skipped")
    v2_runner_item_on_failed = _hidden("v2_runner_item_on_failed")
    v2_runner_retry = _hidden("v2_runner_retry")

    def v2_on_file_diff(self, result: Any) -> None:
        with self._lock:
            self._wipe()
        super().v2_on_file_diff(result)

    @_brief
    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        facts = document_of(result)
        self._handle_warnings(facts)
        with self._lock:
            if ignore_errors:
                self._progress.finish_on(host_of(result))
            else:
                is_of_session = (facts.get("failure") or {}).get("code") == SessionError.code
                self._progress.fail_on(host_of(result), message_of(facts), is_of_session=is_of_session)

    @_brief
    def v2_runner_on_unreachable(self, result: Any) -> None:
        with self._lock:
            self._progress.fail_on(host_of(result), message_of(document_of(result)))

    @_brief
    def v2_playbook_on_stats(self, stats: Any) -> None:
        self._stopped.set()
        self._progress.is_finished = True
        self._print(self._progress.end(time.monotonic()))
        bad = {host for host in stats.processed if stats.failures.get(host) or stats.dark.get(host)}
        with self._lock:
            for host in [name for name in self._progress.failures if name not in bad]:
                del self._progress.failures[host]
        self._print(self._progress.failure_lines(), error=True)

    def _on_termination(self, number: int, frame: Any) -> None:
        """SIGTERM ends Ansible without its exit handlers. The signal may interrupt a print: the lock is not taken."""
        if os.getpid() == self._pid and not self._progress.is_finished:
            self._progress.is_finished = True
            self._progress.conducted = _conducted(Path(TERMINAL.phase))
            _write(f"{CLEAR if self._is_live else ''}{self._progress.interrupted()}\n")
        self._pass_on(number, frame)

    def _on_interrupt(self, number: int, frame: Any) -> None:
        """Ansible raises KeyboardInterrupt. Python ignores it in some places, such as a fork: the next task raises it again."""
        self._is_interrupted = True
        self._pass_on(number, frame)

    def _pass_on(self, number: int, frame: Any) -> None:
        """The signal's previous handler."""
        before = self._before.get(number)
        if callable(before):
            before(number, frame)
        else:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def _at_exit(self) -> None:
        """A run that is interrupted never comes to its statistics."""
        self._stopped.set()
        if os.getpid() == self._pid and self._begun and not self._progress.is_finished:
            self._progress.conducted = _conducted(Path(TERMINAL.phase))
            self._print([self._progress.interrupted()], error=True)


def _write(text: str) -> None:
    """Write to the descriptor of standard error, which may have ended: a fork must not copy a held lock."""
    with suppress(OSError):
        os.write(2, text.encode())


def _is_unread(descriptor: int) -> bool:
    """Return whether a pipe has no reader any more."""
    pipe = select.poll()
    pipe.register(descriptor, 0)
    return any(event & select.POLLERR for _descriptor, event in pipe.poll(0))


def _transfers(folder: str) -> List[Tuple[int, int]]:
    """The transfers in progress, of which the workers write: the bytes that have arrived, and all or 0."""
    return [counted for counted in map(_counted, Path(folder).glob("*[!~]")) if counted != (0, 0)]


def _counted(path: Path) -> Tuple[int, int]:
    """Return how much of something is done, and all of it; the file may be gone meanwhile."""
    with suppress(OSError, ValueError):
        now, whole = path.read_text(encoding="ascii").split()
        return int(now), int(whole)
    return 0, 0


def _conducted(path: Path) -> Conducted:
    """The phase of the task in progress, if it has phases of its own; its worker writes the file."""
    with suppress(OSError, ValueError):
        begun, session, phase = path.read_text(encoding="utf-8").split("\n")
        return Conducted(phase, float(begun), session)
    return Conducted()


def _columns() -> int:
    try:
        # A terminal that does not know its size has none.
        return os.get_terminal_size(2).columns or 80
    except OSError:
        return 80


def task_facts(task: Any) -> TaskFacts:
    """Return what the output of a phase needs to know of a task."""
    role = task._role.get_name() if getattr(task, "_role", None) else ""
    step = str(task.args.get("call") or "") if isinstance(task.args, dict) else ""
    return TaskFacts(str(task.name or task.get_name()).strip(), str(task.action), str(role), step)


def document_of(result: Any) -> Dict[str, Any]:
    """The result's document: ansible-core 2.19 renames the attribute."""
    found: Dict[str, Any] = getattr(result, "result", None) or getattr(result, "_result", {})
    return found


def task_of(result: Any) -> Any:
    """Its task, whatever the release of ansible-core calls the attribute."""
    return getattr(result, "task", None) or result._task


def host_of(result: Any) -> str:
    """The name of its host."""
    return str((getattr(result, "host", None) or result._host).get_name())


def message_of(facts: Dict[str, Any]) -> str:
    """The message of a failure. A loop has the message of its first item that failed."""
    for item in facts.get("results") or []:
        if isinstance(item, dict) and item.get("failed"):
            return message_of(item)
    written = [line.strip() for line in str(facts.get("module_stderr") or "").splitlines() if line.strip()]
    if written and "module_stdout" in facts and "exception" not in facts:
        # Ansible says only that the module wrote no result. The host says why: sudo, a login shell, a Python that is missing.
        return written[-1]
    return str(facts.get("msg") or facts.get("stderr") or "failed without a message").strip()
