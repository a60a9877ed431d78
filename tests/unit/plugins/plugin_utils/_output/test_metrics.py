# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Metrics: what they say about sessions and agents, that every reader accepts them, and that no text adds a series."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import lists
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openmetrics import parsed

from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.container_view import ContainerView
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Resources
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import GpuUse, Measured
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.usage import (
    NO_AMOUNTS,
    AgentView,
    Amounts,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.view import (
    RoleView,
    SessionList,
    SessionView,
    StateChange,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import escape_control
from ansible_collections.cluster.compute.plugins.plugin_utils._output.metrics import METRICS, PREFIX, metrics_text

ROOT = Path(__file__).resolve().parents[5]
NAMES = {PREFIX + metric.name for metrics in METRICS.values() for metric in metrics}
MOST_SERIES = 30
WAITING = ("giant", "dave", 20, 4, "8g", 0)

AGENT = AgentView("node1", Amounts(16000, 1 << 36, 2), Amounts(1500, 1 << 31, 0.5), NO_AMOUNTS, schedulable=False)
HISTORY = (
    StateChange(10.0, "", "PENDING", ""),
    StateChange(60.0, "PENDING", "SCHEDULED", ""),
    StateChange(61.0, "SCHEDULED", "PREPARING", ""),
    StateChange(64.5, "PREPARING", "RUNNING", ""),
    StateChange(90.0, "RUNNING", "RUNNING", ""),
)
SESSION = SessionView(
    id="uuid",
    name="train",
    owner="alice",
    state="RUNNING",
    size=2,
    each=Resources(750, 1 << 30),
    gpus=0.25,
    measured=Measured(333, 1000, (GpuUse("x", 40), GpuUse("y", None))),
    containers=(ContainerView("main1", "a", "running"), ContainerView("sub1", "a", "exited")),
    degraded=("sub1",),
    unhealthy=("app lab", "command"),
    history=HISTORY,
    time_left=3600.5,
    created=10.0,
)
GOLDEN = """\
# HELP cluster_compute_written_timestamp_seconds When the sessions and agents were read.
# TYPE cluster_compute_written_timestamp_seconds gauge
cluster_compute_written_timestamp_seconds 100
# HELP cluster_compute_sessions Sessions in a state; PENDING sessions wait.
# TYPE cluster_compute_sessions gauge
cluster_compute_sessions{state="PENDING"} 0
cluster_compute_sessions{state="PREPARING"} 0
cluster_compute_sessions{state="RUNNING"} 1
cluster_compute_sessions{state="SCHEDULED"} 0
cluster_compute_sessions{state="TERMINATING"} 0
"""


def listed(*sessions: SessionView, agents: tuple[AgentView, ...] = (AGENT,), time: float = 100.0) -> SessionList:
    return SessionList(time, sessions, agents)


def values(document: SessionList) -> dict[str, list[float]]:
    """The values of each metric without its prefix."""
    return {name.removeprefix(PREFIX): list(series.values()) for name, series in parsed(metrics_text(document)).items()}


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> SessionList:
    folder = tmp_path_factory.mktemp("few")
    return lists.listed(folder, lists.few_agents(), [*lists.FEW, WAITING], lifetime=36000)


def test_the_text_of_a_list() -> None:
    text = metrics_text(listed(SESSION))
    assert text.startswith(GOLDEN)
    assert 'cluster_compute_session_cpus{owner="alice",session="train"} 1.5\n' in text
    assert 'cluster_compute_session_state{owner="alice",session="train",state="RUNNING"} 1\n' in text
    assert text.endswith("\n# EOF\n")


def test_a_running_session() -> None:
    found = {name: series for name, series in values(listed(SESSION)).items() if name.startswith("session_")}
    assert found == {
        "session_state": [1],
        "session_containers": [2],
        "session_containers_running": [1],
        "session_containers_lacking": [1],
        "session_failures": [2],
        "session_cpus": [1.5],
        "session_cpus_used": [0.333],
        "session_memory_bytes": [1 << 31],
        "session_memory_used_bytes": [1000],
        "session_gpus": [0.5],
        "session_gpus_used": [0.4],
        "session_launch_seconds": [4.5],
        "session_lifetime_left_seconds": [3600.5],
    }


def test_the_amounts_of_roles_are_added_up() -> None:
    roles = (RoleView(500, 1 << 30, 0, "main", 1), RoleView(2000, 2 << 30, 1, "worker", 2))
    found = values(listed(replace(SESSION, size=3, roles=roles)))
    assert (found["session_cpus"], found["session_memory_bytes"], found["session_gpus"]) == ([4.5], [5 << 30], [2])


def test_a_waiting_session_has_its_age_and_nothing_that_it_does_not_use() -> None:
    waiting = replace(SESSION, state="PENDING", measured=None, containers=(), history=(), time_left=None)
    found = values(listed(waiting))
    assert (found["session_waiting_seconds"], found["session_containers_running"]) == ([90.0], [0])
    absent = "launch_seconds lifetime_left_seconds cpus_used memory_used_bytes gpus_used containers_lacking failures"
    assert {f"session_{name}" for name in absent.split()}.isdisjoint(found)


def test_a_session_that_is_placed_again_has_the_time_of_its_last_launch() -> None:
    again = (StateChange(70.0, "PENDING", "SCHEDULED", ""), StateChange(78.0, "PREPARING", "RUNNING", ""))
    undone = StateChange(62.0, "PREPARING", "PENDING", "")
    history = (*HISTORY[:3], undone, *again)
    assert values(listed(replace(SESSION, history=history)))["session_launch_seconds"] == [8.0]


def test_a_session_that_has_ended_has_no_metrics() -> None:
    found = values(listed(replace(SESSION, state="TERMINATED")))
    assert not [name for name in found if name.startswith("session_")]
    assert found["sessions"] == [0] * 5


def test_an_agent() -> None:
    measured = Measured(1250, 99, (GpuUse("x", 100), GpuUse("y", 50)))
    found = values(listed(agents=(replace(AGENT, measured=measured),)))
    assert {name: series for name, [*series] in found.items() if name.startswith("agent_")} == {
        "agent_up": [1],
        "agent_schedulable": [0],
        "agent_cpus": [16],
        "agent_cpus_allocated": [1.5],
        "agent_cpus_used": [1.25],
        "agent_memory_bytes": [1 << 36],
        "agent_memory_allocated_bytes": [1 << 31],
        "agent_memory_used_bytes": [99],
        "agent_gpus": [2],
        "agent_gpus_allocated": [0.5],
        "agent_gpus_used": [1.5],
    }
    lost = values(listed(agents=(replace(AGENT, reachable=False),)))
    assert (lost["agent_up"], "agent_cpus_used" in lost) == ([0], False)


def test_the_list_of_a_store(few: SessionList) -> None:
    series = parsed(metrics_text(few))
    assert series[PREFIX + "sessions"][(("state", "RUNNING"),)] == 3
    assert series[PREFIX + "session_waiting_seconds"] == {(("owner", "dave"), ("session", "giant")): 9 * 3600 - 180}
    assert set(series[PREFIX + "session_launch_seconds"].values()) == {4.0}
    assert series[PREFIX + "agent_cpus_allocated"][(("agent", "node1"),)] == 12
    assert series.keys() <= NAMES


def test_a_session_has_few_series(few: SessionList) -> None:
    before, after = (
        sum(map(len, parsed(metrics_text(replace(few, sessions=sessions))).values()))
        for sessions in (few.sessions, few.sessions[1:])
    )
    assert 8 < before - after <= MOST_SERIES
    assert len(METRICS["session"]) <= MOST_SERIES
    assert f"at most {len(METRICS['session'])} series" in (ROOT / "docs/metrics.md").read_text()


def test_labels_are_names_and_states_only() -> None:
    labels = {label for metrics in METRICS.values() for metric in metrics for label in metric.labels}
    assert labels == {"owner", "session", "state", "agent"}


@pytest.mark.parametrize(
    "name", ['a"} 1\n# EOF', "back\\slash", "line\nbreak", "\x1b]0;title\x07", "\u202eevil", "\ud800"]
)
def test_a_hostile_name_stays_inside_its_label(name: str) -> None:
    text = metrics_text(listed(replace(SESSION, name=name, owner=name), agents=(replace(AGENT, name=name),)))
    text.encode()
    series = parsed(text)
    assert series[PREFIX + "session_cpus"] == {
        (("owner", escape_control(name)), ("session", escape_control(name))): 1.5
    }
    assert series[PREFIX + "agent_up"] == {(("agent", escape_control(name)),): 1}


@given(st.lists(st.text(st.characters(), max_size=20), min_size=2, max_size=2))
def test_no_name_changes_the_number_of_series(names: list[str]) -> None:
    plain, spoiled = (
        {name: len(series) for name, series in parsed(metrics_text(listed(replace(SESSION, **changed)))).items()}
        for changed in ({}, {"name": names[0], "owner": names[1]})
    )
    assert plain == spoiled


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400, "1} 2", None, [1]])
def test_what_is_no_number_is_left_out(value: Any) -> None:
    found = values(listed(replace(SESSION, time_left=value)))
    assert "session_lifetime_left_seconds" not in found


