# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run the command of a batch session, and wait for its result."""

from __future__ import annotations

import time

from ...module_utils._shared.documents.container_view import BatchStatus
from ...module_utils._shared.documents.plan import Plan
from ...module_utils._shared.documents.step_documents import Logs
from ...module_utils._shared.planning.batch_result import SILENT_PAUSE, BatchResult, BatchWait
from ...module_utils._shared.states import ENDED
from .._client.log_follower import GrowingLog
from .._hosts.call import Call
from .._hosts.conductor import Play
from .._hosts.steps import BATCH_START, BATCH_WAIT, LOGS_READ
from .record import record_result


def run_command(play: Play, plan: Plan, *, waits: bool, again: bool) -> BatchResult:
    """Begin the command, also ``again`` after its end. If the user ``waits``, record the result; otherwise the result is empty."""
    main = plan.main.agent
    with play.phase("command"):
        begun = play.on(main, BATCH_START(plan=plan.part(main), again=again))
        if not waits:
            return BatchResult()
        result = _Rounds(play, plan, GrowingLog(begun.since)).wait_for_result()
    recorded = record_result(play, plan.session.id, result.result, result.reason)
    # PID 1 has ended the session, and another command has recorded its result and removed main1 before this one looked.
    if recorded.state in ENDED and recorded.result:
        result = BatchResult(recorded.result, recorded.reason)
    play.show([f"Session {plan.session.name}: {result.result}, {result.reason}"])
    return result


class _Rounds:
    """Rounds over all agents of a session, each of which asks every agent once."""

    def __init__(self, play: Play, plan: Plan, log: GrowingLog) -> None:
        self._wait = BatchWait()
        self._play = play
        self._plan = plan
        self._log = log

    def wait_for_result(self) -> BatchResult:
        """The result. Raises StateError if an agent is silent for too many rounds.

        Rounds without a silent agent need no pause, because the agent of main1 watches the command meanwhile.
        """
        while True:
            statuses = self._play.answers(self._plan.agents, self._call)
            self._wait = self._wait.after_round(statuses, self._plan.session.on_failure)
            self._show_news()
            if self._wait.warning:
                self._play.say(self._wait.warning)
            self._wait.check_patience(self._plan.session.name)
            if self._wait.result.result:
                return self._wait.result
            time.sleep(SILENT_PAUSE if self._wait.silent else 0.0)

    def _show_news(self) -> None:
        """Show the output of the command since the last round. The result does not depend on it."""
        main = self._plan.main
        if main.agent in self._wait.silent:
            return
        query = self._log.query(self._plan.session.id, main.hostname)
        answer = self._play.answers([main.agent], LOGS_READ(wanted=query))[main.agent]
        for log in answer.logs if isinstance(answer, Logs) else ():
            for line in self._log.unseen(main.hostname, log.text):
                self._play.say(line)

    def _call(self, agent: str) -> Call[BatchStatus]:
        """An agent that fails may answer again in the next round, over a new connection."""
        seconds = self._wait.round_seconds if agent == self._plan.main.agent else 0.0
        return BATCH_WAIT(plan=self._plan.part(agent), seconds=seconds)
