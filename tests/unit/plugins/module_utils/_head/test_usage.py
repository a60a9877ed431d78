# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lists: who has how much, what others see, which states, and use over time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import lists
import pytest
from samples import GIB, agent, carried_out, context, request
from store_sessions import row_of, running

from ansible_collections.cluster.compute.plugins.module_utils._head.listing import list_agents, list_sessions
from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.session_record import SessionRecord
from ansible_collections.cluster.compute.plugins.module_utils._head.session_view import time_left, visible_request
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._head.usage import available, held_on, list_owners, sample
from ansible_collections.cluster.compute.plugins.module_utils._shared import states
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import RED, GpuHealth, Measured
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.usage import (
    Amounts,
    OwnerView,
    Sample,
    SampledUse,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.view import FolderView
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.policy import SitePolicy
from ansible_collections.cluster.compute.plugins.plugin_utils._output.lists import sessions_table
from ansible_collections.cluster.compute.plugins.plugin_utils._output.page import page_of, tiles
from ansible_collections.cluster.compute.plugins.plugin_utils._session.listing import sessions_page

A, B = agent("a", address="192.0.2.7", publish="0.0.0.0"), agent("b")


def test_owners_are_listed_with_what_their_sessions_hold(store: Store) -> None:
    plan = running(store, request(cluster_size=3), A, B)
    there = carried_out([A, B], plan)
    launch(store, request(name="next", owner="bob", memory="2g"), context(*there))
    launch(store, request(name="wide", owner="bob", cpus=64), context(*there))
    held = held_on(there, store.ends_on(there), store.held_plans())
    alice, bob = list_owners(store.live(), held)
    assert alice == OwnerView("alice", 1, 0, 3, Amounts(3000, 3 * GIB, 0))
    # A launch holds what it was placed on, before any engine shows it.
    assert (bob.sessions, bob.waiting, bob.containers) == (1, 1, 1)
    assert bob.used.memory == 2 * GIB
    asked = list_owners(store.live(), held, "carol")[-1]
    assert (asked.owner, asked.sessions, asked.used.millicpus) == ("carol", 0, 0)
    first = list_agents(held, there)[0]
    assert first.owners == {"alice": alice.used, "bob": bob.used}
    assert first.used.millicpus == 4000


def test_a_red_gpu_that_is_in_use_is_not_free_only_once(store: Store) -> None:
    """Of four GPUs, one is used and has become red since, another is red: two are free, of the agent and for an owner."""
    names = ["GPU-1", "GPU-2", "GPU-3", "GPU-4"]
    four = agent("a", gpus=names)
    plan = running(store, request(gpus=1), four)
    [used] = plan.main.resources.gpus
    red = [used.id, next(name for name in names if name != used.id)]
    [sick] = carried_out([replace(four, gpu_health=tuple(GpuHealth(name, RED) for name in red))], plan)
    [listed] = list_agents(held_on([sick], store.ends_on([sick]), store.held_plans()), [sick])
    assert (listed.capacity.gpus, listed.used.gpus, listed.free.gpus) == (4, 1, 2)
    assert available(SitePolicy(), {}, [listed], "bob").gpus == 2
    assert [tile["free"] for tile in tiles([listed], {}) if tile["name"] == "GPUs"] == ["2"]


def test_apps_folders_and_times_of_a_session(store: Store) -> None:
    mounts = [{"source": "/srv/data", "target": "/data", "mode": "ro"}]
    apps = [{"name": "lab", "port": 8888}, {"name": "board", "port": 6006, "public": True}]
    there = replace(A, paths={"/srv/data": True})
    plan = running(store, request(mounts=mounts, apps=apps, lifetime=3600), there)
    row = store.select("train", None, ended=False)
    [session] = list_sessions(row, carried_out([there], plan))
    assert (session.kind, session.started, session.measured) == ("compute", 1005.0, None)
    assert session.folders == (FolderView("/srv/data", "/data", "ro"),)
    assert [(app.name, app.agent) for app in session.apps] == [("lab", "a"), ("board", "a")]
    assert session.apps[1].address == "192.0.2.7"
    assert time_left(session, 2000.0) == 2600.0
    assert time_left(session, 9000.0) == 0.0
    assert time_left(replace(session, ends=None), 2000.0) is None


def test_what_containers_use_is_summed_for_sessions_and_agents(tmp_path: Path) -> None:
    document = lists.listed(tmp_path, lists.few_agents(), lists.FEW)
    train = next(session for session in document.sessions if session.name == "train")
    assert train.measured
    gpus = train.measured.gpus
    assert train.measured == Measured(6 * 666, 6 * (4 * GIB // 3), gpus)
    assert [gpu.percent for gpu in gpus] == [40] * len({gpu.id for gpu in gpus}) != []
    assert train.containers[0].measured
    assert train.containers[0].measured.millicpus == 666
    assert train.containers[0].measured.gpus == gpus[: len(gpus) // 6]
    [row] = [line for line in sessions_table(document.sessions, width=400) if line.split()[0] == "train"]
    assert row.endswith("; GPUs 40% in use")
    assert ", GPUs 40%</small>" in sessions_page(page_of(document))
    first, second, third = document.agents
    assert first.measured
    assert second.measured
    assert first.measured.millicpus == 6 * 666
    assert [gpu.percent for gpu in first.measured.gpus] == [40] * 8
    assert (second.measured.gpus, third.measured) == ((), None)


def test_others_see_neither_environment_nor_scripts_of_a_waiting_session(store: Store) -> None:
    secret = {"environment": {"TOKEN": "secret"}, "command": "echo secret", "bootstrap": "echo secret"}
    launch(store, request(cpus=99, **secret), context(A))
    [session] = list_sessions(store.select(None, None, ended=False), [A])
    assert "secret" in str(visible_request(session.request, "alice", "alice"))
    seen = visible_request(session.request, "alice", "bob")
    assert "secret" not in str(seen)
    assert seen
    assert seen["millicpus"] == 99000


def add(store: Store, name: str, created: float, *changes: str) -> SessionRecord:
    row = SessionRecord(f"id-{name}", name, "alice", "default", states.PENDING, created=created)
    row = store.add(row, created, "")
    for state in changes:
        row = store.change(row, state, created + 1, "")
    return row


def test_lists_are_of_chosen_states_and_of_the_newest_ended_sessions(store: Store) -> None:
    for number in range(5):
        add(store, f"done-{number}", 10.0 + number, states.CANCELLED)
    add(store, "failed", 5.0, states.ERROR)
    add(store, "waits", 1.0)
    names = [row.name for row in store.select(None, None, ended=True, limit=2)]
    assert names == ["waits", "done-3", "done-4"]
    assert [row.name for row in store.select(None, None, ended=False, only=states.SHOWN["running"])] == ["waits"]
    other = store.select(None, "alice", ended=False, only=states.SHOWN["other"], limit=6)
    assert [row.name for row in other] == ["failed", *(f"done-{number}" for number in range(5))]
    add(store, "ended", 6.0, states.SCHEDULED, states.PREPARING, states.RUNNING, states.TERMINATING, states.TERMINATED)
    assert [row.name for row in store.select(None, None, ended=False, only=states.SHOWN["finished"])] == ["ended"]
    assert "ended" not in [row.name for row in store.select(None, None, ended=False, only=states.SHOWN["other"])]


def test_every_state_is_in_one_of_the_lists() -> None:
    shown = [state for chosen in states.SHOWN.values() for state in chosen]
    assert sorted(shown) == sorted(states.LIVE | states.ENDED)


@pytest.mark.parametrize(
    ("moments", "kept"),
    [
        ((100.0, 110.0, 125.0), [100.0, 125.0]),
        ((100.0, 50.0), [50.0, 100.0]),
        ((100.0, 100.0 + 32 * 86400), [2764900.0]),
    ],
)
def test_samples_are_kept_for_a_month_and_not_closer_than_seconds(
    store: Store, moments: tuple[float, ...], kept: list[float]
) -> None:
    for moment in moments:
        store.add_sample(sample([], [], moment))
    assert [one.time for one in store.samples(0.0)] == kept


def test_a_sample_has_sums_of_the_agents_that_answer(store: Store) -> None:
    plan = running(store, request(cluster_size=3), A, B)
    there = [*carried_out([A, B], plan), agent("c", reachable=False)]
    taken = sample(
        list_agents(held_on(there, store.ends_on(there), store.held_plans()), there),
        [row.state for row in store.live()],
        7.0,
    )
    assert taken == Sample(
        7.0, Amounts(8000, 32 * GIB, 0), Amounts(3000, 3 * GIB, 0), SampledUse(0, 0, None), live=1, waiting=0
    )
    assert row_of(store).state == states.RUNNING
