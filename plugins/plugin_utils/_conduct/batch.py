# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run the command of a batch session, and wait for its result."""

from __future__ import annotations

import time

from ansible.errors import AnsibleError

from ...module_utils._core import arrival
from ...module_utils._core.documents import Json
from ...module_utils._core.errors import ComputeError
from ...module_utils._core.model import Plan
from ...module_utils._planning.batch_result import SILENT_PAUSE, BatchResult, BatchWait
from ...module_utils._planning.growing_log import GrowingLog
from .._other_hosts import OtherHosts
from .play import Play
from .record import record_result


def run_command(play: Play, plan: Plan, *, waits: bool, again: bool) -> BatchResult:
    """Begin the command, also ``again`` after its end. If the user ``waits``, record the result; otherwise the result is empty."""
    main = plan.main.agent
    with play.phase("command"):
        begun = play.on(main, "batch.start", {"plan": plan.part(main), "again": again})
        if not waits:
            return BatchResult()
        result = _Rounds(play, plan, GrowingLog(str(begun.get("since") or ""))).wait_for_result()
    record_result(play, {"id": plan.session.id}, result.result, result.reason)
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
            statuses = dict(zip(self._plan.agents, self._play.each(self._plan.agents, self._ask)))
            self._wait = self._wait.after_round(statuses, self._plan.session.on_failure)
            self._play.each([self._plan.main.agent], self._show_news)
            if self._wait.warning:
                self._play.say(self._wait.warning)
            self._wait.check_patience(self._plan.session.name)
            if self._wait.result.result:
                return self._wait.result
            time.sleep(SILENT_PAUSE if self._wait.silent else 0.0)

    def _show_news(self, hosts: OtherHosts, main: str) -> None:
        """What the command has written since the last round. The result does not depend on it."""
        if main in self._wait.silent:
            return
        hostname = self._plan.main.hostname
        try:
            found = arrival.logs(hosts.step(main, "logs.read", self._log.query(self._plan.session.id, hostname)), main)
        except (AnsibleError, ComputeError):
            return
        for log in found:
            for line in self._log.news(hostname, str(log["text"])):
                self._play.say(line)

    def _ask(self, hosts: OtherHosts, agent: str) -> Json:
        """The agent's answer, or a failure: it may answer again in the next round, over a new connection."""
        seconds = self._wait.round_seconds if agent == self._plan.main.agent else 0.0
        try:
            options = {"plan": self._plan.part(agent), "seconds": seconds}
            return arrival.status(hosts.step(agent, "batch.wait", options), agent)
        except ComputeError as error:
            return {"failed": True, "msg": error.message}
        except AnsibleError as error:
            reason = " ".join(str(error).split()).rstrip(".")
            return {"failed": True, "msg": f"{agent} cannot be reached: {reason}."}
