# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sessions that wait for the success of others, for a time, or not for ever."""

from __future__ import annotations

from dataclasses import replace

import pytest
from samples import agent, carried_out, context, exactly, request, seen_with
from store_sessions import row_of, running, turns_of

from ansible_collections.cluster.compute.plugins.module_utils._head.maintenance import expired, give_up
from ansible_collections.cluster.compute.plugins.module_utils._head.queue_pass import decide
from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.session_record import SessionRecord
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._shared import states
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Plan
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import (
    AgentReport,
    ObservedContainer,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.policy import STRICT, Policy, QueueRules

A = agent("a")
PREP = request(name="prep", command="make data")


def ask(
    store: Store, name: str, now: float = 1100.0, agents: tuple[AgentReport, ...] = (A,), **variables: object
) -> SessionRecord:
    asked = request(name=name, command="train", **variables)
    return store.need(launch(store, asked, context(*agents, now=now)).session.id)


def end(store: Store, name: str, result: str, now: float = 1200.0, reason: str = "exit code 3") -> None:
    row = row_of(store, name)
    if row.state == states.PENDING:
        row = store.change(row, states.CANCELLED, now, reason)
        return
    row = replace(row, result=result)
    row = store.change(row, states.TERMINATING, now, reason)
    row = store.change(row, states.TERMINATED, now, reason)


def fitting(
    store: Store, now: float, agents: tuple[AgentReport, ...] = (A,), policy: Policy | None = None
) -> list[str]:
    found = decide(store, "alice", (), context(*agents, now=now, policy=policy or Policy()))
    return [row.name for row in found.fitting]


def with_exit(plan: Plan, code: int | None) -> tuple[AgentReport, ...]:
    """The agent with the session's container, whose command has this exit code."""
    [found] = carried_out([A], plan)
    state: Json = {"exit_code": code, "oom_killed": False, "reason": "", "begun": True}

    def changed(container: ObservedContainer) -> ObservedContainer:
        return seen_with(container, batch=state)

    return (replace(found, containers=tuple(changed(one) for one in found.containers)),)


def last(store: Store, name: str) -> SessionRecord:
    return store.select(name, "alice", ended=True)[-1]


def test_a_session_starts_after_the_success_of_another(store: Store) -> None:
    running(store, PREP, A)
    assert ask(store, "train", after=["prep"]).reason == "waits for the success of prep, which is RUNNING"
    assert fitting(store, 1150.0) == []
    end(store, "prep", "SUCCESS")
    assert fitting(store, 1200.0) == ["train"]
    assert ask(store, "train", now=1200.0, after=["prep"]).state == states.PREPARING


def test_a_command_that_has_ended_counts_before_its_session_ends(store: Store) -> None:
    plan = running(store, PREP, A)
    ask(store, "train", after=["prep"])
    assert fitting(store, 1150.0, with_exit(plan, None)) == []
    assert fitting(store, 1150.0, with_exit(plan, 0)) == ["train"]


def test_the_end_of_a_former_command_is_no_success_of_the_next(store: Store) -> None:
    plan = running(store, PREP, A)
    agents = with_exit(plan, 0)
    launch(store, replace(PREP, command="make more"), context(*agents, now=1100.0))
    assert "waits for the success of prep" in ask(store, "train", agents=agents, after=["prep"]).reason


@pytest.mark.parametrize(
    ("result", "reason"),
    [("FAILURE", "prep has failed: exit code 3"), ("", "prep ended without a result: exit code 3")],
)
def test_a_chain_ends_with_the_failure_of_its_first_session(store: Store, result: str, reason: str) -> None:
    running(store, PREP, A)
    ask(store, "train", after=["prep"])
    ask(store, "report", after=["train"])
    end(store, "prep", result)
    assert fitting(store, 1200.0) == []
    assert (last(store, "train").state, last(store, "train").reason) == (states.ERROR, f"session_after: {reason}")
    ended = f"session_after: train ended without a result: session_after: {reason}"
    assert (last(store, "report").state, last(store, "report").reason) == (states.ERROR, ended)


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda _store: None, "prep does not exist"),
        (lambda store: running(store, request(name="prep"), A), "prep is a session without session_command"),
        (lambda store: end(store, "prep", "FAILURE") if running(store, PREP, A) else None, "prep has failed"),
        (lambda store: running(store, replace(PREP, owner="bob"), A), "prep does not exist"),
    ],
)
def test_a_session_that_can_never_start_is_refused(store: Store, prepare: object, message: str) -> None:
    assert callable(prepare)
    prepare(store)
    wanted = f"session_after: 'prep': must be a session that succeeds: {message}"
    with pytest.raises(InputError) as refused, store.transaction():
        ask(store, "train", after=["prep"])
    assert refused.value.message.startswith(wanted)
    assert store.find("train", "alice") is None


