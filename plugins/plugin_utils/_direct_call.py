# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: may change in any release.

"""Modules in the process that they are called from, where they would run in this very Python and as this user anyway.

To pack a module, start a Python for it and import the Docker SDK there costs about half a second, a call nothing. It is
the module's own ``main`` that runs, with a stand-in for ``AnsibleModule``: same options, same result.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any, NoReturn, Sequence

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.parameters import remove_values

from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json

# Those that a launch and an end wait for. Others start processes that outlive them, or are called seldom.
MODULES = frozenset(("agent_info", "containers", "logs", "network", "schedule", "session", "session_info", "ssh"))
_PLUGINS = "ansible_collections.cluster.compute.plugins."

# For the SDK behind it: Ansible loads action plugins before it forks the workers that run them, and each has it then.
importlib.import_module(_PLUGINS + "module_utils._docker.client")


class _Left(Exception):  # noqa: N818
    """The module has left, with its result."""

    def __init__(self, result: Json) -> None:
        super().__init__()
        self.result = result


class _StandIn:
    """As much of ``AnsibleModule`` as our modules use."""

    def __init__(self, args: Json, *, check_mode: bool, diff: bool) -> None:
        self.params: Json = args
        self.check_mode = check_mode
        self._diff = diff
        self._warnings: list[str] = []
        self._secrets: Any = set()

    def __call__(self, argument_spec: Json, supports_check_mode: bool = False, **rules: Any) -> _StandIn:
        """What the module's ``main`` calls with its options: they are checked as a module's are."""
        if self.check_mode and not supports_check_mode:
            self.exit_json(skipped=True, msg="This module does not support check mode.")
        checked = ArgumentSpecValidator(argument_spec, **rules).validate(self.params)
        if checked.error_messages:
            self.fail_json(msg=checked.error_messages[0])
        self.params, self._secrets = checked.validated_parameters, checked._no_log_values
        return self

    def warn(self, text: str) -> None:
        self._warnings.append(text)

    def exit_json(self, **result: Any) -> NoReturn:
        result.setdefault("changed", False)
        if self._warnings:
            result["warnings"] = self._warnings
        # As it would have come back from a process of its own: plain documents, without what may not be logged.
        raise _Left(remove_values(json.loads(json.dumps(result)), self._secrets))

    def fail_json(self, msg: str, **result: Any) -> NoReturn:
        self.exit_json(failed=True, msg=msg, **result)


def call(name: str, args: Json, *, check_mode: bool, diff: bool) -> Json:
    """The result of a module that is called with these options."""
    module: Any = importlib.import_module(_PLUGINS + "modules." + name)
    real = module.AnsibleModule
    module.AnsibleModule = _StandIn(args, check_mode=check_mode, diff=diff)
    try:
        module.main()
    except _Left as left:
        return left.result
    finally:
        module.AnsibleModule = real
    raise AssertionError("%s came back without a result" % name)


def is_here(connection: Any, environment: Sequence[Any], interpreter: str) -> bool:
    """Whether a module of this task would be run by this Python, as this user, with this environment."""
    is_local = str(getattr(connection, "transport", "")).rpartition(".")[2] == "local"
    return is_local and not connection.become and not any(environment or ()) and interpreter == sys.executable
