# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Quotas of the site's policy in the decisions of the head, and the file that holds it."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path

import pytest
from samples import agent, carried_out, context, request
from store_sessions import running

from ansible_collections.cluster.compute.plugins.module_utils._head.policy_file import (
    read_document,
    read_policy,
    write_document,
)
from ansible_collections.cluster.compute.plugins.module_utils._head.presence import policy_path
from ansible_collections.cluster.compute.plugins.module_utils._head.quotas import by_owner, uses
from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._shared.constants import POLICY_FILE, STATE_DIR
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError, StateError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.policy import Policy, parse_policy
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.policy_rules import Use
from ansible_collections.cluster.compute.plugins.module_utils._steps.step import Head
from ansible_collections.cluster.compute.plugins.module_utils._steps.store import provide

FORK = multiprocessing.get_context("fork")
A = agent("a", cpus=8)
TWO = parse_policy({"default": {"cpus": 2, "priority": 100}})


def test_a_session_over_its_quota_waits_and_blocks_no_other(store: Store) -> None:
    running(store, request(cpus=2), A)
    over = launch(store, request(name="more", priority=100), context(A, site=TWO, policy=Policy("strict")))
    assert (over.outcome, over.reason) == (
        "pending",
        "alice has 2 of the 2 CPUs that the policy of this site permits, and it needs 1",
    )
    bob = launch(store, request(name="other", owner="bob"), context(A, site=TWO, policy=Policy("strict"), now=9e9))
    assert bob.outcome == "placed"


def test_a_session_that_waits_for_its_turn_counts_before_those_behind_it(store: Store) -> None:
    """The first could start, and another run launches it: the second must not take its part of the quota."""
    first = launch(store, request(name="first", cpus=2), context(agent("a", cpus=1), site=TWO))
    assert first.outcome == "pending"
    second = launch(store, request(name="second", cpus=1), context(A, site=TWO, now=1001.0))
    assert (second.outcome, second.reason[:23]) == ("pending", "alice has 2 of the 2 CP")


def test_the_only_permitted_resource_group_is_chosen_and_stays(store: Store) -> None:
    gpu = parse_policy({"default": {"resource_groups": ["gpu"]}})
    agents = (agent("a"), agent("b", group="gpu"))
    placed = launch(store, request(), context(*agents, site=gpu))
    assert (placed.outcome, placed.plan.agents, placed.session.group) == ("placed", ["b"], "gpu")
    assert launch(store, request(), context(*agents, site=gpu)).outcome == "held"


def test_a_resource_group_that_no_agent_has_is_refused_by_the_head(store: Store) -> None:
    with pytest.raises(
        InputError, match="session_resource_group: 'default': must be a resource group of an agent of this play, "
    ):
        launch(store, request(), context(agent("a", group="gpu"), agent("b", group="cpu")))


def test_a_rule_refuses_a_new_session_and_ends_one_that_was_queued_before(store: Store) -> None:
    low = parse_policy({"default": {"priority": 5}})
    with pytest.raises(InputError, match="must be at most 5"):
        launch(store, request(), context(A, site=low))
    assert store.states() == {}
    launch(store, request(), context(agent("a", cpus=0.5)))
    assert launch(store, request(), context(A, site=low)).outcome == "failed"


def test_the_lifetime_of_a_running_session_is_not_raised_beyond_the_policy(store: Store) -> None:
    site = parse_policy({"default": {"lifetime": 60}})
    running(store, request(lifetime=60), A)
    with pytest.raises(InputError, match="must be from 1 to 60 seconds"):
        launch(store, request(lifetime=61), context(A, site=site))


def test_a_session_that_a_new_quota_could_never_hold_leaves_the_queue_when_its_turn_comes(store: Store) -> None:
    holds = request(name="holds", cpus=6)
    plan = running(store, holds, A)
    asked = request(cpus=4)
    assert launch(store, asked, context(*carried_out([A], plan))).outcome == "pending"
    decision = launch(store, asked, context(*carried_out([A], plan), site=TWO))
    assert (decision.outcome, decision.reason.partition(":")[0]) == ("pending", "a")
    store.change(store.need(plan.session.id), "TERMINATING", 1010.0, "ended")
    store.change(store.need(plan.session.id), "TERMINATED", 1010.0, "ended")
    decision = launch(store, asked, context(A, site=TWO))
    rule = "session_cpus: '4': makes 4 CPUs in all, and the policy of this site permits alice 2 at a time."
    assert (decision.outcome, decision.session.state, decision.reason) == ("failed", "ERROR", rule)


@pytest.mark.parametrize("cpus", [4, 8])
def test_a_session_that_a_new_quota_could_never_hold_keeps_nothing_from_other_owners(store: Store, cpus: int) -> None:
    """Neither the room that it would get, nor, after the age bound, the turns behind it."""
    plan = running(store, request(name="holds", owner="carol", cpus=5), A)
    here = carried_out([A], plan)
    assert launch(store, request(name="large", cpus=cpus, priority=100), context(*here)).outcome == "pending"
    alice = parse_policy({"owners": {"alice": {"cpus": 2}}})
    where = [A] if cpus == 4 else here
    bob = launch(store, request(name="other", owner="bob", cpus=3), context(*where, site=alice, now=1e6))
    assert (bob.outcome, bob.reason) == ("placed", "")


