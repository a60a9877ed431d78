# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of the actions for sessions, from the declaration of the variables. Private to this collection."""

from __future__ import annotations

import json
import re
from typing import Any, Dict, Mapping, Match

from ..module_utils._shared.codec import Json
from ..module_utils._shared.planning.variable import TERMINATE, Variable
from ..plugin_utils._settings.options import OPTIONS, Options

_EMPTY = (None, "", [], {}, False)


def _documentation(action: str) -> str:
    """The options of an action. JSON is YAML, too."""
    options = OPTIONS[action]
    variables = options.variables()
    names = {variable.full_name: name for name, variable in variables.items()}
    return json.dumps({"options": {name: _option(options, one, names) for name, one in variables.items()}})


def _option(options: Options, variable: Variable, names: Mapping[str, str]) -> Json:
    notes = [variable.notes[playbook] for playbook in options.playbooks if playbook in variable.notes]
    if TERMINATE in options.playbooks and TERMINATE in variable.required_by:
        notes.append("Required with O(state=absent).")
    return _described({**options.documentation(variable), "description": [variable.description, *notes]}, names)


def _described(attributes: Mapping[str, Any], names: Mapping[str, str]) -> Json:
    """As modules document an option: with suboptions, without empty attributes, and with the names of options for variables."""
    found: Dict[str, Any] = {
        key: value
        for key, value in attributes.items()
        if key not in ("options", "no_log") and (value not in _EMPTY or (key == "default" and value is not None))
    }
    texts = attributes["description"]
    found["description"] = [_named(text, names) for text in ([texts] if isinstance(texts, str) else texts)]
    if attributes.get("options"):
        found["suboptions"] = {name: _described(part, names) for name, part in attributes["options"].items()}
    return found


def _named(text: str, names: Mapping[str, str]) -> str:
    """A description with options for variables: O(session_cpus) becomes O(cpus)."""

    def option(found: Match[str]) -> str:
        return f"O({names[found[1]]}" if found[1] in names else f"C({found[1]}"

    return re.sub(r"O\((session_\w+)", option, text)


class ModuleDocFragment:
    """The options of each action."""

    SESSION = _documentation("session")
    SESSION_EXEC = _documentation("session_exec")
    SESSION_COPY = _documentation("session_copy")
    SESSION_APPS = _documentation("session_apps")
    SESSION_LOGS_INFO = _documentation("session_logs_info")
    SESSION_QUEUE = _documentation("session_queue")
    ENVIRONMENTS_INFO = _documentation("environments_info")
