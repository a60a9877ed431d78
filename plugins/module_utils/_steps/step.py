# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A step: a function of an agent or of the head that the conductor calls by name, through C(agent_step) or C(head_step)."""

from __future__ import annotations

import inspect
import json
import os
from collections import abc
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any, Callable, Dict, FrozenSet, Mapping, Optional, Tuple, TypeVar, Union, get_type_hints

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.parsing.convert_bool import boolean

from .._head.state_folder import state_dir
from .._shared.codec import Document, Json, ModuleResult
from .._shared.constants import DOCKER_HOST
from .._shared.errors import ComputeError, InputError
from .._worker import module as module_end
from .._worker.module import at_least

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class AgentHandle:
    """An agent.

    ``name`` is its name in the inventory, ``timeout`` the seconds of a request to its engine, ``edition`` the digest of the scripts
    in the SSH runtime of this release, ``fabric`` its interface for the fabric, ``mps`` the directory of its MPS daemon. With
    ``check``, nothing is changed.
    """

    name: str
    docker_host: str
    timeout: int = 60
    edition: str = ""
    fabric: str = ""
    mps: str = ""
    check: bool = False

    def connect(self, engine: Callable[[str, int, str], Kind], least: int = 0) -> Kind:
        """Its engine, of whose kind there are several. A request to it may take the timeout, or ``least`` seconds if that is more."""
        return engine(self.docker_host, max(self.timeout, least), self.name)


@dataclass(frozen=True)
class Head:
    """The head. ``directory`` holds the session store. With ``check``, nothing is changed."""

    directory: str
    check: bool = False


def engine_address(given: str = "") -> str:
    """The address of the engine of this host: the given one, or what its environment names, or the default."""
    return given or os.environ.get("DOCKER_HOST") or DOCKER_HOST


Step = Callable[..., Any]


@dataclass(frozen=True)
class Steps:
    """The steps of a place, in a file for each noun.

    Ansible packs what a module imports anywhere, all nouns in one archive. A host imports, and so compiles, only the noun of its call.
    """

    place: str
    nouns: FrozenSet[str]

    def call(self, name: str, place: object, params: Json) -> ModuleResult:
        """The result of a step, such as C(containers.created). Raises InputError for an unknown step or parameter."""
        noun, verb = noun_of(name), name.partition(".")[2]
        step = step_of(noun, verb) if noun in self.nouns else None
        if step is None:
            raise InputError("call", name, f"is no step of {self.place}")
        result = run_step(name, step, place, params)
        return result.to_json() if isinstance(result, Document) else result


def noun_of(call: str) -> str:
    """The noun of a step.

    >>> noun_of("containers.created")
    'containers'
    """
    return call.partition(".")[0]


def step_of(noun: str, verb: str) -> Step | None:
    """The step: a public function of the file of its noun, and nothing that the file imports."""
    module = import_module(f".{noun}", __package__)
    found = getattr(module, verb, None)
    is_step = inspect.isfunction(found) and found.__module__ == module.__name__ and not verb.startswith("_")
    return found if is_step else None


OF_AGENT = Steps(
    "an agent", frozenset("apps batch containers doctor folders image logs network report runtime ssh swarm".split())
)
OF_HEAD = Steps("the head", frozenset("queue session sessions store".split()))
# The head is an agent.
ON_HEAD = Steps("the head", OF_HEAD.nouns | OF_AGENT.nouns)


def prepare(steps: Steps) -> None:
    """Import the steps of a place."""
    for noun in steps.nouns:
        import_module(f".{noun}", __package__)


# YAML may give these as text.
_TYPES: Dict[Any, Callable[[Any], Any]] = {int: int, float: float, bool: boolean}


