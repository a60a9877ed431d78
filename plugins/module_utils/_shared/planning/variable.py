# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The declaration of a variable of the playbooks."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Tuple

from .. import value_rules
from ..codec import DECLARATION
from ..errors import InputError
from ..value_rules import Check
from .suboptions import Documentation

# What reads variables: each is a playbook.
LAUNCH, SCHEDULE, TERMINATE, LOGS, LIST, EXEC, COPY = "main", "schedule", "terminate", "logs", "list", "exec", "copy"
APPS, ENVIRONMENTS, POLICY, USAGE, CHECK = "apps", "environments", "policy", "usage", "check"
COMMIT, RESTART = "commit", "restart"
EVERY = (LAUNCH, SCHEDULE, TERMINATE, LOGS, LIST, EXEC, COPY, APPS, ENVIRONMENTS, POLICY, USAGE, CHECK, COMMIT, RESTART)
PREFIX = "session_"


@dataclass(frozen=True)
class Variable:
    """One variable of the playbooks.

    Attributes:
        name: without the prefix.
        type: as in an argument specification.
        default: as a user writes it.
        description: sentences for the reference.
        check: the rule: takes the variable's full name and the value, returns the normal form or raises InputError.
        field: the field of the dataclass that declares it, which holds the normal form.
        choices: the values that are allowed, if they are few.
        elements: the type of a list's elements.
        options: the suboptions of a dictionary, or of a list of dictionaries.
        read_by: the playbooks that read it.
        notes: further sentences for single playbooks.
        kept: a waiting session keeps it, and ``schedule`` takes another value only from the command line.
        secret: it never appears in a log or a result.
        required_by: the playbooks that need a value.
        prefix: of its name: another one for variables of playbooks.
        path: it is a path on the controller, relative to the session file that gives it.
    """

    name: str
    type: str
    default: Any
    description: str
    check: Check
    field: str = ""
    choices: Tuple[str, ...] = ()
    elements: str = ""
    options: Mapping[str, Documentation] = dataclasses.field(default_factory=dict)
    read_by: Tuple[str, ...] = (LAUNCH,)
    notes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    kept: bool = False
    secret: bool = False
    required_by: Tuple[str, ...] = ()
    prefix: str = PREFIX
    path: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "check", value_rules.checked(self.check))

    @property
    def full_name(self) -> str:
        return self.prefix + self.name

    def normal_form(self, value: Any) -> Any:
        """The checked value; an empty one means the default."""
        return self.check(self.full_name, self.default if value in (None, "") else value)


def describe_variable(
    name: str, description: str, check: Check = value_rules.check_text, default: str = "", **more: Any
) -> Variable:
    """A variable with a text, which is empty by default."""
    return Variable(name, "str", default, description, check, **more)


def declared_variables(dataclass_: Any) -> Tuple[Variable, ...]:
    """The variables that the fields of a dataclass declare, in the order of the fields."""
    declared = {field.name: field.metadata[DECLARATION] for field in dataclasses.fields(dataclass_)}
    return tuple(Variable(**{**one, "name": one["name"] or field, "field": field}) for field, one in declared.items())


def from_text(variable: str, value: Any) -> Any:
    """The value of a variable that a user has written as text, one entry in each line. Other values stay as they are."""
    read = _READ.get(variable)
    if read is None or not isinstance(value, str):
        return value
    return read(variable, [line.strip() for line in value.splitlines() if line.strip()])


def _entries(variable: str, lines: List[str]) -> List[Any]:
    return [_entry(variable, line) for line in lines]


def _entry(variable: str, line: str) -> Any:
    if not line.startswith("{"):
        return line
    try:
        return json.loads(line)
    except ValueError as error:
        raise InputError(variable, line, f"must be JSON, because it begins with {{: {error}") from error


def _pairs(variable: str, lines: List[str]) -> Dict[str, str]:
    for line in lines:
        if "=" not in line:
            raise InputError(variable, line, "must be NAME=value, one in each line")
    return {name.strip(): text for name, _equals, text in (line.partition("=") for line in lines)}


_READ: Dict[str, Callable[[str, List[str]], Any]] = {
    "session_apps": _entries,
    "session_environment": _pairs,
    "session_mounts": _entries,
    "session_roles": _entries,
}