def test_sessions_that_wait_for_each_other_are_refused(store: Store) -> None:
    launch(store, PREP, context(agent("a", cpus=0), now=1000.0))
    ask(store, "train", after=["prep"])
    ask(store, "report", after=["train"])
    message = "must not wait for this session: prep waits for report waits for train waits for prep"
    with pytest.raises(InputError, match=exactly(f"session_after: 'report': {message}.")), store.transaction():
        launch(store, replace(PREP, after=("report",)), context(A, now=1200.0))
    assert row_of(store, "prep").request == PREP


def test_a_lattice_of_sessions_is_looked_at_once(store: Store) -> None:
    """It has 2^25 ways to its first sessions."""
    nothing = (agent("a", cpus=0),)
    before: list[str] = []
    for layer in range(25):
        names = ["job-%d-%d" % (layer, number) for number in range(2)]
        for name in names:
            ask(store, name, agents=nothing, after=before)
        before = names
    assert ask(store, "last", agents=nothing, after=before).state == states.PENDING


def test_a_failed_command_that_a_pass_starts_again_is_no_failure_yet(store: Store) -> None:
    plan = running(store, request(name="prep", command="make data", cluster_size=2, on_failure="restart_all"), A)
    ask(store, "train", after=["prep"])
    [failed] = with_exit(plan, 1)
    without_sub = replace(failed, containers=failed.containers[:1])
    give_up(store, (without_sub,), 1150.0)
    assert last(store, "train").state == states.PENDING
    give_up(store, (failed,), 1150.0)
    reason = "session_after: prep has failed: the command ended with exit code 1"
    assert (last(store, "train").state, last(store, "train").reason) == (states.ERROR, reason)


def test_a_command_that_has_failed_after_its_last_restart_has_failed(store: Store) -> None:
    wanted = request(name="prep", command="make data", cluster_size=2, on_failure="restart_all", restarts=1)
    plan = running(store, wanted, A)
    ask(store, "train", after=["prep"])
    [failed] = with_exit(plan, 1)
    without_sub = replace(failed, containers=failed.containers[:1])
    assert launch(store, wanted, context(without_sub, now=1150.0)).restarts_all
    give_up(store, (without_sub,), 1160.0)
    assert last(store, "train").state == states.ERROR


def test_the_newest_session_of_a_name_counts(store: Store) -> None:
    running(store, PREP, A)
    end(store, "prep", "FAILURE")
    running(store, PREP, A, now=1300.0)
    ask(store, "train", now=1310.0, after=["prep"])
    end(store, "prep", "SUCCESS", now=1400.0)
    assert fitting(store, 1400.0) == ["train"]


def test_a_session_starts_at_its_time_and_holds_nothing_before(store: Store) -> None:
    row = ask(store, "night", now=1000.0, not_before=3600, cpus=4, priority=100)
    assert row.reason == "waits until 1970-01-01 01:16:40 UTC, as session_not_before says"
    ask(store, "large", now=1001.0, cpus=4, agents=(agent("a", cpus=0),))
    order = [store.need(one).name for one in turns_of(store, [A], QueueRules(), 1002.0)]
    assert order == ["large", "night"]
    assert fitting(store, 1002.0, policy=Policy(STRICT)) == ["large"]
    assert [store.need(one).name for one in turns_of(store, [A], QueueRules(), 4600.0)] == ["night", "large"]
    assert fitting(store, 4600.0) == ["night"]


def test_a_session_that_was_not_to_start_has_not_aged(store: Store) -> None:
    """It would hold back all others at once, if it had waited for the age bound."""
    busy = running(store, request(name="busy", cpus=2), A, now=10.0)
    ask(store, "night", now=20.0, not_before=7200, cpus=4)
    ask(store, "small", now=30.0, cpus=1, agents=(agent("a", cpus=0),))
    assert fitting(store, 7300.0, carried_out([A], busy)) == ["small"]