def run_step(call: str, step: Step, place: object, params: Mapping[str, Any]) -> Any:
    """The result of a step at a place, with parameters by name in the types of its signature. Raises InputError for others."""
    known = inspect.signature(step).parameters
    unknown = [name for name in params if name not in known]
    if unknown:
        raise InputError(call, unknown[0], f"has only the parameters {', '.join(list(known)[1:])}")
    hints = get_type_hints(step)
    given = {name: _typed(f"{call}: {name}", hints[name], value) for name, value in params.items()}
    missing = [
        name for name, one in list(known.items())[1:] if one.default is inspect.Parameter.empty and name not in given
    ]
    if missing:
        raise ComputeError(f"{call} lacks its parameter {missing[0]}.")
    at_least(given, deadline=1)
    return step(place, **given)


def _typed(where: str, hint: Any, value: Any) -> Any:
    """The value in a type of a signature: a number, a document, or documents. Python 3.8 evaluates no ``int | None``."""
    origin: Any = getattr(hint, "__origin__", None)
    parts: Tuple[Any, ...] = getattr(hint, "__args__", ())
    if origin is Union:
        return None if value is None else _typed(where, parts[0], value)
    if origin is abc.Sequence and isinstance(parts[0], type) and issubclass(parts[0], Document):
        return [_typed(where, parts[0], one) for one in value]
    is_document = isinstance(hint, type) and issubclass(hint, Document)
    convert = hint.from_parameter if is_document else _TYPES.get(hint)
    if convert is None:
        return value
    try:
        return convert(value)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        # A document can have secrets.
        raise InputError(where, str(error) if is_document else value, f"must be of type {hint.__name__}") from error


AGENT_SPEC: Dict[str, Json] = {
    "call": {"type": "str", "required": True},
    "params": {"type": "dict", "default": {}},
    "secrets": {"type": "dict", "default": {}, "no_log": True},
    "agent": {"type": "str", "default": ""},
    "edition": {"type": "str", "default": ""},
    "fabric": {"type": "str", "default": ""},
    "mps": {"type": "str", "default": "/run/nvidia-mps"},
    "docker_host": {"type": "str", "default": ""},
    "timeout": {"type": "int", "default": 60},
    "stays": {"type": "path"},
}
HEAD_SPEC: Dict[str, Json] = {**AGENT_SPEC, "state_dir": {"type": "path"}}


@dataclass(frozen=True)
class StepOptions(Document):
    """The options of a module that carries out steps. ``secrets`` are parameters that no log contains."""

    call: str
    params: Json = field(default_factory=dict)
    secrets: Json = field(default_factory=dict)
    agent: str = ""
    edition: str = ""
    fabric: str = ""
    mps: str = ""
    docker_host: str = ""
    timeout: int = 60
    state_dir: Optional[str] = None


@dataclass(frozen=True)
class StepModule:
    """A module that carries out steps: C(agent_step), or C(head_step) with the code of the head, which other agents do not get."""

    steps: Steps
    spec: Mapping[str, Json]

    def work(self, params: Json, check_mode: bool) -> ModuleResult:
        """The result of the step that the options name."""
        asked = StepOptions.from_json(params)
        if noun_of(asked.call) in self.steps.nouns & OF_HEAD.nouns:
            return self.steps.call(asked.call, Head(state_dir(asked.state_dir), check_mode), asked.params)
        module_end.at_least(params, timeout=1)
        own = (asked.agent, engine_address(asked.docker_host), asked.timeout)
        place = AgentHandle(*own, asked.edition, asked.fabric, asked.mps, check_mode)
        return self.steps.call(asked.call, place, {**asked.params, **asked.secrets})

    def serve_once(self, request: str, directory: str) -> None:
        """Answer a request of the action plugin, in a process that is no module."""
        asked = module_end.AskedStep.from_json(json.loads(request))
        module_end.serve_once(asked, self.spec, self.work, directory, self._preparation(asked.options))

    def run(self, module: AnsibleModule) -> None:
        module_end.run(module, self.spec, self.work, self._preparation(module.params))

    def _preparation(self, options: Json) -> Callable[[], None] | None:
        """The import of what further steps need, if a process stays.

        The store may be older than the right of its user to the engine.
        """
        return None if noun_of(options["call"]) == "store" else partial(prepare, self.steps)
