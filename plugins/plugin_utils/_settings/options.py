# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of the actions for sessions: the variables of the playbooks without their prefix.

The declaration of a variable is also the declaration of its option, and plugins/doc_fragments/options.py its documentation.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Any, Callable, Collection, Dict, Mapping, Tuple

from ...module_utils._shared import value_rules
from ...module_utils._shared.codec import Json
from ...module_utils._shared.errors import ComputeError, InputError
from ...module_utils._shared.planning.variable import (
    APPS,
    COPY,
    ENVIRONMENTS,
    EXEC,
    LAUNCH,
    LOGS,
    PREFIX,
    RESTART,
    SCHEDULE,
    TERMINATE,
    Variable,
)
from .agent_checks import check_checks
from .settings import read_by

# About the command line, and about what the playbook does before the action.
_PLAYBOOK_ONLY = ("ignored_variables", "provision", "preflight", "preflight_age")


@dataclass(frozen=True)
class Options:
    """The options of an action: variables of playbooks, without ``prefix`` as well, and options that are no variables."""

    playbooks: Tuple[str, ...]
    prefix: str = ""
    own: Tuple[Variable, ...] = ()

    def variables(self) -> Dict[str, Variable]:
        """The variable of each option."""
        found = {option.name: option for option in self.own}
        for playbook in self.playbooks:
            for variable in read_by(playbook):
                # Of the waiting sessions of a pass.
                is_kept = self.playbooks == (SCHEDULE,) and variable.kept
                if variable.prefix == PREFIX and variable.name not in _PLAYBOOK_ONLY and not is_kept:
                    found.setdefault(self._name(variable), variable)
        return found

    def _name(self, variable: Variable) -> str:
        return variable.name[len(self.prefix) :] if variable.name.startswith(self.prefix) else variable.name

    def documentation(self, variable: Variable) -> Json:
        """The attributes of an option. A variable may give the value that is required in all playbooks, or a template."""
        is_required = set(self.playbooks) <= set(variable.required_by)
        has_default = not is_required and variable.default not in (None, "", [], {}) and variable.name != "head"
        return {
            "type": variable.type,
            "elements": variable.elements,
            "choices": list(variable.choices),
            "default": variable.default if has_default else None,
            "required": is_required,
            "options": variable.options,
        }

    def given(self, args: Mapping[str, Any], value_of: Callable[[str], Any]) -> Json:
        """The options of a task that have a value, by full name of the variable. Raises InputError for an unknown option.

        An option that repeats the value of its variable is left out: an error names the variable then.
        """
        known = self.variables()
        for name in args:
            if name not in known:
                close = difflib.get_close_matches(name, known, 1)
                rule = "is not an option%s; the options are %s" % (
                    f", but {close[0]} is" if close else "",
                    ", ".join(sorted(known)),
                )
                raise InputError(name, args[name], rule)
        values = [(known[name], value) for name, value in args.items() if value not in (None, "")]
        return {
            option.full_name: value
            for option, value in values
            if option in self.own or value != value_of(option.full_name)
        }

    def own_values(self, given: Mapping[str, Any]) -> Json:
        """The options that are no variables, in their normal form."""
        return {option.name: option.normal_form(given.get(option.name)) for option in self.own}

    def by_option(self, given: Collection[str], error: ComputeError) -> ComputeError:
        """An error that names the option if the variable that it is about was given as an option."""
        variable = re.split(r"\W", error.where, maxsplit=1)[0]
        if variable not in given or not isinstance(error, InputError):
            return error
        names = {known.full_name: name for name, known in self.variables().items()}
        where = error.where.replace(variable, names[variable], 1)
        renamed = ComputeError(error.message.replace(error.where, where, 1), where)
        renamed.code = error.code
        return renamed


_STATES = ("present", "absent", "restarted")
_STATE = Variable(
    "state",
    "str",
    "present",
    "V(present) launches sessions, repairs them, or changes the size of a session that runs. A session that does not fit waits in the "
    "queue. V(absent) ends sessions. What waits is then launched if it fits. V(restarted) restarts containers or an app of a running "
    "session.",
    value_rules.one_of(*_STATES),
    choices=_STATES,
    prefix="",
)
_PREPARED = Variable(
    "prepared",
    "bool",
    True,
    "With V(false), nothing is launched if agents must be provisioned or checked, or an image must be built first. RV(unprepared) is "
    "V(true) then. The playbook C(cluster_session.yml) uses it.",
    value_rules.check_boolean,
    prefix="",
)
_CHECKS = Variable(
    "checks",
    "dict",
    {},
    "The result of M(cluster.compute.agent_check_info), or RV(last_check). C(unfit) has the reason for each agent that gets no "
    "container of a new session. The launch fails if no agent is left.",
    check_checks,
    prefix="",
)
_BUILD = Variable(
    "build",
    "raw",
    None,
    "Names of environments of the collection. RV(build) has what is to be built for them, and no host is asked.",
    lambda _variable, value: value,
    prefix="",
)
OPTIONS: Mapping[str, Options] = {
    "session": Options((LAUNCH, TERMINATE, RESTART), own=(_STATE, _PREPARED, _CHECKS)),
    "session_exec": Options((EXEC,), "exec_"),
    "session_copy": Options((COPY,), "copy_"),
    "session_apps": Options((APPS,), "apps_"),
    "session_logs_info": Options((LOGS,), "logs_"),
    "session_queue": Options((SCHEDULE,)),
    "environments_info": Options((ENVIRONMENTS,), own=(_BUILD,)),
}
