# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Base of the actions that work in the containers of a session, from the controller that launched it."""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import ClassVar, Sequence

from ...module_utils._shared.codec import Json, ModuleResult
from .._client import answers
from .._client.shell import Shell
from .._hosts.action import ComputeAction
from .._hosts.transfer_watch import TERMINAL
from .._settings.access import Scope
from .._settings.settings import Settings
from .request_variables import checked_settings


class AccessAction(ComputeAction):
    """An action that runs on the controller, whatever host the task is for. A failure in one container does not end the others."""

    _requires_connection = False
    # The playbook whose variables are the options.
    PLAYBOOK: ClassVar[str]

    def act(self) -> ModuleResult:
        settings = checked_settings(self, self.PLAYBOOK)
        scope = self.scope(settings)
        shell = Shell(settings.artifacts, str(self.value("session_name")))
        hosts = answers.chosen(shell.document, scope.containers, f"session_{self.PLAYBOOK}_containers")
        begun = time.monotonic()
        result = self.work(shell, hosts, settings)
        if not self._task.check_mode:
            result["duration"] = round(time.monotonic() - begun, 3)
        return {**result, **self._failed(result)} if result["message"] and scope.fails else result

    def _failed(self, result: Json) -> Json:
        """The failure. With the callback of the collection, which shows its message, the lines appear before it."""
        if TERMINAL.phase:
            for line in result["lines"]:
                self._display.display(TERMINAL.clear_result + line)
        return {"failed": True, "msg": result["message"]}

    @abstractmethod
    def scope(self, settings: Settings) -> Scope:
        """The containers, and what follows a failure."""

    @abstractmethod
    def work(self, shell: Shell, hosts: Sequence[str], settings: Settings) -> Json:
        """Do the work in these containers. The result has C(message), which is empty if it succeeded, and C(lines)."""
