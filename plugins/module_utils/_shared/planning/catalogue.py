# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Environments: names for an image with its apps, its command and its variables, from a table that the inventory may extend."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Mapping, NoReturn, Sequence, Tuple

from .. import value_rules
from ..codec import Document
from ..constants import REFERENCE_IMAGE
from ..documents.image import EnvironmentVersion
from ..documents.report import AgentReport
from ..errors import InputError
from ..names import check_environment, merged_environment
from . import app_rules

# An app as ``session_apps`` has it.
AppEntry = Mapping[str, Any]


@dataclass(frozen=True)
class Environment:
    """An environment: the image of each version, the default first, its apps by name, and defaults of a session's variables."""

    versions: Mapping[str, str]
    description: str = ""
    apps: Mapping[str, AppEntry] = field(default_factory=dict)
    command: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class EnvironmentBuild(Document):
    """An environment that the role image builds from the image of the environment that it extends."""

    name: str
    version: str
    image: str
    base: str


Table = Mapping[str, Environment]

_COMMANDS: Dict[str, Dict[str, Any]] = {
    "jupyterlab": {
        "port": 8888,
        "command": 'exec jupyter lab --ip=0.0.0.0 --port="$APP_PORT" --ServerApp.port_retries=0 --no-browser',
        "ready": "/api",
        "path": "/lab?token={token}",
    },
    "terminal": {
        "port": 7681,
        "command": 'exec web-terminal --port="$APP_PORT"',
        "ready": "/api",
        "path": "/terminals/main?token={token}",
    },
    "tensorboard": {"port": 6006, "command": 'exec tensorboard-with-token "$HOME/runs"', "path": "/{token}/"},
    # Its page asks for the token as a password.
    "code": {"port": 8443, "command": "exec web-editor", "ready": "/healthz", "path": "/login"},
    "slurm": {"port": 6820, "command": "exec slurm-session", "ready": "/"},
}
APPS: Mapping[str, AppEntry] = {name: {"name": name, **app} for name, app in _COMMANDS.items()}
_LAB = ("jupyterlab", "terminal", "tensorboard")
# Name, version, the environment that it extends, apps, description. The role image builds all but the first, in
# roles/image/files/environments.
_ROWS: Tuple[Tuple[str, str, str, Sequence[str], str], ...] = (
    ("reference", REFERENCE_IMAGE.rpartition(":")[2], "", (), "SSH, tmux and Python, and nothing else"),
    ("lab", "1.0", "reference", _LAB, "JupyterLab, a web terminal with tmux, TensorBoard"),
    ("pytorch", "2.13.0", "lab", _LAB, "PyTorch, and all of lab"),
    ("tensorflow", "2.21.0", "lab", _LAB, "TensorFlow for CPUs, and all of lab"),
    ("code", "4.139.1", "lab", (*_LAB, "code"), "The editor code-server with git, and all of lab"),
    ("mpi", "1.0", "reference", (), "Open MPI, mpi4py, NumPy, compilers, pdsh, clush and GNU parallel"),
    ("slurm", "1.0", "mpi", ("slurm",), "Slurm in the session, and all of mpi"),
)
# The first version is the default.
SHIPPED: Table = {
    name: Environment({version: f"cluster-compute/{name}:{version}"}, text, {app: APPS[app] for app in apps})
    for name, version, _base, apps, text in _ROWS
}
BASES = {name: base for name, _version, base, _apps, _text in _ROWS if base}
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,30}[a-z0-9])?")
_NAMES = re.compile(r"\[? *[a-z0-9-]+(?: *, *[a-z0-9-]+)* *\]?")
_VERSION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


def check_environments(variable: str, value: Any) -> Table:
    """The table with the environments of the collection. Raises InputError for the first broken rule."""
    if not isinstance(value, Mapping):
        raise InputError(variable, value, "must be a dictionary of environments by name")
    own = {
        str(name): _beside_shipped(name, _checked(f"{variable}.{name}", name, entry)) for name, entry in value.items()
    }
    return {**SHIPPED, **own}


