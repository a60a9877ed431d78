# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fields of a dataclass that declare a variable of the role ``session``: a name, a default and a rule, once for all readers."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Dict, Tuple

from . import plain_value, value_rules
from .digests import UNCOUNTED

Check = Callable[[str, Any], Any]
# Where the metadata of a field has the attributes of its variable.
DECLARATION = "declaration"


def declared(
    kind: str,
    default: Any,
    description: str,
    check: Check,
    variable: str = "",
    required: bool = False,
    **more: Any,
) -> Any:
    """A field of a dataclass that declares its variable. Its default is the normal form of the variable's.

    ``variable`` names the variable if the field has another name. A field that is ``required`` has no default. One that is
    ``kept`` counts in no digest. ``Variable`` in ``_planning/variable.py`` has the other attributes, too.
    """
    rule = plain_value.checked(check)
    attributes: Dict[str, Any] = {
        **more,
        "name": variable,
        "type": kind,
        "default": default,
        "description": description,
        "check": rule,
    }
    metadata = {DECLARATION: attributes, **(UNCOUNTED if more.get("kept") else {})}
    if required:
        return dataclasses.field(metadata=metadata)  # pylint: disable=invalid-field-call
    normal = rule(variable, default)
    if isinstance(normal, dict):
        return dataclasses.field(default_factory=normal.copy, metadata=metadata)  # pylint: disable=invalid-field-call
    return dataclasses.field(default=normal, metadata=metadata)  # pylint: disable=invalid-field-call


def declared_choice(choices: Tuple[str, ...], description: str, **more: Any) -> Any:
    """A field that declares a variable with few values, the first of which is the default."""
    return declared("str", choices[0], description, value_rules.one_of(*choices), choices=choices, **more)


def declared_flag(description: str, **more: Any) -> Any:
    """A field that declares a variable that is false by default."""
    return declared("bool", False, description, value_rules.check_boolean, **more)
