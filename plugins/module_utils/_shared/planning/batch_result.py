# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wait for a batch command: what the agents' answers mean, and when the wait is given up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Iterable, Mapping, Tuple

from ..codec import Document
from ..documents.container_view import BatchStatus
from ..errors import Failure, StateError

SUCCESS = "SUCCESS"
FAILURE = "FAILURE"
RESTARTED = "main1 was restarted, and the command has ended with it"

# Consecutive rounds with a silent agent that end the wait, and the pause after each of them, in seconds.
MAXIMUM_SILENT_ROUNDS = 30
SILENT_PAUSE = 10.0

# How long the agent of main1 watches the command in a round, in seconds: a short command is seen to end at once, and a
# long one costs few rounds.
FIRST_ROUND = 2.0
LONGEST_ROUND = 10.0
_GROWTH = 1.5


@dataclass(frozen=True)
class BatchResult(Document):
    """The result of a batch session: SUCCESS, FAILURE, or empty while the command runs."""

    result: str = ""
    reason: str = ""


def batch_result(statuses: Iterable[BatchStatus], on_failure: str) -> BatchResult:
    """Return what the statuses of a session's agents mean together.

    The exit code of the command decides. Without one, a container
    that does not run makes the session a failure if ``on_failure`` is ``terminate``, and always if it is ``main1``:
    the command runs there.
    """
    answers = list(statuses)
    ended = next((status for status in answers if status.has_ended), None)
    if ended:
        return BatchResult(FAILURE if ended.exit_code else SUCCESS, ended.end)
    dead = [container for status in answers for container in status.dead]
    if dead and (on_failure == "terminate" or any(container.hostname == "main1" for container in dead)):
        return BatchResult(FAILURE, "; ".join(container.end for container in dead))
    if not all(status.begun for status in answers):
        return BatchResult(FAILURE, RESTARTED)
    return BatchResult()


@dataclass(frozen=True)
class BatchWait:
    """The progress of the wait for a command. A wait begins with ``BatchWait()``.

    ``silent`` are the agents that did not answer in the last round, ``silent_rounds`` the consecutive rounds with such
    an agent, ``error`` the message of the first of them, and ``round_seconds`` the length of the next round.
    """

    result: BatchResult = field(default_factory=BatchResult)
    silent: Tuple[str, ...] = ()
    silent_rounds: int = 0
    error: str = ""
    round_seconds: float = FIRST_ROUND

    def after_round(self, statuses: Mapping[str, BatchStatus | Failure], on_failure: str) -> BatchWait:
        """The wait after a round. ``statuses`` has the answer of each agent of the session, in rank order."""
        failures = {agent: status.message for agent, status in statuses.items() if isinstance(status, Failure)}
        known = [status for status in statuses.values() if not isinstance(status, Failure)]
        return BatchWait(
            result=batch_result(known, on_failure),
            silent=tuple(failures),
            silent_rounds=self.silent_rounds + 1 if failures else 0,
            error=next(iter(failures.values()), ""),
            round_seconds=min(self.round_seconds * _GROWTH, LONGEST_ROUND),
        )

    @property
    def warning(self) -> str:
        """The line for the user when agents begin to be silent; empty in every other round."""
        if self.silent_rounds != 1 or self.result.result:
            return ""
        return f"The wait goes on without an answer of {', '.join(self.silent)}: {self.error}"

    def check_patience(self, session: str) -> None:
        """Raise ``StateError`` if the session has no result and an agent has been silent for too many rounds."""
        if self.result.result or self.silent_rounds < MAXIMUM_SILENT_ROUNDS:
            return
        message = (
            "Session %s still runs, but %s did not answer in %d rounds: %s Run schedule.yml when every agent answers, "
            "or end the session with terminate.yml."
        )
        names = ", ".join(self.silent)
        raise StateError(message % (session, names, self.silent_rounds, self.error), self.silent[0])