def test_a_session_leaves_the_queue_when_it_has_waited_too_long(store: Store) -> None:
    running(store, PREP, A)
    ask(store, "train", now=1100.0, after=["prep"], pending_timeout=600)
    ask(store, "night", now=1100.0, not_before=3600, pending_timeout=600)
    decide(store, "alice", (), context(A, now=1700.0))
    assert row_of(store, "train").state == states.PENDING
    decide(store, "alice", (), context(A, now=1701.0))
    reason = (
        "it waited longer than the 600 s of session_pending_timeout: waits for the success of prep, which is RUNNING"
    )
    assert (last(store, "train").state, last(store, "train").reason) == (states.ERROR, reason)
    assert row_of(store, "night").state == states.PENDING


def test_sessions_that_wait_in_vain_end_together(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    running(store, PREP, A)
    ask(store, "vain", after=["prep"])
    for number in range(20):
        ask(store, f"well-{number}", after=["prep"])
    for number in range(20):
        ask(store, f"ill-{number}", after=["vain"])
    end(store, "vain", "FAILURE")
    asked, newest = [], store.newest
    monkeypatch.setattr(store, "newest", lambda name, owner: (asked.append(name), newest(name, owner))[1])
    give_up(store, (A,), 1300.0)
    assert sorted(row.name for row in store.live({states.PENDING})) == sorted(f"well-{number}" for number in range(20))
    assert len(asked) == 40 + 20  # each in a first round, and those that are left in another


def test_a_session_that_has_left_the_queue_is_not_requested_again_by_its_pass(store: Store) -> None:
    row = ask(store, "train", now=1000.0, agents=(agent("a", cpus=0),), pending_timeout=60)
    asked = request(name="train", command="train", pending_timeout=60)
    decision = launch(store, asked, context(A, now=2000.0, queued=row.id))
    assert (decision.outcome, decision.session.id) == ("failed", row.id)
    assert store.find("train", "alice") is None
    assert launch(store, asked, context(A, now=2000.0)).outcome == "placed"


def test_a_session_that_others_wait_for_stays_in_the_history(store: Store) -> None:
    running(store, PREP, A)
    ask(store, "train", after=["prep"])
    end(store, "prep", "SUCCESS")
    assert expired(store, [A], 1e9, days=1) == []
    ask(store, "train", now=1300.0, after=["prep"])
    assert len(expired(store, [A], 1e9, days=1)) == 1


AHEAD = 1000.0 + 86400


def test_a_session_that_was_requested_while_the_clock_was_ahead_starts(store: Store) -> None:
    ask(store, "train", now=AHEAD, agents=(agent("a", cpus=0),))
    assert fitting(store, 1100.0) == ["train"]
    ask(store, "soon", now=1130.0, agents=(agent("a", cpus=0),))
    assert set(fitting(store, 1100.0)) == {"train", "soon"}
    ask(store, "night", now=AHEAD, not_before=600, agents=(agent("a", cpus=0),))
    assert set(fitting(store, 1200.0)) == {"train", "soon"}
    assert set(fitting(store, 1799.0)) == {"train", "soon"}
    assert set(fitting(store, 1800.0)) == {"train", "soon", "night"}


def test_a_session_starts_after_one_that_ended_while_the_clock_was_ahead(store: Store) -> None:
    running(store, PREP, A)
    ask(store, "train", now=1050.0, after=["prep"])
    end(store, "prep", "SUCCESS", now=AHEAD)
    assert fitting(store, 1100.0) == ["train"]


def test_an_end_while_the_clock_was_ahead_is_neither_kept_nor_counted_until_then(store: Store) -> None:
    running(store, PREP, A)
    end(store, "prep", "SUCCESS", now=AHEAD)
    decide(store, "alice", (), context(A, now=1100.0))
    assert [one.ended for one in store.holdings()] == [1100.0]
    assert (
        expired(store, (), 1100.0 + 2 * 86400.0, 1) == [one for (one,) in store.query("SELECT id FROM session")] != []
    )


def test_a_lifetime_that_began_while_the_clock_was_ahead_counts_from_its_correction(store: Store) -> None:
    running(store, request(name="train", lifetime=600), A, now=AHEAD)
    for now, began in ((1100.0, 1100.0), (1500.0, 1100.0)):
        decide(store, "alice", (), context(A, now=now))
        row = row_of(store, "train")
        assert row.plan is not None
        assert (row.plan.session.began, row.created, row.changed) == (began, began, began)
