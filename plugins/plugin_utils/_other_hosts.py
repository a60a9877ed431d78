# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One function for many hosts of the play, in threads of one task.

A task of every host costs the controller a fork for each of them; the plan of a large session is then read in every fork.
"""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import os
from contextlib import suppress
from contextvars import Context, copy_context
from threading import Lock
from typing import TYPE_CHECKING, Callable, Dict, List, Sequence, TypeVar

from ansible import context
from ansible.errors import AnsibleError

from ..module_utils._core.documents import Json
from ..module_utils._core.errors import ComputeError
from ..module_utils._core.parallel import run_all
from ._other_host import OtherHost
from ._progress import TERMINAL
from ._transfer_watch import write_whole

if TYPE_CHECKING:
    from ._action import ComputeAction

# Hosts that are asked at the same time, if Ansible's forks are not more: a thread costs little, and its module runs elsewhere.
PARALLEL = 32

Value = TypeVar("Value")


class OtherHosts:
    """Hosts of the inventory. Connections stay open until ``close``."""

    def __init__(self, action: ComputeAction, task_vars: Json) -> None:
        self._action = action
        self._task_vars = task_vars
        self._open: Dict[str, OtherHost] = {}
        self._opening = Lock()
        self._parent = os.getppid()

    def each(self, names: Sequence[str], function: Callable[[str], Value]) -> List[Value]:
        """The function's value for each host, in order; raises the error of the first host that has one."""
        asked = [(name, _context_of_a_thread()) for name in names]
        most = max(PARALLEL, int(context.CLIARGS.get("forks") or 0))
        return run_all(lambda item: item[1].run(self._called, function, item[0]), asked, most)

    def counted(self, names: Sequence[str], function: Callable[[str], Value]) -> Dict[str, Value]:
        """The function's value by host. The callback shows how many hosts have ended."""
        ended: List[str] = []
        _show_count(0, len(names))

        def value(host: str) -> Value:
            try:
                return function(host)
            finally:
                with self._opening:
                    ended.append(host)
                    _show_count(len(ended), len(names))

        try:
            return dict(zip(names, self.each(names, value)))
        finally:
            with suppress(OSError):
                os.unlink(TERMINAL.agents)

    def step(self, host: str, call: str, params: Json) -> Json:
        """The result of a step on a host. AnsibleError if the host does not answer: it is connected again for the next call."""
        try:
            return self.host(host).step(call, params)
        except AnsibleError:
            self._close(host)
            raise

    def host(self, name: str) -> OtherHost:
        # Ansible loads plugins and templates variables in one thread.
        with self._opening:
            if name not in self._open:
                self._open[name] = OtherHost(self._action, name, self._task_vars)
            return self._open[name]

    def close(self) -> None:
        for name in list(self._open):
            self._close(name)

    def _called(self, function: Callable[[str], Value], name: str) -> Value:
        if os.getppid() != self._parent:
            raise ComputeError(f"ansible-playbook has ended, so nothing is begun on {name}.")
        return function(name)

    def _close(self, name: str) -> None:
        """Forget the connection; a host that does not answer cannot be cleaned up."""
        other = self._open.pop(name, None)
        if other is not None:
            with suppress(AnsibleError):
                other.close()


def _context_of_a_thread() -> Context:
    """What Ansible knows of the task, which it keeps in context variables.

    Its broker of accesses is a stack for each thread. Two threads with one broker fail with "Out-of-order context deactivation":
    https://github.com/ansible/ansible/blob/v2.19.0/lib/ansible/_internal/_templating/_access.py
    """
    own = Context()
    for variable, value in copy_context().items():
        if variable.name != "AnsibleAccessContext":
            own.run(variable.set, value)
    return own


def _show_count(ended: int, whole: int) -> None:
    """Leave how many hosts have ended where the callback finds it."""
    if TERMINAL.agents:
        with suppress(OSError):
            write_whole(TERMINAL.agents, "%d %d" % (ended, whole))