def _beside_shipped(name: Any, entry: Environment) -> Environment:
    """An entry for an environment of the collection adds its versions to it, and what it does not say stays."""
    shipped = SHIPPED.get(name)
    if shipped is None:
        return entry
    others = {version: image for version, image in shipped.versions.items() if version not in entry.versions}
    return Environment(
        versions={**entry.versions, **others},
        description=entry.description or shipped.description,
        apps=entry.apps or shipped.apps,
        command=entry.command or shipped.command,
        environment=entry.environment or shipped.environment,
    )


def _checked(where: str, name: Any, value: Any) -> Environment:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputError(where, name, "must have lower-case letters, digits, '-' and '_' only")
    given = value_rules.entry_of(Environment, where, value)
    versions: Any = given.versions
    if not isinstance(versions, Mapping) or not versions:
        raise InputError(where + ".versions", versions, "must be a dictionary of images by version")
    for version in versions:
        if not isinstance(version, str) or not _VERSION.fullmatch(version):
            raise InputError(where + ".versions", version, "must be a version in quotes, such as '1.0'")
        value_rules.check_image(f"{where}.versions.{version}", versions[version])
    apps = [_expanded(where + ".apps", app, APPS) for app in value_rules.check_list(where + ".apps", given.apps or [])]
    names = [app.name for app in app_rules.check_apps(where + ".apps", apps)]
    return Environment(
        description=value_rules.check_text(where + ".description", given.description or ""),
        versions=dict(versions),
        apps=dict(zip(names, apps)),
        command=value_rules.check_script(where + ".command", given.command or ""),
        environment=check_environment(where + ".environment", given.environment or {}),
    )


def with_environment(values: Mapping[str, Any], table: Table) -> Dict[str, Any]:
    """The variables by full name, with the image, apps, command and variables of the environment that ``session_image`` names."""
    found = _filled(values, table, "reference", "session_", "session_apps")
    name = str(values.get("session_image") or "reference").partition(":")[0]
    entry = table.get(name) if values.get("session_image") else None
    if entry and entry.command and not values.get("session_command"):
        found["session_command"] = entry.command
    if isinstance(values.get("session_roles"), list):
        found["session_roles"] = [
            _filled(role, table, name, "", f"session_roles: {role.get('name')}: apps")
            if isinstance(role, Mapping)
            else role
            for role in values["session_roles"]
        ]
    return found


def _filled(values: Mapping[str, Any], table: Table, usual: str, prefix: str, where: str) -> Dict[str, Any]:
    """Complete a session or a role with the image, the variables and the whole apps of the environment that its image names.

    If the request names no apps, it gets the apps of the ``usual`` environment. An error names ``where`` the apps are.
    """
    found, image = dict(values), values.get(prefix + "image")
    name, _colon, version = str(image or usual).partition(":")
    entry, given = table.get(name), values.get(prefix + "environment") or {}
    if entry and image:
        variable = "session_image" if prefix else "session_roles"
        found[prefix + "image"] = _image(name, version, entry.versions, variable)
        if entry.environment and isinstance(given, Mapping):
            found[prefix + "environment"] = merged_environment(entry.environment, given)
    if prefix + "apps" in values:
        found[prefix + "apps"] = _whole_apps(where, values[prefix + "apps"], name, table)
    return found


def list_environments(table: Table) -> List[EnvironmentVersion]:
    """A row for every version of every environment."""
    return [
        EnvironmentVersion(name, version, image, tuple(entry.apps), entry.description)
        for name, entry in table.items()
        for version, image in entry.versions.items()
    ]


def to_build(names: Any) -> List[EnvironmentBuild]:
    """Builds in their order: an environment comes after the environment that it extends."""
    builds: Dict[str, EnvironmentBuild] = {}
    for name in value_rules.check_list("environments", _as_list(names)):
        if name not in BASES:
            raise InputError(
                "environments", name, f"must be an environment that the collection builds: {', '.join(BASES)}"
            )
        chain = [str(name)]
        while BASES.get(chain[0]) in BASES:
            chain.insert(0, BASES[chain[0]])
        for part in chain:
            version, image = next(iter(SHIPPED[part].versions.items()))
            base = next(iter(SHIPPED[BASES[part]].versions.values()))
            builds[part] = EnvironmentBuild(part, version, image, base)
    if not builds:
        raise InputError("environments", names, f"must name environments to build: {', '.join(BASES)}")
    return list(builds.values())


