# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``command_check``: it reads the names of variables on the controller and touches no host."""

from __future__ import annotations

from typing import Any, Dict, List, Set

from ansible.utils.vars import load_extra_vars

from ..module_utils._core.documents import Json
from ..module_utils._core.errors import ComputeError
from ..module_utils._planning.known_names import PREFIXES, check_known, suspects
from ..module_utils._planning.rules import check_names
from ..plugin_utils import _known_names as known_names
from ..plugin_utils._action import ComputeAction, raw_variables

SPEC = {"agents": {"type": "bool", "default": True}}
IGNORED = "session_ignored_variables"


class ActionModule(ComputeAction):
    """Looks at the agents, the head and the host of the task: no task reads the variables of other hosts."""

    _requires_connection = False

    def act(self, args: Json, task_vars: Json) -> Json:  # noqa: ARG002 (the check reads the task itself)
        _valid, checked = self.validate_argument_spec(argument_spec=SPEC)
        groups = task_vars.get("groups") or {}
        agents = [str(host) for host in groups.get("agents") or ()]
        heads = [str(host) for host in groups.get("head") or ()]
        variables = raw_variables(task_vars, dict.fromkeys([*agents, *heads, str(task_vars["inventory_hostname"])]))
        found: Dict[str, List[str]] = {}
        for host, own in variables.items():
            for name in own:
                if str(name).startswith(PREFIXES):
                    found.setdefault(str(name), []).append(host)
        given = {str(name) for name in load_extra_vars(self._loader)}
        self._check({*given}, found, [own.get(IGNORED) for own in variables.values()])
        if checked["agents"] and not agents:
            local = f"{task_vars['playbook_dir']}/inventory/local.yml"
            message = "The inventory has no host in the group agents: name one with -i, as in -i %s."
            raise ComputeError(message % local)
        return {"changed": False}

    def _check(self, given: Set[str], found: Dict[str, List[str]], ignored: List[Any]) -> None:
        """Reads the specifications of the other roles only if a name is none of the declared variables."""
        known: Set[str] = set(known_names.DECLARED)
        if not suspects({*given, *found}, known):
            return
        known |= known_names.of_other_roles()
        for value in ignored:
            known.update(check_names(IGNORED, self._templar.template(value) or []))
        check_known(given, found, known)
