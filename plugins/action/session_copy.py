# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``session_copy``: it runs on the controller, whatever host the task is for."""

from __future__ import annotations

import time
from typing import Sequence

from ..module_utils._shared.codec import Json
from ..module_utils._shared.errors import InputError
from ..module_utils._shared.planning.variable import COPY
from ..plugin_utils._client import answers
from ..plugin_utils._client.copying import NOTHING, Copy
from ..plugin_utils._client.shell import Shell
from ..plugin_utils._hosts.files import location
from ..plugin_utils._settings.access import Scope
from ..plugin_utils._settings.options import OPTIONS
from ..plugin_utils._settings.session_files import path_of
from ..plugin_utils._settings.settings import Settings
from ..plugin_utils._variables.container_access import AccessAction


class ActionModule(AccessAction):
    """A copy that fails in one container goes on in the others."""

    OPTIONS = OPTIONS["session_copy"]
    PLAYBOOK = COPY

    def scope(self, settings: Settings) -> Scope:
        return settings.of_copy

    def work(self, shell: Shell, hosts: Sequence[str], settings: Settings) -> Json:
        given = settings.copy_source
        if not given.strip("/"):
            raise InputError("session_copy_source", given, "must be given, as in -e session_copy_source=data")
        is_to = settings.copy_direction == "to"
        source, target = given.rstrip("/"), settings.copy_target
        source = self._here("session_copy_source", source) if is_to else source
        target = target if is_to else self._here("session_copy_target", target)
        if self._task.check_mode:
            line = f"{source} would be copied {settings.copy_direction} {answers.counted(hosts)}."
            return {"changed": True, "containers": [], "lines": [line], "message": ""}
        copy = Copy(shell, source, target, time.monotonic() + settings.copy_timeout)
        done = copy.to_all(hosts) if is_to else copy.from_all(hosts)
        return {
            "changed": any(not answer.code and answer.content != NOTHING for answer in done),
            "containers": [answer.to_json() for answer in done],
            "lines": answers.report_answers([answer for answer in done if not answer.problem], "prefixed"),
            "message": answers.failure(done, "The copy"),
        }

    def _here(self, variable: str, path: str) -> str:
        """A path of the controller, relative to the session file that gives it, else to the working directory of the command."""
        return location(path if variable in self.given else path_of(variable, path, self._loader))