def built_by(image: str) -> str:
    """The environment that the role image builds under this reference; empty if it is another image.

    >>> built_by("cluster-compute/lab:1.0"), built_by("registry.example.org/lab:1.0")
    ('lab', '')
    """
    return next((name for name in BASES if image in SHIPPED[name].versions.values()), "")


def environment_like(image: str) -> str:
    """The environment whose misspelled name an image may be; empty if it is like none.

    >>> environment_like("pytorhc"), environment_like("pytorch-nightly"), environment_like("registry.example.org/pytorhc")
    ('pytorch', '', '')
    """
    found = difflib.get_close_matches(image.partition(":")[0], SHIPPED, 1, cutoff=0.75)
    return found[0] if found else ""


def _as_list(value: Any) -> Any:
    """Names on the command line, as in ``-e session_apps=[jupyterlab,terminal]``, which Ansible passes as a string.

    >>> _as_list("[jupyterlab, terminal]"), _as_list("jupyterlab")
    (['jupyterlab', 'terminal'], ['jupyterlab'])
    """
    if isinstance(value, str) and _NAMES.fullmatch(value):
        return [name for name in re.split(r"[\[\], ]+", value) if name]
    return value


def _image(name: str, version: str, versions: Mapping[str, str], variable: str) -> str:
    if not version:
        return next(iter(versions.values()))
    if version not in versions:
        rule = (
            "the environment %s has no such version, only %s; write docker.io/library/%s:%s for an image of that name"
        )
        raise InputError(variable, f"{name}:{version}", rule % (name, ", ".join(versions), name, version))
    return versions[version]


def _whole_apps(variable: str, value: Any, name: str, table: Table) -> Any:
    """The apps of a list as whole dictionaries. Names are looked up in the environment, or in the collection if there is none."""
    apps = _as_list(value)
    if not isinstance(apps, list):
        return value
    entry = table.get(name)
    known = entry.apps if entry else APPS
    where = f"the environment {name}" if entry else "the collection"
    for app in apps:
        if isinstance(app, str) and app not in known:
            others = [other for other, one in table.items() if app in one.apps]
            _refuse_app(variable, app, known, where, others)
    return [_expanded(variable, app, known) for app in apps]


def _refuse_app(variable: str, app: str, known: Iterable[str], where: str, others: Sequence[str] = ()) -> NoReturn:
    """Refuse the name of an app that is not ``known``; ``others`` are the environments that have it."""
    image = f"set session_image to {' or '.join(others)}, which has it, or " if others else ""
    rule = "%s has no app of this name, only %s; %swrite a dictionary with name, port and command"
    raise InputError(variable, app, rule % (where, ", ".join(known) or "none", image))


def _expanded(variable: str, app: Any, known: Mapping[str, AppEntry]) -> Any:
    """An app by name, or a dictionary that names it and changes parts of it, as a whole dictionary."""
    if isinstance(app, str):
        if app not in known:
            _refuse_app(variable, app, known, "the collection")
        return dict(known[app])
    if isinstance(app, Mapping) and app.get("name") in known and "command" not in app and "port" not in app:
        return {**known[str(app["name"])], **app}
    return app


def lacks(agent: AgentReport) -> List[str]:
    """C(agent) if the engine of a host, its SSH runtime or the reference image is missing, C(environment) if that image is missing.

    >>> lacks(AgentReport("a", reachable=False))
    ['agent']
    """
    missing = "" if agent.image.present else agent.image.reference
    is_agent = agent.reachable and agent.runtime.present
    found = ["agent"] if not is_agent or missing == REFERENCE_IMAGE else []
    return [*found, *(["environment"] if built_by(missing) else [])]
