# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A request as the variables that ask for it, in the form in which a user writes them."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping

from ...module_utils._shared.codec import Json, non_default_fields
from ...module_utils._shared.documents.plan import App, Role
from ...module_utils._shared.planning.request import REQUEST_VARIABLES, Request
from ...module_utils._shared.planning.role_rules import FIELDS

_UNITS = (("t", 1 << 40), ("g", 1 << 30), ("m", 1 << 20), ("k", 1 << 10))
# Of an app, these follow from the others.
_LEAST_OF_APP = ("name", "port")


def variables_of(request: Request) -> Dict[str, Any]:
    """The variables of a request by full name, without those that have their default. Secrets have no value."""
    # A limit of containers on an agent gives the mode another default.
    is_limited = any((request.per_agent, *(part.per_agent for part in request.parts)))
    found, needed = {}, ("name", "owner", "cluster_mode" if is_limited else "")
    for variable in REQUEST_VARIABLES:
        value = getattr(request, variable.field)
        if variable.field == "size" and request.roles:
            continue  # the sum of theirs
        if variable.name in needed or value != variable.normal_form(variable.default):
            found[variable.full_name] = _WRITTEN.get(variable.field, _plain)(value)
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


def _number(value: float) -> float:
    """
    >>> _number(2.0), _number(0.5)
    (2, 0.5)
    """
    return int(value) if value == int(value) else value


def _size(amount: int) -> str:
    """An amount in the largest unit that gives a whole number.

    >>> _size(1 << 30), _size(1536 << 20), _size(1000)
    ('1g', '1536m', '1000b')
    """
    return next(
        ("%d%s" % (amount // size, unit) for unit, size in _UNITS if amount and not amount % size), "%db" % amount
    )


def _app(app: App) -> Json:
    kept = {name: value for name, value in app.to_json().items() if value or name in _LEAST_OF_APP}
    # A TCP port that is ready is a number.
    return {**kept, **({"ready": int(app.ready)} if app.ready.isdigit() else {})}


def _role(role: Role) -> Json:
    """With all that the role has, also from its session: the same again if the session's variables change."""
    values = {option: getattr(role, field) for option, field in FIELDS.items()}
    kept = {option: value for option, value in values.items() if value not in ("", (), {})}
    return {
        "name": role.name,
        **{option: _WRITTEN.get(FIELDS[option], _plain)(value) for option, value in kept.items()},
    }


_WRITTEN: Dict[str, Callable[[Any], Any]] = {
    "millicpus": lambda value: _number(value / 1000),
    "gpus": _number,
    **dict.fromkeys(("memory", "shm", "disk", "log_size"), _size),
    "mounts": lambda mounts: [mount.to_json() for mount in mounts],
    "secrets": lambda secrets: [non_default_fields(secret) for secret in secrets],
    "apps": lambda apps: [_app(app) for app in apps],
    "roles": lambda roles: [_role(role) for role in roles],
    "user": lambda user: {"uid": user.uid, "gid": user.gid},
}
