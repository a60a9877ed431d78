# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The variables of the playbooks, checked on the controller before any host is touched."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Sequence, Set, Tuple

from ansible.release import __version__
from ansible.utils.vars import load_extra_vars
from jinja2 import __version__ as jinja_version

from ...module_utils._shared.codec import Json
from ...module_utils._shared.documents.plan import App
from ...module_utils._shared.documents.session_json import SessionDocument
from ...module_utils._shared.errors import ComputeError, InputError, escape_control
from ...module_utils._shared.names import check_owner, check_session_name, random_name
from ...module_utils._shared.planning import catalogue
from ...module_utils._shared.planning.app_rules import check_apps
from ...module_utils._shared.planning.mount_rules import check_mounts, with_owner
from ...module_utils._shared.planning.request import REQUEST_VARIABLES, Request
from ...module_utils._shared.planning.request_checks import check_request, check_resource_group
from ...module_utils._shared.planning.secret_rules import SECRETS
from ...module_utils._shared.planning.variable import APPS, ENVIRONMENTS, LAUNCH, LIST, from_text
from .._client import last_check, shared_config
from .._client.secret_values import plain_secrets, read_secrets
from .._client.shell import Shell
from .._hosts.action import ComputeAction
from .._hosts.holder import login
from .._hosts.ssh_route import addresses
from .._settings.agent_checks import AgentChecks
from .._settings.playbook_settings import resolved_settings
from .._settings.session_files import extra_files
from .._settings.settings import Settings, check_variables, read_by, with_preset
from .apps_change import AppsChange
from .devcontainer import VARIABLE as DEVCONTAINER
from .templates import check_environment
from .value_warnings import unexpanded_paths, windows_scripts

# The playbooks that need the name of a session.
_NEEDS_NAME = next(one.required_by for one in REQUEST_VARIABLES if one.full_name == "session_name")


@dataclass(frozen=True)
class LaunchVariables:
    """The settings of a launch, a request for each session, where each value comes from, and the last check of the agents."""

    settings: Settings
    requests: Sequence[Request]
    origins: Mapping[str, str]
    last_check: AgentChecks | None


def checked_settings(action: ComputeAction, playbook: str) -> Settings:
    """Return what a playbook reads from the options and variables of its task, in its normal form.

    Raises InputError, which names the variable, and ComputeError for a release of Ansible that is not safe.
    """
    values = _given(action, playbook)
    _warn(action, values)
    if playbook == ENVIRONMENTS:
        values = catalogue.with_environment(values, _table(values))
    settings = _checked(playbook, values)
    return resolved_settings(settings) if playbook == LIST else settings


def launch_variables(action: ComputeAction, other: Json) -> LaunchVariables:
    """Return what a launch reads.

    ``other`` has variables of another session or a devcontainer.json, for those that are not given.
    """
    given = _given(action, LAUNCH)
    asked = _merged(given, other)
    _warn(action, asked)
    values = catalogue.with_environment(asked, _table(asked))
    if values.get("session_mounts"):
        owner = check_owner("session_owner", values.get("session_owner") or login())
        values["session_mounts"] = with_owner(values["session_mounts"], owner)
    settings = _checked(LAUNCH, values)
    for name in _of_typed_preset(action, settings).difference(given):
        values.pop(name, None)
        asked.pop(name, None)
    return LaunchVariables(
        settings,
        _requests(action, values, settings),
        _origins(action, given, asked, values, settings),
        _last_check(action, settings),
    )


def apps_change(action: ComputeAction) -> AppsChange:
    """Return the change of the apps of a running session that the variables ask for."""
    values = _given(action, APPS)
    _warn(action, values)
    table = _table(values)
    if values.get("session_name"):
        image = str(_document_of_running(values).session.image or "")
        values = {**values, "session_image": _environment_of_running(image, values, table)}
    values = catalogue.with_environment(values, table)
    return _of_running_session(values, _checked(APPS, values))


def _given(action: ComputeAction, playbook: str) -> Dict[str, Any]:
    check_release(__version__, jinja_version)
    _check_leftover(load_extra_vars(action._loader))
    return _values(action, playbook)


def _table(values: Json) -> catalogue.Table:
    return catalogue.check_environments("session_environments", values.get("session_environments") or {})


def _checked(playbook: str, values: Json) -> Settings:
    settings = check_variables(playbook, values)
    if playbook in _NEEDS_NAME and not values.get("session_name"):
        raise InputError("session_name", "", "must be given, as in -e session_name=train; sessions.yml lists sessions")
    return settings


