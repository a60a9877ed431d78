# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Presets: names for the resources of a container, from a table that the inventory may replace."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Any, Dict, Mapping

from .._core.errors import InputError
from .request import REQUEST_VARIABLES

Table = Dict[str, Dict[str, Any]]

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