def test_two_sessions_with_the_same_name_are_one_series() -> None:
    older = replace(SESSION, size=7)
    assert values(listed(older, SESSION))["session_containers"] == [2]


def test_the_page_has_a_row_for_each_metric() -> None:
    rows = [
        f"| `{PREFIX}{metric.name}` | {', '.join(f'`{label}`' for label in metric.labels) or 'none'} | {metric.help} |"
        for metrics in METRICS.values()
        for metric in metrics
    ]
    page = (ROOT / "docs/metrics.md").read_text()
    assert re.findall(r"^\| `cluster_compute_.*$", page, re.MULTILINE) == rows


def dashboard() -> Json:
    loaded: Json = json.loads((ROOT / "extensions/grafana/cluster_compute.json").read_text())
    return loaded


def queries() -> list[str]:
    return [target["expr"] for panel in dashboard()["panels"] for target in panel.get("targets", ())]


def test_the_dashboard_asks_for_metrics_that_exist() -> None:
    asked = [set(re.findall(rf"\b{PREFIX}\w+", query)) for query in queries()]
    assert len(asked) > 8
    assert all(asked)
    assert set().union(*asked) <= NAMES


def test_the_panels_of_the_dashboard_do_not_overlap_and_have_one_source() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _y in cells) < 24
    assert {panel["datasource"]["uid"] for panel in panels} == {"${source}"}