def _warn(action: ComputeAction, values: Json) -> None:
    for caution in (windows_scripts(values), unexpanded_paths(values)):
        if caution:
            action._display.warning(escape_control(caution))


def _of_typed_preset(action: ComputeAction, settings: Settings) -> Set[str]:
    """The variables of a preset that this command names: they take precedence over those of another session."""
    if "session_preset" not in {*action.given, *extra_files(action._loader)}:
        return set()
    return set(with_preset({}, settings.preset, settings.presets))


def _origins(action: ComputeAction, given: Json, asked: Json, values: Json, settings: Settings) -> Dict[str, str]:
    """Where each value of a launch comes from, by full name.

    ``asked`` are the given values, completed from another session or a devcontainer.json, and ``values`` those with an environment.
    Ansible keeps no account of which value the inventory, a play or a fact gave.
    """
    there = {name for name, value in asked.items() if value not in (None, "")}
    own = {name for name in there if given.get(name) not in (None, "")}
    other = asked.get(DEVCONTAINER) or f"session {asked.get('session_like')}"
    found = {name: "inventory or playbook" if name in own else other for name in there}
    found.update({name: file or "command line" for name, file in extra_files(action._loader).items() if name in own})
    found.update(dict.fromkeys(own.intersection(action.given), "task"))
    found.update({name: f"{found[name]}, {other}" for name in own if asked[name] != given[name]})
    for name in ("session_image", "session_command", "session_environment"):
        if values.get(name) != asked.get(name):
            found[name] = ", ".join([*filter(None, [found.get(name)]), f"environment {asked['session_image']}"])
    for name in with_preset({}, settings.preset, settings.presets):
        found.setdefault(name, f"preset {settings.preset}")
    return found


def _requests(action: ComputeAction, values: Json, settings: Settings) -> List[Request]:
    """The requests of a launch, whose agents exist and whose secrets can be read."""
    values = with_preset(values, settings.preset, settings.presets)
    is_given = all(values.get(name) not in (None, "") for name in ("session_name", "session_cluster_size"))
    if settings.scale and (not is_given or settings.count != 1):
        raise InputError(
            "session_scale", True, "needs the session_name of one session that runs, and session_cluster_size"
        )
    values["session_resource_group"] = _chosen_group(values, _groups(action.task_vars))
    requests = make_requests(values, settings.count)
    _check_agents(requests[0], [str(host) for host in action.task_vars.get("ansible_play_hosts_all") or []])
    read_secrets(requests[0].secrets, values.get(SECRETS), action._loader)
    return requests


def _groups(task_vars: Json) -> List[str]:
    """The resource groups of all agents of the play, from the inventory."""
    hostvars = task_vars.get("hostvars") or {}
    found: List[str] = []
    for host in task_vars.get("ansible_play_hosts_all") or ():
        groups = (hostvars.get(host) or {}).get("agent_resource_group") or "default"
        found += groups.split(",") if isinstance(groups, str) else groups
    return list(dict.fromkeys(str(group).strip() for group in found))


def _values(action: ComputeAction, playbook: str) -> Dict[str, Any]:
    """The options and the variables of the task, by full name; those that are not set are left out."""
    names = [variable.full_name for variable in read_by(playbook)]
    found = {name: action.value(name) for name in names if name in action.given or name in action.task_vars}
    values = {name: from_text(name, value) for name, value in found.items()}
    return {name: plain_secrets(value) if name == SECRETS else value for name, value in values.items()}


def _merged(given: Json, other: Json) -> Json:
    """The given variables, completed from another session or a devcontainer.json. An empty text counts as not given."""
    found = {**other, **{name: value for name, value in given.items() if value not in (None, "") or name not in other}}
    if not given.get(DEVCONTAINER):
        return found
    name, mounts = "session_environment", "session_mounts"
    if isinstance(found.get(name), Mapping):
        found[name] = {**other.get(name, {}), **found[name]}
    if other.get(mounts) and given.get(mounts):
        own = given[mounts].split(",") if isinstance(given[mounts], str) else list(given[mounts])
        targets = {mount.target for mount in check_mounts(mounts, with_owner(own, "owner"))}
        found[mounts] = [*own, *(mount for mount in other[mounts] if mount["target"].rstrip("/") not in targets)]
    return found


def _document_of_running(values: Json) -> SessionDocument:
    return Shell(str(values.get("session_artifacts") or ""), str(values["session_name"])).document