@pytest.mark.parametrize("fault", ["no JSON", "link", "writable"])
def test_a_policy_that_cannot_be_read_is_written_again(tmp_path: Path, fault: str) -> None:
    path = tmp_path / "state" / "policy.json"
    head = Head(str(path.parent))
    provide(head, policy={"default": {"gpus": 1}})
    if fault == "link":
        path.rename(tmp_path / "other")
        path.symlink_to(tmp_path / "other")
    elif fault == "writable":
        path.chmod(0o666)
    else:
        path.write_text("{")
    assert provide(head, policy={"default": {"gpus": 2}})["changed"]
    assert read_policy(head.directory).default.gpus == 2
    assert not path.is_symlink()


def test_a_policy_of_many_owners_is_read_whole(tmp_path: Path) -> None:
    head = Head(str(tmp_path / "state"))
    provide(head, policy={"owners": {f"owner-{number}": {"gpus": 1, "cpus": 64} for number in range(20000)}})
    assert len(read_policy(head.directory).owners) == 20000


def test_a_session_that_runs_outside_of_the_permitted_group_is_still_repaired(store: Store) -> None:
    plan = running(store, request(cluster_size=2), A)
    there = carried_out([A], plan, states={"sub1": "exited"})
    gpu = parse_policy({"default": {"resource_groups": ["gpu"]}})
    decision = launch(store, request(cluster_size=2), context(*there, site=gpu))
    assert (decision.outcome, decision.missing) == ("repair", ("sub1",))


def test_a_session_that_waits_outside_of_the_permitted_group_leaves_the_queue_when_its_turn_comes(store: Store) -> None:
    there = carried_out([A], running(store, request(name="held"), A))
    assert launch(store, request(cpus=8), context(*there)).outcome == "pending"
    gpu = parse_policy({"default": {"resource_groups": ["gpu"]}})
    decision = launch(store, request(cpus=8), context(agent("b", cpus=8), site=gpu))
    rule = "session_resource_group: 'default': must be one of: gpu (policy of this site)."
    assert (decision.outcome, decision.reason) == ("failed", rule)


def _launch(folder: str, owner: str, number: int) -> None:
    store = Store(folder)
    with store.transaction():
        launch(store, request(name="job-%d" % number, owner=owner), context(A, now=1000.0 + number, site=TWO))
        if max(use.cpus for use in by_owner(uses(store.holding(), ())).values()) > 2000:
            os._exit(7)
    store.close()


def test_ten_at_once_of_two_owners_stay_within_both_quotas(tmp_path: Path) -> None:
    folder = str(tmp_path / "state")
    processes = [
        FORK.Process(target=_launch, args=(folder, "bob" if number % 2 else "alice", number)) for number in range(10)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 10
    store = Store(folder)
    use = by_owner(uses(store.holding(), ()))
    waiting = [row.reason for row in store.live({"PENDING"})]
    store.close()
    assert {owner: one.cpus for owner, one in use.items()} == {"alice": 2000, "bob": 2000}
    assert len([reason for reason in waiting if "of the 2 CPUs that the policy" in reason]) == 6


def test_use_is_that_of_plans(store: Store) -> None:
    running(store, request(cluster_size=2, memory="1g"), A)
    assert by_owner(uses(store.holding(), ())) == {"alice": Use(1, 2, 2000, 2 << 30, 0.0)}


def test_the_policy_is_roots_file(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    assert policy_path(STATE_DIR) == POLICY_FILE
    assert read_document(str(folder)) == {}
    write_document(str(folder), {"default": {"gpus": 1}})
    assert read_policy(str(folder)).default.gpus == 1
    assert (folder / "policy.json").stat().st_mode & 0o777 == 0o644
    assert [path.name for path in folder.iterdir()] == ["policy.json"]


@pytest.mark.parametrize("fault", ["writable", "link", "pipe", "no JSON", "of another user"])
def test_a_policy_that_another_user_could_have_written_stops_every_decision(
    tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    path, other = folder / "policy.json", tmp_path / "other"
    other.write_text(json.dumps({}))
    if fault == "link":
        path.symlink_to(other)
    elif fault == "pipe":
        os.mkfifo(path)
    else:
        path.write_text("{" if fault == "no JSON" else "{}")
        path.chmod(0o664 if fault == "writable" else 0o644)
    if fault == "of another user":
        # Only root could give it away.
        own = os.fstat
        monkeypatch.setattr(
            os, "fstat", lambda handle: os.stat_result([*own(handle)[:4], os.geteuid() + 1, *own(handle)[5:]])
        )
    with pytest.raises(StateError, match=r"write it again with provision_agents\.yml and agent_policy"):
        read_policy(str(folder))
