# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Declare how a session is launched, shown and terminated: every other variable of the playbooks.

``request`` declares those that a request is made of.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Dict, Mapping, Tuple

from ...module_utils._shared import units, value_rules
from ...module_utils._shared.documents.declaration import (
    declared,
    declared_choice,
    declared_flag,
    declared_names,
    declared_text,
    declared_whole,
)
from ...module_utils._shared.errors import InputError
from ...module_utils._shared.names import check_session_name
from ...module_utils._shared.planning import catalogue, rules
from ...module_utils._shared.planning.request import REQUEST_VARIABLES
from ...module_utils._shared.planning.variable import (
    APPS,
    COMMIT,
    COPY,
    ENVIRONMENTS,
    EXEC,
    LAUNCH,
    LIST,
    LOGS,
    POLICY,
    RESTART,
    SCHEDULE,
    TERMINATE,
    USAGE,
    Variable,
    declared_variables,
    describe_variable,
)
from .access import AccessSettings
from .playbook_settings import PlaybookSettings

_WEEK = 7 * 86400
Table = Mapping[str, Mapping[str, Any]]

SHIPPED: Table = {
    "small": {"cpus": 1, "memory": "2g", "shm": "256m", "gpus": 0},
    "medium": {"cpus": 4, "memory": "16g", "shm": "2g", "gpus": 0},
    "large": {"cpus": 8, "memory": "64g", "shm": "16g", "gpus": 1},
}
_RESOURCES = {variable.name: variable for variable in REQUEST_VARIABLES if variable.name in SHIPPED["small"]}


def check_presets(variable: str, value: Any) -> Table:
    """The table, with each amount as it was given. Raises InputError for an unknown resource or a wrong amount."""
    if not isinstance(value, dict):
        raise InputError(variable, value, "must be a dictionary of presets by name")
    for name, resources in value.items():
        where = f"{variable}.{name}"
        if not isinstance(resources, dict):
            raise InputError(where, resources, f"must be a dictionary of {', '.join(_RESOURCES)}")
        for resource, amount in resources.items():
            if resource not in _RESOURCES:
                raise InputError(where, resource, f"must be one of {', '.join(_RESOURCES)}")
            _RESOURCES[resource].check(f"{where}.{resource}", amount)
    return {str(name): dict(resources) for name, resources in value.items()}


def with_preset(values: Mapping[str, Any], preset: str, presets: Table) -> Dict[str, Any]:
    """The variables by full name, with the resources of the preset where the user gives none.

    >>> with_preset({"session_cpus": 2}, "small", {"small": {"cpus": 1, "memory": "2g"}})
    {'session_cpus': 2, 'session_memory': '2g'}
    """
    if not preset:
        return dict(values)
    if preset not in presets:
        raise InputError("session_preset", preset, f"must be a preset of session_presets: {', '.join(sorted(presets))}")
    resources = {_RESOURCES[name].full_name: amount for name, amount in presets[preset].items()}
    given = {name: value for name, value in values.items() if name not in resources or value not in (None, "")}
    return {**given, **{name: amount for name, amount in resources.items() if name not in given}}


@dataclass(frozen=True)
class AppSettings:
    """The environments, and the change of the apps of a running session."""

    environments: catalogue.Table = declared(
        "dict",
        {},
        "Environments by name. They are added to the environments of the collection; one with such a name adds its "
        "versions, and replaces the other parts that it sets. Each is a dictionary: "
        "C(versions) has the image of each version, the default first; C(apps) are names or dictionaries as in C(session_apps); "
        "C(command) and C(environment) are the defaults of C(session_command) and C(session_environment); C(description) is shown in "
        "lists.",
        catalogue.check_environments,
        read_by=(LAUNCH, APPS, ENVIRONMENTS),
    )
    apps_publish: bool = declared_flag(
        "Publish the port of each app of O(session_apps) that the launch did not publish, by a relay: a small container of the "
        "session on the agent of C(main1), which ends with it. Otherwise the app is reached by SSH.",
        read_by=(APPS,),
    )
    apps_restart: Tuple[str, ...] = declared_names(
        "Names of apps to start again.", value_rules.check_names, read_by=(APPS,)
    )
    apps_remove: Tuple[str, ...] = declared_names("Names of apps to end.", value_rules.check_names, read_by=(APPS,))


@dataclass(frozen=True)
class PreflightSettings:
    """The check of the agents before a launch."""

    preflight: bool = declared_flag(
        "Check the agents before the launch, as C(check_agents.yml) does, and place no new session on an agent that fails. The "
        "launch says which agents it avoids, and fails if none is left.",
    )
    preflight_age: int = declared_whole(
        3600,
        (0, _WEEK),
        "Seconds for which O(session_preflight) uses the result of the last check of these agents and does not check again. With "
        "V(0), every launch checks.",
    )