def _environment_of_running(image: str, values: Json, table: catalogue.Table) -> str:
    """The environment that has the ``image`` of a running session, the user's own before others, or else the image."""
    own = [name for name, entry in reversed(tuple(table.items())) if image in entry.versions.values()]
    given = str(values.get("session_image") or "").partition(":")[0]
    return given if given in own else next(iter(own), image)


def _of_running_session(values: Json, settings: Settings) -> AppsChange:
    """Where main1 of a running session is, and the apps to start, in their normal form."""
    document = _document_of_running(values)
    apps = check_apps("session_apps", values.get("session_apps") or [])
    for app in apps:
        if not app.command:
            raise InputError(
                "session_apps", app.name, "needs a command: the ports of a session are published at its launch"
            )
    seconds = int(values.get("session_apps_timeout") or Request.apps_timeout)
    publish = _unpublished(document, apps) if settings.apps_publish else []
    ports = str(values.get("session_port_range") or Request.port_range)
    changed = (settings.apps_restart, settings.apps_remove)
    return AppsChange(document.session.id, seconds, apps, publish, *changed, ports)


def _unpublished(document: SessionDocument, apps: Sequence[App]) -> List[str]:
    """The names of the apps whose ports the launch of the session did not publish."""
    known = {entry.name for entry in document.apps if entry.port and not entry.relay}
    return [app.name for app in apps if app.name not in known]


def make_requests(values: Json, count: int) -> List[Request]:
    """A request for each session. If there are several, each name ends with a number."""
    asked = {variable.name: values.get(variable.full_name) for variable in REQUEST_VARIABLES}
    given = {name: value for name, value in asked.items() if value not in (None, "")}
    given["name"] = given.get("name") or random_name()
    given["owner"] = given.get("owner") or login()
    if not isinstance(given["name"], str):
        check_session_name("session_name", given["name"])
    names = [given["name"]] if count == 1 else ["%s-%d" % (given["name"], number) for number in range(1, count + 1)]
    if shared_config.NAME in names:
        raise InputError(
            "session_name", shared_config.NAME, "is the name of a file in session_artifacts: choose another"
        )
    requests = [check_request(dict(given, name=name)) for name in names]
    check_environment(requests[0])
    return requests


def check_release(version: str, jinja: str) -> None:
    """Refuse the releases of ansible-core that evaluate templates in text that hosts return (CVE-2024-11079).

    And those of Jinja2 whose sandbox lets the expressions of a user read the environment of this process (CVE-2025-27516).
    """
    numbers = _numbers(version)
    if _numbers(jinja) < (3, 1, 6):
        message = "Jinja2 %s has CVE-2025-27516, which lets sessions read the environment of this machine; install 3.1.6 or newer."
        raise ComputeError(message % jinja)
    if numbers < (2, 17, 7) or numbers == (2, 18, 0):
        message = "ansible-core %s has CVE-2024-11079, which lets hosts run code on this machine; install 2.17.7, 2.18.1 or newer."
        raise ComputeError(message % version)


def _numbers(version: str) -> Tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"[0-9]+", version)[:3])


def _check_leftover(extra_vars: Json) -> None:
    """Refuse parts without a name: Ansible splits ``-e name=value`` at spaces, and stores such parts as ``_raw_params``."""
    leftover = extra_vars.get("_raw_params")
    if leftover:
        rule = (
            "Ansible splits name=value at spaces, and this part has no name; write a value with spaces as JSON, as in "
            """-e '{"session_command": "echo before; exit 3"}'"""
        )
        raise InputError("-e", str(leftover), rule)


def _chosen_group(values: Json, groups: List[str]) -> Any:
    """The resource group that the variable names, or the only one of the agents. Without either, the policy may permit only one."""
    given = values.get("session_resource_group")
    if given in (None, ""):
        return groups[0] if len(groups) == 1 else given
    check_resource_group(str(given), groups)
    return given


def _last_check(action: ComputeAction, settings: Settings) -> AgentChecks | None:
    """The last check of these agents, for a launch with a preflight; None without, or if it is missing or too old."""
    if not settings.preflight:
        return None
    agents = addresses(action.task_vars, action._task)
    return last_check.read_last_check(settings.artifacts, agents, settings.preflight_age)


def _check_agents(request: Request, inventory: List[str]) -> None:
    """Refuse a designated agent that does not exist: the session would never be launched."""
    unknown = [name for name in request.agents if name not in inventory]
    if unknown:
        rule = f"must be an agent of this play, which are {', '.join(inventory)}"
        raise InputError("session_agents", unknown[0], rule)
