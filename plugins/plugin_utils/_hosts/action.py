# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Base of the action plugins: turns errors into results, and runs modules on the task's host."""

from __future__ import annotations

import gc
import shlex
import time
from abc import abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Iterable, List, Mapping

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase

from ...module_utils._shared.codec import Json, ModuleResult
from ...module_utils._shared.documents import validation
from ...module_utils._shared.errors import ComputeError, NotLaunchedError
from ...module_utils._steps.step import OF_HEAD, noun_of
from ...module_utils._worker.module import CALLS
from .._settings.session_files import located
from . import direct_call, trace, worker_client
from .call import Call
from .documented import documented
from .results import unreachable, with_failure_message, write_result
from .runtime_scripts import runtime_scripts
from .transfer_watch import watched

if TYPE_CHECKING:
    from .._settings.options import Options

# The steps that this process carries out itself where the agent or the head is this machine. Others start processes that outlive
# them, count bytes, or are rare.
_HERE = OF_HEAD.nouns | {"apps", "batch.wait", "containers", "logs", "network", "report", "ssh"}
# The parameters of steps that no log may contain.
_SECRET = frozenset({"bundle", "identity_token", "password", "secrets", "token", "tokens"})

# The options that name an engine, and the seconds of a request to it.
_ENGINE = ("docker_host", "timeout")
# The sender of a plan that a task is given as its option.
TASK = "the task"
# The verbosity at which Ansible shows the options of a module, as with -vvv.
_SHOWS_OPTIONS = 3
# What Ansible obeys in a result: hosts of the inventory, variables of hosts, statistics, and keys of its own, such as handlers.
_OF_ANSIBLE, _OWN = ("add_host", "add_group", "ansible_facts", "ansible_stats"), "_ansible_"
# Steps that a task notes for the trace.
_MOST_STEPS = 20