_ALL = (LAUNCH, SCHEDULE, TERMINATE, LOGS, LIST, POLICY, USAGE, COMMIT, RESTART)
_MOST = 2**31 - 1
_LEASE = (
    "A launch adds O(session_bootstrap_timeout) if there is a bootstrap script, O(session_pull_timeout) for each image that an agent "
    "may pull, and O(session_apps_timeout) with apps and for each role that becomes ready."
)
_OF_REGISTRY: Dict[str, Any] = {
    "read_by": (LAUNCH, SCHEDULE),
    "notes": {SCHEDULE: "A waiting session does not keep it."},
}


@dataclass(frozen=True)
class LaunchSettings:
    """The settings of launches, ends, the queue, lists and logs."""

    like: str = declared_text(
        "Session of the same owner that runs or has ended, whose variables hold where none is given, except values of secrets.",
        check_session_name,
    )
    devcontainer: str = declared_text(
        "A C(devcontainer.json) on the controller, whose C(image), C(containerEnv), C(postCreateCommand), C(forwardPorts) and "
        "C(mounts) hold where O(session_image), O(session_environment), O(session_bootstrap), O(session_apps) and "
        "O(session_mounts) are not given. Environment variables of both hold. A warning names the other keys, which are ignored.",
        value_rules.check_path,
        path=True,
    )
    preset: str = declared_text(
        "Name of a preset of O(session_presets): resources of each container. O(session_cpus), O(session_memory), "
        "O(session_shm) or O(session_gpus) beside it has precedence.",
    )
    presets: Table = declared(
        "dict",
        SHIPPED,
        "The presets by name, each a dictionary of C(cpus), C(memory), C(shm) and C(gpus). Replaces the table of the collection.",
        check_presets,
        read_by=(LAUNCH, ENVIRONMENTS),
    )
    count: int = declared_whole(
        1,
        (1, 100),
        "Number of such sessions, from 1 to 100. Each of several has its number after the name. They are launched one "
        "after the other, and each is all or nothing.",
    )
    wait: float = declared(
        "float",
        0,
        "Seconds to wait while the session is PENDING, up to 604800, which is a week; then the playbook fails. With V(0), "
        "PENDING is a result and not a failure. The agents are examined again for each attempt.",
        rules.seconds_up_to(_WEEK),
    )
    fail_when_pending: bool = declared_flag(
        "Fail, with exit code 2, if the session is PENDING. It stays in the queue. For scripts that read the exit code.",
    )
    refuse_impossible: bool = declared_flag(
        "Refuse a session that the agents could not hold even without other sessions. By default, it is PENDING until another agent "
        "is added.",
    )
    launch_timeout: int = declared_whole(
        600,
        (1, _MOST),
        "Seconds for which a launch or a termination belongs to this controller, at least 1; then another run may take "
        "it over.",
        read_by=(LAUNCH, SCHEDULE, TERMINATE),
        notes={LAUNCH: _LEASE, SCHEDULE: _LEASE},
    )
    wait_result: bool = declared_flag(
        "Wait for the end of the batch command. The playbook fails if the command does.",
        read_by=(LAUNCH, SCHEDULE),
    )
    explain: bool = declared_flag(
        "Print on one line where the time of a launch went. C(trace.json) in the session's directory has the details.",
        read_by=(LAUNCH, SCHEDULE),
    )
    scale: bool = declared_flag(
        "Give the running session O(session_name) the size O(session_cluster_size). All of its other settings stay, whatever else the "
        "command sets.",
    )
    queue_policy: str = declared_choice(
        ("backfill", "strict"),
        "V(backfill) lets a later session start if an earlier one does not fit, V(strict) does not.",
        read_by=(LAUNCH, SCHEDULE),
    )
    relocate_unfenced: bool = declared_flag(
        "Move a session on one host away from a lost agent although no manager of a Swarm can confirm that the agent is down. The "
        "containers there may still run, and write to the same directories.",
        read_by=(SCHEDULE,),
    )
    policy: str = declared_choice(
        ("optional", "required"),
        "With V(required), nothing is launched unless the head has a policy of the site. With V(optional), no limits hold "
        "without a policy.",
        read_by=(LAUNCH, SCHEDULE),
    )
    queue_age_bound: int = declared_whole(
        3600,
        (0, _MOST),
        "Seconds after which later sessions no longer pass a waiting one.",
        read_by=(LAUNCH, SCHEDULE),
    )
    many: bool = declared_flag(
        "Terminate all live sessions of the owner whose names match O(session_name), a pattern with C(*), C(?) or C([…]).",
        read_by=(TERMINATE,),
    )
    provision: bool = declared_flag("Provision a host that is no agent yet.")
    registry: str = declared_text(
        "Registry that O(session_registry_username) is for. Images of other registries are pulled without that login.",
        default="docker.io",
        **_OF_REGISTRY,
    )
    registry_username: str = declared_text(
        "User who logs in to O(session_registry). If empty, the login that C(docker login) has left on the controller.",
        **_OF_REGISTRY,
    )
    keep_days: int = declared_whole(
        90,
        (0, 36500),
        "Days for which the head keeps a session after its end, with its history and its logs; V(0) for ever. Each pass over "
        "the queue removes what is older.",
        read_by=(SCHEDULE,),
    )
    keep_logs: int = declared(
        "str",
        "4g",
        "Size of all logs that the head keeps of ended sessions; V(0) for no limit. Each pass over the queue removes the oldest "
        "beyond it.",
        units.check_disk,
        read_by=(SCHEDULE,),
    )
    ended_too: bool = declared_flag("List sessions that have ended, too.", read_by=(LIST,))
    logs_containers: Tuple[str, ...] = declared_names(
        "Hostnames of the containers to show, which must belong to the session. If empty, all.",
        value_rules.check_names,
        read_by=(LOGS,),
    )
    logs_tail: int = declared_whole(
        200, (1, _MOST), "Number of the last lines to show of each container.", read_by=(LOGS,)
    )
    logs_follow: bool = declared_flag(
        "Show new lines as they are written, until the session ends, for at most a day. Ctrl-C ends it earlier.",
        read_by=(LOGS,),
    )
    head: str = declared_text(
        "Host that keeps the session store.",
        default="{{ (groups['head'] | default(groups['agents'])) | first }}",
        read_by=_ALL,
    )
    artifacts: str = declared_text(
        "Directory on the controller that holds a directory for each session.",
        default="~/.cluster-compute",
        path=True,
        read_by=(LAUNCH, SCHEDULE, TERMINATE, EXEC, COPY, APPS, COMMIT, RESTART),
    )
    state_dir: str = declared_text(
        "Directory of the session store on the head. If empty, C(/var/lib/cluster-compute), which provisioning shares with the users "
        "of the engine. C(agent_state_dir) must be the same. Any other directory is created with mode 0700; an existing one must "
        "be private, shared by root, or hold a store.",
        read_by=_ALL,
    )


