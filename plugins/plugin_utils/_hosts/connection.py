# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host of the inventory that is not the task's, and one function for many of them, in threads of one task.

A task of every host costs the controller a fork for each of them; the plan of a large session is then read in every fork.
"""

from __future__ import annotations

import copy
import os
import shlex
from contextlib import suppress
from contextvars import Context, copy_context
from threading import Lock
from typing import TYPE_CHECKING, Any, Callable, ContextManager, Dict, List, Sequence, TypeVar

from ansible import constants, context
from ansible.errors import AnsibleError
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.loader import become_loader, connection_loader

from ...module_utils._shared.codec import ModuleResult
from ...module_utils._shared.errors import ComputeError
from ...module_utils._shared.parallel import run_all
from .call import Call
from .trace import StepTime
from .transfer_watch import TERMINAL, watched, write_whole

if TYPE_CHECKING:
    from .action import ComputeAction

# Hosts that are asked at the same time, if Ansible's forks are not more: a thread costs little, and its module runs elsewhere.
PARALLEL = 32

Value = TypeVar("Value")


class OtherHost:
    """A host of the inventory, as an action that runs on another one reaches it."""

    def __init__(self, action: ComputeAction, host: str) -> None:
        """Load the plugins; nothing is connected yet. AnsibleError if a plugin or the host does not exist."""
        self.host = host
        self._task_vars = _variables_of(host, action)
        self._templar = action._templar.copy_with_new_env(available_variables=self._task_vars)
        self._action = self._copy_of(action)

    def step(self, call: Call[Any]) -> ModuleResult:
        """The result of a step on the host. AnsibleConnectionFailure if the host does not answer."""
        return self._action.step(call, self.host)

    def taken(self) -> List[StepTime]:
        """The times of the steps that have been carried out here, for the trace; each is taken once."""
        steps, self._action._steps = self._action._steps, []
        return steps

    def value(self, name: str) -> Any:
        """A variable of the host, templated, or None."""
        return self._templar.template(self._task_vars.get(name))

    def counted_step(self, call: Call[Any]) -> ModuleResult:
        """Like ``step``; the callback shows the bytes that the step counts."""
        return self._action.counted_step(call, self.host)

    def fetch(self, call: Call[Any], path: str, size: int) -> ModuleResult:
        """Carry out a step that writes a file of about this size, and fetch it: only the user of the controller can read it."""
        remote = self._path(os.path.basename(path))
        with self._watched(remote, size):
            result = self.step(call.with_params(path=remote))
        if not result.get("failed"):
            self._action._connection.fetch_file(remote, path)
            os.chmod(path, 0o600)
        return result

    def send(self, path: str) -> str:
        """Copy a file to the host, where only the user of the task can read it; returns its path there."""
        remote = self._path(os.path.basename(path))
        with self._watched(remote, os.stat(path).st_size):
            self._action._connection.put_file(path, remote)
        self._action._fixup_perms2((os.path.dirname(remote), remote))
        return remote

    def _path(self, name: str) -> str:
        """A path in a new directory of Ansible on the host."""
        return str(self._action._connection._shell.join_path(self._action._make_tmp_path(), name))

    def _watched(self, remote: str, size: int) -> ContextManager[None]:
        """Show the size of a file on the host while it grows."""
        return watched(self._action._connection, self.host, "stat -c %s " + shlex.quote(remote), size)

    def close(self) -> None:
        """Remove Ansible's folder there, and close the connection."""
        self._action.cleanup(force=True)
        self._action._connection.close()

    def _copy_of(self, action: ComputeAction) -> ComputeAction:
        other = copy.copy(action)
        other.task_vars = self._task_vars
        other._task = action._task.copy(exclude_tasks=True)
        other._task.delegate_to = None
        other._play_context = action._play_context.copy()
        other._play_context.remote_addr = str(self.value("ansible_host") or self.host)
        other._templar = self._templar
        other._connection = self._connection(action, other._play_context)
        other._steps = []
        other._used_interpreter = None
        other._discovered_interpreter_key = None
        other._discovered_interpreter = False
        interpreter = self.value("ansible_python_interpreter")
        if interpreter:
            self._task_vars["ansible_python_interpreter"] = interpreter
        return other

    def _connection(self, action: ComputeAction, play_context: Any) -> Any:
        kind = str(self.value("ansible_connection") or action._task.connection or "ssh")
        kind = constants.DEFAULT_TRANSPORT if kind == "smart" else kind
        play_context.connection = kind
        identity = {"task_uuid": action._task._uuid, "ansible_playbook_pid": str(os.getppid())}
        connection = connection_loader.get(kind, play_context, new_stdin=None, **identity)
        if connection is None:
            raise AnsibleError(f"the connection plugin '{kind}' was not found")
        connection.set_become_plugin(self._become(action))
        keywords = self._keywords(action, play_context)
        connection.set_options(task_keys=keywords, var_options=self._options("connection", connection._load_name))
        shell = connection._shell
        shell.set_options(task_keys=keywords, var_options=self._options("shell", shell._load_name))
        if connection.become is not None:
            options = self._options("become", connection.become._load_name)
            connection.become.set_options(task_keys=keywords, var_options=options)
            play_context.set_become_plugin(connection.become.name)
        play_context.set_attributes_from_plugin(connection)
        return connection

    def _keywords(self, action: ComputeAction, play_context: Any) -> Dict[str, Any]:
        """The keywords of the task that plugins read, and the passwords that Ansible has asked for (-k and -K)."""
        keywords: Dict[str, Any] = action._task.dump_attrs()
        # A task's own timeout and retries mean the task, not its connection.
        del keywords["retries"]
        keywords["timeout"] = play_context.timeout
        for option in ("password", "become_pass"):
            if getattr(play_context, option):
                keywords[option] = getattr(play_context, option)
        return keywords

    def _become(self, action: ComputeAction) -> Any:
        """The plugin that changes the user on the host, if the host's variables or the task ask for it."""
        wanted = self.value("ansible_become")
        if not (action._task.become if wanted is None else boolean(wanted)):
            return None
        method = str(self.value("ansible_become_method") or action._task.become_method or "sudo")
        plugin = become_loader.get(method)
        if plugin is None:
            raise AnsibleError(f"the become plugin '{method}' was not found")
        return plugin

    def _options(self, kind: str, name: str) -> Dict[str, Any]:
        """The variables of the host that a plugin reads."""
        names = constants.config.get_plugin_vars(kind, name)
        return {name: self.value(name) for name in names if name in self._task_vars}


