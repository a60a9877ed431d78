# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The names of all variables and results of this collection, and the check of those that a command or an inventory gives."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Set

import yaml
from ansible import context
from ansible.utils.vars import load_extra_vars

from ...module_utils._shared.codec import Json
from ...module_utils._shared.errors import ComputeError
from ...module_utils._shared.value_rules import check_names
from .._hosts.action import ComputeAction, raw_variables
from .._settings.known_names import AGENT_VARIABLES, PREFIXES, check_known, in_templates, of_collection, suspects
from .._settings.playbook_settings import ENVIRONMENTS_TO_BUILD
from .._settings.session_files import extra_files
from .._settings.settings import VARIABLES

# What the playbooks leave for later tasks of a play.
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
# Inventories that the command cluster-compute finds in the working directory.
_INVENTORIES = ("cluster-compute.yml", "hosts.yml")
_COLLECTION = Path(__file__).resolve().parents[3]
_ROLES = _COLLECTION / "roles"
# The variables of a task that are other objects of Ansible, or that the hosts have as well.
_OF_OTHERS = frozenset(("hostvars", "groups", "vars", "environment"))


def of_roles() -> Set[str]:
    """The variables that the argument specifications of the roles have."""
    names: Set[str] = set()
    for path in _ROLES.glob("*/meta/argument_specs.yml"):
        text = path.read_text(encoding="utf-8")
        specified = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        for entry_point in specified["argument_specs"].values():
            names.update(entry_point.get("options") or {})
    return names


def check_command(place: ComputeAction, agents: bool = True) -> Json:
    """Refuse misspelled variables, and an inventory without agents if it must have some.

    It looks at the agents, the head and the host of the task: no task reads the variables of other hosts.
    """
    groups = place.task_vars.get("groups") or {}
    listed = [str(host) for host in groups.get("agents") or ()]
    heads = [str(host) for host in groups.get("head") or ()]
    hosts = dict.fromkeys([*listed, *heads, str(place.task_vars["inventory_hostname"])])
    variables = raw_variables(place.task_vars, hosts)
    found: Dict[str, List[str]] = {}
    for host, own in variables.items():
        for name in own:
            if str(name).startswith(PREFIXES):
                found.setdefault(str(name), []).append(host)
    files = extra_files(place._loader)
    extra = load_extra_vars(place._loader)
    given = {str(name): files.get(str(name), "") for name in extra}
    _check_names(place, given, found, [extra, *variables.values()])
    if agents and not listed:
        raise ComputeError(_without_agents(str(place.task_vars["playbook_dir"])))
    return {}


def _without_agents(playbooks: str) -> str:
    """The message for an inventory without agents: no machine is used by accident, also not the one that runs the playbook."""
    found = [name for name in _INVENTORIES if os.path.exists(name)]
    here = f", as in -i {found[0]}" if found else ""
    sources = [str(name) for name in context.CLIARGS.get("inventory") or ()]
    missing = [name for name in sources if "," not in name and not os.path.exists(name)]
    lacks = f"There is no inventory {missing[0]}" if missing else "The inventory has no host in the group agents"
    return (
        f"{lacks}: name one with -i FILE or ANSIBLE_INVENTORY{here}. "
        f"For this machine alone: -i {playbooks}/inventory/local.yml."
    )


def _check_names(
    place: ComputeAction, given: Mapping[str, str], found: Dict[str, List[str]], variables: List[Mapping[str, Any]]
) -> None:
    """Reads templates and the specifications of the roles only if a name is none of the declared variables."""
    known: Set[str] = set(DECLARED)
    if not suspects(given, found, known):
        return
    known |= of_roles()
    if not _are_of_collection(context.CLIARGS.get("args") or ()):
        given = of_collection(given, known)
    for own in variables:
        known.update(check_names(IGNORED, place._templar.template(own.get(IGNORED)) or []))
    # A name without our prefix may be a part of a value, as in -e run=7 for session_name: "train-{{ run }}".
    read = {name for own in [*variables, _of_task(place.task_vars)] for name in in_templates(dict(own))}
    known |= {name for name in read if not name.startswith(PREFIXES)}
    check_known(given, found, known)


def _of_task(variables: Mapping[str, Any]) -> Dict[str, Any]:
    return {name: value for name, value in variables.items() if name not in _OF_OTHERS}


def _are_of_collection(playbooks: Iterable[str]) -> bool:
    """Return whether all playbooks of the command are the collection's: no play of the user reads variables of its own."""
    folder = _COLLECTION / "playbooks"
    return all(one.startswith("cluster.compute.") or Path(one).resolve().parent == folder for one in playbooks)