@dataclass(frozen=True)
class Settings(PlaybookSettings, AppSettings, PreflightSettings, AccessSettings, LaunchSettings):
    """The checked variables that are no part of a request. One that a playbook does not read has its default."""


# No object holds them: who needs one reads the variable.
SECRET_VARIABLES = (
    describe_variable("registry_password", "Password or access token of that user.", **_OF_REGISTRY, secret=True),
    describe_variable(
        "notify",
        "URL that gets a POST of JSON, or command of the controller's shell that gets JSON as its input, when a session runs, has "
        "ended, has failed or is degraded, and when its command has succeeded. It is tried three times, and nothing waits for it.",
        rules.check_notify,
        read_by=(LAUNCH, SCHEDULE, TERMINATE),
        secret=True,
    ),
)
_SETTINGS = declared_variables(Settings)
_FIELDS = {variable.full_name: variable.field for variable in _SETTINGS}
VARIABLES: Tuple[Variable, ...] = (*REQUEST_VARIABLES, *_SETTINGS, *SECRET_VARIABLES)
# What a launch reads, and the queue keeps with a waiting session.
KEPT: Tuple[Variable, ...] = tuple(variable for variable in REQUEST_VARIABLES if variable.kept)


@lru_cache(maxsize=None)
def read_by(playbook: str) -> Tuple[Variable, ...]:
    """The variables that a playbook reads; ``schedule`` reads those that a waiting session keeps, too."""
    return tuple(
        variable for variable in VARIABLES if playbook in variable.read_by or (playbook == SCHEDULE and variable.kept)
    )


def check_variables(playbook: str, values: Mapping[str, Any]) -> Settings:
    """Check the variables of a playbook, and return the settings among them in their normal form.

    A value that is missing, None or empty means the default. InputError names the first broken rule. Secrets and what
    belongs to a request are checked, and not returned.

    >>> check_variables("list", {"session_ended_too": "yes"}).ended_too
    True
    """
    checked: Dict[str, Any] = {}
    for variable in read_by(playbook):
        value = values.get(variable.full_name)
        is_empty = value in (None, "") and variable.default == ""
        means_everyone = variable.name == "owner" and playbook in (LOGS, LIST) and value == "all"
        if variable.name == "name" and playbook == TERMINATE and rules.is_name_pattern(value):
            rules.check_name_pattern(variable.full_name, value)
            normal = value
        elif is_empty or means_everyone:
            normal = "" if is_empty else value
        else:
            normal = variable.normal_form(value)
        if variable.full_name in _FIELDS:
            checked[_FIELDS[variable.full_name]] = normal
    return Settings(**checked)