def _variables_of(name: str, action: ComputeAction) -> Dict[str, Any]:
    """The variables that the task would have on another host, with the variables of its play and its role."""
    hostvars, task = action.task_vars["hostvars"], action._task
    host = hostvars._inventory.get_host(name)
    if host is None:
        raise AnsibleError(f"the inventory has no host '{name}'")
    found: Dict[str, Any] = task.get_variable_manager().get_vars(play=task.get_play(), host=host, task=task)
    return {**found, "hostvars": hostvars}


class OtherHosts:
    """Hosts of the inventory. Connections stay open until ``close``."""

    def __init__(self, action: ComputeAction) -> None:
        self._action = action
        self._open: Dict[str, OtherHost] = {}
        self._opening = Lock()
        self._parent = os.getppid()

    def each(self, names: Sequence[str], function: Callable[[str], Value]) -> List[Value]:
        """The function's value for each host, in order; raises the error of the first host that has one."""
        return _in_threads(names, lambda name: self._called(function, name))

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

    def step(self, host: str, call: Call[Any]) -> ModuleResult:
        """The result of a step on a host. AnsibleError if the host does not answer: it is connected again for the next call."""
        try:
            return self.host(host).step(call)
        except AnsibleError:
            self._close(host)
            raise

    def host(self, name: str) -> OtherHost:
        # Ansible loads plugins and templates variables in one thread.
        with self._opening:
            if name not in self._open:
                self._open[name] = OtherHost(self._action, name)
            return self._open[name]

    def close(self) -> None:
        _in_threads(list(self._open), self._close)

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


def _in_threads(names: Sequence[str], function: Callable[[str], Value]) -> List[Value]:
    asked = [(name, _context_of_a_thread()) for name in names]
    most = max(PARALLEL, int(context.CLIARGS.get("forks") or 0))
    return run_all(lambda item: item[1].run(function, item[0]), asked, most)


def _context_of_a_thread() -> Context:
    """Return what Ansible knows of the task, which it keeps in context variables.

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
