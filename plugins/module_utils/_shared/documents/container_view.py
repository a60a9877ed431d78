# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The containers of a session in a list, and how their commands, their apps and they themselves have ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable, List, Mapping, Optional, Tuple

from ..codec import Document
from ..exits import LIMITS, WITH_COMMAND, container_end
from .report import EXIT_CODE, AppState, BatchState, Measured
from .schema import AGENT, SHORT_NAME, a_flag, a_line, a_text, or_none, ruled, rules_of, whole

_OF_RUNNING = frozenset(("batch", "apps", "measured", "fault"))
_OF_STOPPED = frozenset(("exit_code", "oom_killed"))


@dataclass(frozen=True)
class ContainerView(Document):
    """A container: where it runs, and its state, ``missing`` if it was removed and ``unknown`` if its agent cannot be reached.

    A stopped container has ``exit_code`` and ``oom_killed``, a running one ``apps`` and ``measured``. ``batch``
    is the state of its command. ``fault`` is how a container that runs differs from its plan.
    """

    hostname: str = ruled(SHORT_NAME)
    agent: str = ruled(AGENT)
    state: str = ruled(a_line)
    address: str = ruled(a_line, "")
    rank: int = ruled(whole(9999), 0)
    id: str = ruled(a_line, "")
    exit_code: Optional[int] = ruled(EXIT_CODE, None)
    oom_killed: Optional[bool] = ruled(or_none(a_flag), None)
    batch: Optional[BatchState] = ruled(or_none(rules_of(BatchState)), None)
    apps: Tuple[AppState, ...] = ruled([rules_of(AppState)], ())
    measured: Optional[Measured] = ruled(or_none(rules_of(Measured)), None)
    fault: str = ruled(a_text, "")

    @property
    def written(self) -> Mapping[str, Any]:
        """The document has only what its engine has reported."""
        absent = _OF_STOPPED if self.oom_killed is None else ()
        return {
            name: value
            for name, value in vars(self).items()
            if name not in absent and (value or name not in _OF_RUNNING)
        }

    @property
    def end(self) -> str:
        """Return how a container that does not run ended, or what it waits for, without a full stop."""
        where = f"{self.hostname} on {self.agent}"
        return container_end(where, self.state, self.exit_code, bool(self.oom_killed), self.fault)


@dataclass(frozen=True)
class BatchStatus(BatchState):
    """The answer of an agent about the command of a session. ``dead`` are the containers that do not run there."""

    dead: Tuple[ContainerView, ...] = ruled([rules_of(ContainerView)], ())


def failed_apps(containers: Iterable[ContainerView]) -> List[AppState]:
    """The apps of these containers that do not run."""
    return [app for container in containers for app in container.apps if app.has_failed]


def failed_roles(containers: Iterable[ContainerView]) -> List[ContainerView]:
    """The containers whose role's command has failed. Rank 0 is main1, which runs the command of the session."""
    return [one for one in containers if one.rank and one.batch and one.batch.exit_code]


def limit_reached(containers: Iterable[ContainerView]) -> str:
    """Why the session of these containers has ended by itself, or an empty text.

    main1 decides: a sub that ended alone had lost main1.
    """
    found = list(containers)
    main = next((container for container in found if container.hostname == "main1"), None)
    if main is None or main.state != "exited":
        return ""
    # Perhaps out of memory: the engine says so for any process that the kernel has ended.
    if main.exit_code in WITH_COMMAND:
        return _end_with_command(main.batch, found)
    return "" if main.oom_killed else LIMITS.get(main.exit_code or 0, "")


def _end_with_command(command: Optional[BatchState], containers: Iterable[ContainerView]) -> str:
    """Return how the command ended, after the containers that have died before."""
    dead = [one.end for one in containers if one.state == "exited" and one.exit_code not in WITH_COMMAND]
    return "; ".join([*dead, command.end if command and command.has_ended else "ended with its command"])


def how_containers_ended(containers: Iterable[ContainerView]) -> List[str]:
    """Return how containers, apps and commands of roles have ended, for each that has."""
    found = list(containers)
    ends = [container.end for container in found if container.state != "running"]
    ends += [app.end for app in failed_apps(found)]
    return ends + [f"{one.hostname}: {one.batch.end}" for one in failed_roles(found) if one.batch]
