# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The names of all variables and results of this collection, and the check of those that a command or an inventory gives."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Dict, List, Set

import yaml
from ansible.utils.vars import load_extra_vars

from ..module_utils._core.documents import Json
from ..module_utils._core.errors import ComputeError
from ..module_utils._core.value_rules import check_names
from ..module_utils._planning.known_names import AGENT_VARIABLES, PREFIXES, check_known, suspects
from ..module_utils._planning.playbook_settings import ENVIRONMENTS_TO_BUILD
from ..module_utils._planning.settings import VARIABLES
from ._action import Controller, raw_variables

# What the roles leave for later tasks of a play.
RESULTS = frozenset(
    (
        "agent_checks session_apps_changed session_copied session_environments_listed session_executed session_ended session_launched "
        "session_listed session_logs_read session_scheduled session_policy session_usage"
    ).split()
)
DECLARED = frozenset(
    (*(variable.full_name for variable in VARIABLES), *AGENT_VARIABLES, *RESULTS, ENVIRONMENTS_TO_BUILD)
)
IGNORED = "session_ignored_variables"
_OTHER_ROLES = ("agent", "image", "ssh", "timer")
# Inventories that the command cluster-compute finds in the working directory.
_INVENTORIES = ("cluster-compute.yml", "hosts.yml")
_ROLES = Path(__file__).resolve().parents[2] / "roles"


def of_other_roles() -> Set[str]:
    """The variables that the argument specifications of the roles beside ``session`` have."""
    names: Set[str] = set()
    for role in _OTHER_ROLES:
        text = (_ROLES / role / "meta" / "argument_specs.yml").read_text(encoding="utf-8")
        specified = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        for entry_point in specified["argument_specs"].values():
            names.update(entry_point.get("options") or {})
    return names


def check_command(place: Controller, agents: bool = True) -> Json:
    """Refuse misspelled variables, and an inventory without agents if it must have some.

    It looks at the agents, the head and the host of the task: no task reads the variables of other hosts.
    """
    groups = place.variables.get("groups") or {}
    listed = [str(host) for host in groups.get("agents") or ()]
    heads = [str(host) for host in groups.get("head") or ()]
    hosts = dict.fromkeys([*listed, *heads, str(place.variables["inventory_hostname"])])
    variables = raw_variables(place.variables, hosts)
    found: Dict[str, List[str]] = {}
    for host, own in variables.items():
        for name in own:
            if str(name).startswith(PREFIXES):
                found.setdefault(str(name), []).append(host)
    given = {str(name) for name in load_extra_vars(place.action._loader)}
    _check_names(place, given, found, [own.get(IGNORED) for own in variables.values()])
    if agents and not listed:
        raise ComputeError(_without_agents(str(place.variables["playbook_dir"])))
    return {}


def _without_agents(playbooks: str) -> str:
    """The message for an inventory without agents: no machine is used by accident, also not the one that runs the playbook."""
    found = [name for name in _INVENTORIES if os.path.exists(name)]
    here = f", as in -i {found[0]}" if found else ""
    return (
        f"The inventory has no host in the group agents: name one with -i FILE or ANSIBLE_INVENTORY{here}. "
        f"For this machine alone: -i {playbooks}/inventory/local.yml."
    )


def _check_names(place: Controller, given: Set[str], found: Dict[str, List[str]], ignored: List[Any]) -> None:
    """Reads the specifications of the other roles only if a name is none of the declared variables."""
    known: Set[str] = set(DECLARED)
    if not suspects({*given, *found}, known):
        return
    known |= of_other_roles()
    for value in ignored:
        known.update(check_names(IGNORED, place.action._templar.template(value) or []))
    check_known(given, found, known)
