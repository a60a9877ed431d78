# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A week of a queue in which sessions wait for each other and for times, decided by the head, with only time and agents simulated.

A pass follows each request and each end, and runs every half hour.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import example, given, settings
from hypothesis import strategies as st
from samples import GIB, agent, context, request
from store_sessions import memory_store

from ansible_collections.cluster.compute.plugins.module_utils._head.queue_pass import decide
from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.session_record import SessionRecord
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._shared import states
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError

HOUR, CPUS = 3600.0, 4
WEEK = 7 * 24
AGENT = agent("a", cpus=CPUS, memory=64 * GIB)


@dataclass(frozen=True)
class Job:
    """``at``, ``hours``, ``not_before`` and ``patience`` are in hours; ``after`` counts back from this job."""

    at: int
    hours: int
    cpus: int
    succeeds: bool
    after: tuple[int, ...]
    not_before: int
    patience: int
    priority: int


JOBS = st.lists(
    st.builds(
        Job,
        at=st.integers(0, WEEK),
        hours=st.integers(1, 12),
        cpus=st.integers(1, CPUS),
        succeeds=st.sampled_from([True, True, True, False]),
        after=st.lists(st.integers(1, 4), max_size=2, unique=True).map(tuple),
        not_before=st.sampled_from([0, 0, 3, 24]),
        patience=st.sampled_from([0, 0, 6, 48]),
        priority=st.sampled_from([10, 10, 50]),
    ),
    min_size=6,
    max_size=24,
)


@dataclass
class Queue:
    store: Store
    jobs: dict[str, Job] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    ends: dict[str, float] = field(default_factory=dict)

    def newest(self, name: str) -> SessionRecord:
        return self.store.select(name, "alice", ended=True)[-1]

    def has_succeeded(self, name: str) -> bool:
        return name not in self.refused and self.newest(name).result == "SUCCESS"

    def cannot_succeed(self, name: str) -> bool:
        """Whether a job was refused, ended without success, or waits for one that cannot succeed."""
        if name in self.refused:
            return True
        row = self.newest(name)
        if row.state in states.ENDED:
            return row.result != "SUCCESS"
        return any(self.cannot_succeed(other) for other in self.others(name))

    def others(self, name: str) -> list[str]:
        """The names that a job waits for."""
        number = int(name.rpartition("-")[2])
        return ["job-%d" % (number - back) for back in self.jobs[name].after if number >= back]

    def request(self, name: str, now: float) -> None:
        job = self.jobs[name]
        asked = request(
            name=name,
            command="work",
            cpus=job.cpus,
            priority=job.priority,
            after=self.others(name),
            not_before=job.not_before * 3600,
            pending_timeout=job.patience * 3600,
        )
        try:
            with self.store.transaction():
                self.take(launch(self.store, asked, context(AGENT, now=now)).session.id, now)
        except InputError:
            self.refused.add(name)
            assert any(self.cannot_succeed(other) for other in self.others(name))

    def take(self, session: str, now: float) -> None:
        """A session that was placed runs: it is not early."""
        row = self.store.need(session)
        if row.state != states.PREPARING:
            return
        job = self.jobs[row.name]
        assert all(self.has_succeeded(other) for other in self.others(row.name))
        assert now >= row.created + job.not_before * HOUR
        row = self.store.change(row, states.RUNNING, now, "every container is verified")
        self.ends[row.name] = now + job.hours * HOUR
        assert sum(self.jobs[name].cpus for name in self.ends) <= CPUS

    def end(self, name: str, now: float) -> None:
        del self.ends[name]
        with self.store.transaction():
            row = self.newest(name)
            row = replace(row, result="SUCCESS" if self.jobs[name].succeeds else "FAILURE")
            row = self.store.change(row, states.TERMINATING, now, "its command ended")
            row = self.store.change(row, states.TERMINATED, now, "its command ended")

    def make_pass(self, now: float) -> None:
        tried: list[str] = []
        while True:
            with self.store.transaction():
                found = decide(self.store, "alice", tried, context(AGENT, now=now))
            for row in found.fitting:
                tried.append(row.id)
                assert row.request
                with self.store.transaction():
                    self.take(launch(self.store, row.request, context(AGENT, now=now, queued=row.id)).session.id, now)
            if found.is_last:
                return

    def check(self, now: float) -> None:
        """No session that may start waits while the agent is idle, and none waits in vain or too long."""
        for row in self.store.live({states.PENDING}):
            job = self.jobs[row.name]
            starts = row.created + job.not_before * HOUR
            assert not job.patience or now <= starts + job.patience * HOUR
            assert not [other for other in self.others(row.name) if other in self.refused]
            is_ready = now >= starts and all(self.has_succeeded(other) for other in self.others(row.name))
            assert not (is_ready and not self.ends), row.reason

    def check_end(self) -> None:
        """Every session ran, waited too long, or waited for one that did not succeed."""
        for name in set(self.jobs) - self.refused:
            row = self.newest(name)
            assert row.state in states.ENDED
            if row.state == states.ERROR:
                is_late = bool(self.jobs[name].patience) and "session_pending_timeout" in row.reason
                assert is_late or not all(self.has_succeeded(other) for other in self.others(name))


def simulate(queue: Queue, jobs: list[Job]) -> None:
    jobs = sorted(jobs, key=lambda job: job.at)
    queue.jobs = {"job-%d" % number: job for number, job in enumerate(jobs)}
    arrivals = {name: job.at * HOUR for name, job in queue.jobs.items()}
    now = 0.0
    while arrivals or queue.ends or queue.store.live({states.PENDING}):
        assert now < 5 * WEEK * HOUR, "a session starves"
        for name in [name for name, end in queue.ends.items() if end <= now]:
            queue.end(name, now)
        for name in [name for name, at in arrivals.items() if at <= now]:
            del arrivals[name]
            queue.request(name, now)
        queue.make_pass(now)
        queue.check(now)
        # Nothing changes before the next half hour in which something is due.
        due = [*arrivals.values(), *queue.ends.values()]
        waits = bool(queue.store.live({states.PENDING}))
        now = min(due) if due and not waits else now + HOUR / 2
    queue.check_end()


# A failure, a job that waits for it, and one that is asked for in the same moment and waits for that job.
REFUSED = [Job(0, 1, 1, False, (), 0, 0, 10), Job(0, 1, 1, True, (1,), 0, 0, 10), Job(1, 1, 1, True, (1,), 0, 0, 10)]


@settings(max_examples=30, deadline=None)
@example(REFUSED)
@given(JOBS)
def test_a_week_of_a_queue_starts_no_session_early_and_starves_none(jobs: list[Job]) -> None:
    with memory_store() as store:
        simulate(Queue(store), jobs)
