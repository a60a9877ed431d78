# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Base of the actions that conduct: they run once for all hosts of the play, and show what they do meanwhile."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Callable, ClassVar, Mapping

from ...module_utils._shared.codec import Json, ModuleResult
from ...module_utils._shared.errors import ComputeError
from .action import ComputeAction
from .conductor import Play


class ConductorAction(ComputeAction):
    """An action for all hosts of the play. Subclasses implement ``conduct``."""

    BYPASS_HOST_LOOP = True
    _requires_connection = False

    def act(self) -> ModuleResult:
        options = self.OPTIONS.own_values(self.given) if self.OPTIONS else self.checked()

        def conduct(play: Play) -> ModuleResult:
            play.state_dir = str(options.get("state_dir") or play.state_dir)
            return self.conduct(play, options)

        return conducted(self, conduct)

    @abstractmethod
    def conduct(self, play: Play, options: Mapping[str, Any]) -> ModuleResult:
        """Do the work, and return the result. ``options`` are those that replace no variable. Raises ComputeError."""


class ListAction(ConductorAction):
    """An action that shows what the head knows, as ``LIST`` makes it from the options that the task sets."""

    LIST: ClassVar[Callable[[Play, Json], ModuleResult]]

    def conduct(self, play: Play, options: Mapping[str, Any]) -> ModuleResult:
        return type(self).LIST(play, {name: options[name] for name in self._task.args if name in options})


def conducted(action: ComputeAction, conduct: Callable[[Play], ModuleResult]) -> ModuleResult:
    """The result of work for all hosts of the play, with its lines and warnings."""
    action.is_noted_by_host = True
    play = Play(action)
    try:
        result = conduct(play)
    except ComputeError as error:
        result = action.failure(error)
    finally:
        play.close()
    # After an interrupt, the callback reads it.
    play.forget_phase()
    return {**result, "lines": [*play.lines, *result.get("lines", ())], "warnings": play.warnings}
