# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The base of all action plugins: errors become results, modules run where the task runs, the controller has a name."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import getpass
import os
import socket
from abc import abstractmethod
from typing import Any, Mapping

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase

from ansible_collections.cluster.compute.plugins.module_utils._core.errors import ComputeError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._core.names import owner_from_login
from ansible_collections.cluster.compute.plugins.module_utils._core.text import visible
from ansible_collections.cluster.compute.plugins.plugin_utils import _direct_call as direct_call

# The modules that have the option docker_host.
_OF_ENGINES = frozenset(
    (
        "agent_examination_info",
        "agent_info",
        "batch",
        "batch_info",
        "containers",
        "image",
        "image_export",
        "image_info",
        "image_load",
        "logs_info",
        "network",
        "port_listener",
        "ssh",
        "swarm",
        "swarm_info",
        "swarm_node",
    )
)


class ComputeAction(ActionBase):
    """An action whose errors are one sentence, as a module's are. Subclasses do the work in ``act``."""

    _supports_async = False

    def run(self, tmp: Any = None, task_vars: Json | None = None) -> Json:
        result: Json = super().run(tmp, task_vars)
        try:
            result.update(self.act(dict(self._task.args), task_vars or {}))
        except ComputeError as error:
            failure = {"code": error.code, "message": error.message, "where": error.where}
            result.update(failed=True, msg=error.message, failure=failure)
        except AnsibleConnectionFailure as error:
            result.update(self._unreachable(str(error), task_vars or {}))
        return result

    def _unreachable(self, reason: str, task_vars: Json) -> Json:
        """A host that is lost on the way is a failure: Ansible's rescue, which undoes a launch, knows no other."""
        where = str(self._task.delegate_to or task_vars.get("inventory_hostname", "the host"))
        message = "%s cannot be reached: %s." % (where, visible(" ".join(reason.split())[:300].rstrip(".: ")))
        return {"failed": True, "msg": message, "failure": {"code": "unreachable", "message": message, "where": where}}

    @abstractmethod
    def act(self, args: Json, task_vars: Json) -> Json:
        """The work: the result, or a ComputeError."""

    def module(self, name: str, args: Json, task_vars: Json) -> Json:
        """Run a module of this collection where the task runs, on the engine that the inventory names for that host."""
        if name in _OF_ENGINES and not args.get("docker_host"):
            args = {**args, **self._engine(task_vars)}
        if name in direct_call.MODULES and self._is_here(task_vars):
            return direct_call.call(name, args, check_mode=self._task.check_mode, diff=self._task.diff)
        result: Json = self._execute_module("cluster.compute." + name, module_args=args, task_vars=task_vars)
        return result

    def module_or_failure(self, name: str, args: Json, task_vars: Json) -> Json:
        """The same, and a lost connection is a failed result: for actions that continue without this host."""
        try:
            return self.module(name, args, task_vars)
        except AnsibleConnectionFailure as error:
            return {"failed": True, "msg": str(error)}

    def results_of_hosts(self, variable: str, task_vars: Json) -> dict[str, Json]:
        """What each host of the play has in a variable, such as a registered result; hosts without it are left out."""
        hostvars = task_vars.get("hostvars") or {}
        found = {
            host: (hostvars.get(host) or {}).get(variable) for host in task_vars.get("ansible_play_hosts_all") or ()
        }
        return {host: dict(value) for host, value in found.items() if isinstance(value, Mapping)}

    def _is_here(self, task_vars: Json) -> bool:
        """Whether the task runs on this machine, in the Python that runs Ansible."""
        delegated = (task_vars.get("ansible_delegated_vars") or {}).get(str(self._task.delegate_to)) or {}
        own = delegated if self._task.delegate_to else task_vars
        interpreter = self._templar.template(own.get("ansible_python_interpreter") or "")
        return direct_call.is_here(self._connection, self._task.environment, str(interpreter))

    def _engine(self, task_vars: Json) -> Json:
        """``agent_docker_host`` of the host that the module runs on, which is not the task's own when it is delegated."""
        if self._task.delegate_to:
            host = (task_vars.get("hostvars") or {}).get(str(self._task.delegate_to)) or {}
            named = host.get("agent_docker_host")
        else:
            named = self._templar.template(task_vars.get("agent_docker_host"))
        return {"docker_host": str(named)} if named else {}


class RemoteAction(ComputeAction):
    """The module and nothing else, where the task runs."""

    def act(self, args: Json, task_vars: Json) -> Json:
        return self.module(self._task.action.rpartition(".")[2], args, task_vars)


def failure_reason(result: Json) -> str:
    """Why a module failed, on one line of at most 300 characters."""
    reason = result.get("msg") or result.get("module_stderr") or "the module failed"
    return visible(" ".join(str(reason).split())[:300])


def login() -> str:
    """The controller's user, as an owner."""
    return owner_from_login(getpass.getuser())


def holder() -> Json:
    """Who launches: the process of this ansible-playbook. Actions run in its forks."""
    pid = os.getppid()
    return {"host": socket.gethostname(), "machine": _machine(), "user": login(), "pid": pid, "start": _started(pid)}


def is_gone(other: Json) -> bool:
    """Whether another holder is certain to be gone: its process was among ours, and is no more."""
    machine = _machine()
    if not machine or other.get("machine") != machine:
        return False
    pid = int(other.get("pid") or 0)
    # Other numbers mean groups of processes.
    if pid < 1:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    # A process of the same number that started at another time is another process.
    started = _started(pid)
    return bool(started) and started != other.get("start")


def _machine() -> str:
    """Whose process numbers ours are: this boot of this kernel, this PID namespace. Hosts and containers may share a name.

    Empty where there is no /proc to tell.
    """
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as boot:
            return "%s %s" % (boot.read().strip(), os.readlink("/proc/self/ns/pid"))
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When a process started, in the kernel's own ticks; empty where there is no /proc."""
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as status:
            return status.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