class ComputeAction(ActionBase):
    """An action that returns an error as one sentence, like a module. Subclasses implement ``act``."""

    _supports_async = False
    # Its options, if they are variables of the playbooks.
    OPTIONS: ClassVar[Options | None] = None
    # The rules between the options of another action, as Ansible specifies them.
    RULES: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # The times of the steps of this task, for the trace.
        self._steps: List[trace.StepTime] = []
        self._begun = time.time()
        self.is_noted_by_host = False
        # The host of the session store, if the task has to do with it.
        self.head = ""
        # The options of the task, by the variable whose value they replace.
        self.given: Json = {}
        # The engine that the options of the task name.
        self.engine: Json = {}
        # The variables of the task.
        self.task_vars: Json = {}

    def __init_subclass__(cls) -> None:
        """Keep the garbage collector from what is imported: Ansible then forks, and a fork copies each page that it looks at."""
        gc.freeze()

    def value(self, variable: str) -> Any:
        """An option of the task, or else the variable of the task, templated; None if neither is set."""
        if variable in self.given:
            return self.given[variable]
        return located(variable, self._templar.template(self.task_vars.get(variable)), self._loader)

    def run(self, tmp: Any = None, task_vars: Json | None = None) -> ModuleResult:
        self.task_vars = task_vars or {}
        try:
            result = self._acted(tmp)
            write_result(self._task, result)
            return result
        finally:
            if not self.is_noted_by_host:
                times = (self._begun, time.time())
                trace.note(trace.task_entry(self._task, self.where, times, self._steps))

    def _acted(self, tmp: Any) -> ModuleResult:
        result: ModuleResult = super().run(tmp, self.task_vars)
        try:
            self.given = self.OPTIONS.given(dict(self._task.args), self._template_of) if self.OPTIONS else {}
            result.update(self.act())
        except ComputeError as error:
            result.update(self.failure(error))
        except AnsibleConnectionFailure as error:
            result.update(unreachable(self.where, str(error)).to_result())
        return result

    def _template_of(self, variable: str) -> Any:
        """The value of a variable of the task; None for one that cannot be templated, which an option replaces."""
        with suppress(AnsibleError):
            return self._templar.template(self.task_vars.get(variable))
        return None

    def failure(self, error: ComputeError) -> ModuleResult:
        """An error as the result. It names an option if that gave the value."""
        if isinstance(error, NotLaunchedError) and self._task.check_mode:
            line = "Not checked: the session has no containers yet."
            return {"changed": True, "containers": [], "exit_code": 0, "message": "", "lines": [line]}
        if self.OPTIONS:
            error = self.OPTIONS.by_option(self.given, error)
        return error.failure.to_result()

    @abstractmethod
    def act(self) -> ModuleResult:
        """Do the work and return the result; raises a ComputeError."""

    def checked(self) -> Json:
        """The options of the task, as its module documents them. Raises AnsibleActionFail for others."""
        spec = documented(str(self._task.resolved_action or self._task.action).rpartition(".")[2])
        _valid, options = self.validate_argument_spec(argument_spec=spec, **self.RULES)
        self.engine = {name: options[name] for name in _ENGINE if options.get(name)}
        return dict(options)

    def step(self, call: Call[Any], agent: str = "") -> ModuleResult:
        """The result of a step where the task runs, on the engine that the inventory names for that host, or on the store there.

        ``agent`` is the host's name if it is not that of the task. The parameters ``docker_host``, ``timeout`` and ``state_dir``
        belong to the place.
        """
        noun, params, host = noun_of(call.step), dict(call.params), agent or self.where
        is_of_head = noun in OF_HEAD.nouns
        place = self._head(params) if is_of_head else self._agent(params, host)
        args = {"call": call.step, "params": params, **place}
        begun = time.time()
        if {noun, call.step} & _HERE and self.is_here():
            result = direct_call.call(args, check_mode=self._task.check_mode, diff=self._task.diff)
        else:
            module = "head_step" if is_of_head or host == self.head else "agent_step"
            result = worker_client.answer(self, module, args, self._interpreter) or self._module_result(module, args)
            result = with_failure_message(result, call.step, self.where)
        return self._noted(call.step, begun, self._of_host(validation.result(result)))

    def _of_host(self, result: ModuleResult) -> ModuleResult:
        """The result of a step without what Ansible would obey in it: a host adds no hosts and no variables, and notifies no handlers.

        The facts of a task with C(run_once) become variables of all hosts, above those of the inventory. Where the Python of a host
        is, Ansible has found before.
        """
        kept = {name: value for name, value in result.items() if name not in _OF_ANSIBLE and not name.startswith(_OWN)}
        key = self._discovered_interpreter_key
        return {**kept, **({"ansible_facts": {key: self._discovered_interpreter}} if key else {})}

    def _module_result(self, module: str, args: Json) -> ModuleResult:
        # Modules write their options to the host's system log, where every user may read them: a plan has the user's environment.
        silent = {**self.task_vars, "ansible_no_target_syslog": True}
        if worker_client.may_stay(self):
            args = {**args, "stays": worker_client.directory(self, module, self._interpreter)}
        return dict(self._execute_module(f"cluster.compute.{module}", module_args=args, task_vars=silent))

    def _head(self, params: Json) -> Json:
        state_dir = params.pop("state_dir", None)
        return {"state_dir": str(state_dir)} if state_dir else {}

    def _agent(self, params: Json, agent: str) -> Json:
        own = {"docker_host": "agent_docker_host", "fabric": "agent_fabric", "mps": "agent_mps_directory"}
        found: Json = {name: str(self._of_place(variable) or "") for name, variable in own.items()}
        found.update(self.engine, **{name: value for name, value in _taken(params, _ENGINE).items() if value})
        given = {name: value for name, value in found.items() if value}
        # A process that has read secrets does not stay: what is not given is none.
        secrets = {name: value for name, value in _taken(params, _SECRET).items() if value is not None}
        return {**given, "agent": agent, "edition": runtime_scripts().edition, "secrets": secrets}

    def _noted(self, call: str, begun: float, result: ModuleResult) -> ModuleResult:
        """The result without what only the trace reads."""
        seconds, calls = float(result.get("duration") or time.time() - begun), result.pop(CALLS, [])
        if self._display.verbosity < _SHOWS_OPTIONS:
            # Ansible visits every value of a result several times: the options of a step have the plan of its agent.
            result.pop("invocation", None)
        self._steps.append(trace.StepTime(call, time.time(), seconds, tuple(map(tuple, calls))))
        # A task that polls calls a step for as long as it waits.
        del self._steps[:-_MOST_STEPS]
        return result

    @property
    def where(self) -> str:
        """The name of the host that the task runs on."""
        return str(self._task.delegate_to or self.task_vars.get("inventory_hostname") or "the host")

    def counted_step(self, call: Call[Any], agent: str = "") -> ModuleResult:
        """Like ``step``; the callback shows the bytes that the step counts."""
        # In a directory of the user who logs in: no other user can take the name.
        progress = self._connection._shell.join_path(self._make_tmp_path(), "progress")
        with watched(self._connection, agent or self.where, "cat " + shlex.quote(progress)):
            return self.step(call.with_params(progress=progress), agent)

    def is_here(self) -> bool:
        """Return whether the task runs on this machine, in the Python that runs Ansible."""
        delegated = (self.task_vars.get("ansible_delegated_vars") or {}).get(str(self._task.delegate_to)) or {}
        own = delegated if self._task.delegate_to else self.task_vars
        interpreter = self._templar.template(own.get("ansible_python_interpreter") or "")
        return direct_call.is_here(self._connection, self._task.environment, str(interpreter))

    @property
    def _interpreter(self) -> str:
        """The Python that the inventory names for the host; empty if Ansible looks for one."""
        return str(self._templar.template(self.task_vars.get("ansible_python_interpreter")) or "")

    def _of_place(self, variable: str) -> Any:
        """A variable of the host that the module runs on: for a delegated task, the delegate."""
        if self._task.delegate_to:
            host = (self.task_vars.get("hostvars") or {}).get(str(self._task.delegate_to)) or {}
            return host.get(variable)
        return self._templar.template(self.task_vars.get(variable))


def _taken(params: Json, names: Iterable[str]) -> Json:
    """These parameters, which are taken out."""
    return {name: params.pop(name) for name in names if name in params}


def raw_variables(task_vars: Json, hosts: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    """The variables of each of these hosts, with their templates."""
    hostvars = task_vars.get("hostvars") or {}
    read = getattr(hostvars, "raw_get", hostvars.get)
    found = {str(host): read(host) for host in hosts}
    return {host: variables for host, variables in found.items() if isinstance(variables, Mapping)}
