# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables of sessions, owners and agents."""

from __future__ import annotations

import time

import pytest
from samples import GIB

from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._tables import (
    agents_table,
    in_use,
    owners_table,
    remarks,
    sessions_table,
)

ROW: Json = {
    "name": "train",
    "owner": "alice",
    "state": "RUNNING",
    "kind": "cluster",
    "size": 3,
    "mode": "multi-node",
    "each": {"millicpus": 500, "memory": GIB},
    "gpus": 0,
    "measured": {"millicpus": 749, "memory": 300 << 20},
    "image": "env:1",
    "started": 100.0,
    "agents": ["a", "b"],
    "folders": [{"source": "/srv/data", "target": "/data", "mode": "rw"}],
    "apps": [{"name": "lab", "address": "192.0.2.7", "port": 30001, "agent": "a"}],
    "degraded": ["sub2"],
    "containers": [{"hostname": "sub2", "agent": "b", "state": "missing"}],
    "reason": "x",
}
WAITING: Json = {
    **ROW,
    "name": "wait",
    "state": "PENDING",
    "kind": "compute",
    "size": 1,
    "measured": None,
    "started": None,
    "agents": [],
    "folders": [],
    "apps": [],
    "degraded": [],
    "containers": [],
    "gpus": 2.0,
    "reason": "a: needs 3 CPUs, 1 free",
}


def test_the_table_of_sessions() -> None:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(100))
    header, train, wait = sessions_table([ROW, WAITING])
    assert header.split("  ")[0] == "SESSION"
    assert _cells(header)[-6:] == ["IMAGE", "STARTED", "AGENTS", "FOLDERS", "APPS", "REASON"]
    assert _cells(train) == [
        *("train", "alice", "RUNNING (degraded: sub2)", "cluster", "3", "multi-node", "0.5 CPUs, 1g", "0.7 CPUs, 300m"),
        *("env:1", when, "a, b", "/data", "lab 192.0.2.7:30001", "sub2 on b is gone"),
    ]
    assert _cells(wait) == [
        *("wait", "alice", "PENDING", "compute", "1", "multi-node", "0.5 CPUs, 1g, 2 GPUs", "-", "env:1", "-", "-"),
        *("none", "-", "a: needs 3 CPUs, 1 free"),
    ]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


@pytest.mark.parametrize(
    ("folders", "shown"),
    [(None, "?"), ([], "none"), ([{"target": "/data"}, {"target": "/scratch"}], "/data, /scratch")],
)
def test_a_session_without_a_data_folder_says_so(folders: list[Json] | None, shown: str) -> None:
    assert f"  {shown}  " in sessions_table([{**ROW, "folders": folders}])[1]


def test_the_table_of_agents() -> None:
    used, capacity = {"millicpus": 1500, "memory": 0, "gpus": 0.5}, {"millicpus": 4000, "memory": GIB, "gpus": 1}
    up = {"name": "a", "group": "default", "reachable": True, "reason": "", "schedulable": True, "measured": None}
    up.update(used=used, capacity=capacity)
    gpus = [{"id": "x", "percent": 80}, {"id": "y", "percent": None}, {"id": "z", "percent": 40}]
    measured = {"millicpus": 1234, "memory": 5 << 20, "gpus": gpus}
    closed = {**up, "name": "c", "schedulable": False, "measured": measured}
    lost = {**up, "name": "b", "reachable": False, "reason": "timed out"}
    assert agents_table([up, lost, closed]) == [
        "AGENT  GROUP    STATE                      CPUS      MEMORY    GPUS      IN USE",
        "a      default  up                         1.5 of 4  0b of 1g  0.5 of 1  -",
        "b      default  lost: timed out            1.5 of 4  0b of 1g  0.5 of 1  -",
        "c      default  up, takes no new sessions  1.5 of 4  0b of 1g  0.5 of 1  1.2 CPUs, 5m, GPUs 60%",
    ]


def test_owners_have_what_they_use_of_what_is_allowed() -> None:
    used = {"millicpus": 4500, "memory": 3 * GIB, "gpus": 1.5}
    free: Json = {"owner": "alice", "sessions": 2, "waiting": 1, "containers": 5, "used": used, "allowed": None}
    limited = {**free, "owner": "bob", "allowed": {"sessions": 4, "millicpus": 8000, "memory": 8 * GIB}}
    assert owners_table([free, limited]) == [
        "OWNER  SESSIONS  WAITING  CONTAINERS  CPUS      MEMORY    GPUS",
        "alice  2         1        5           4.5       3g        1.5",
        "bob    2 of 4    1        5           4.5 of 8  3g of 8g  1.5",
    ]


@pytest.mark.parametrize(
    ("measured", "shown"),
    [(None, ""), ({"millicpus": 0, "memory": 0}, "0 CPUs, 0b"), ({"millicpus": 10, "memory": 1}, "0 CPUs, 1b")],
)
def test_what_is_in_use(measured: Json | None, shown: str) -> None:
    assert in_use(measured) == shown


@pytest.mark.parametrize(
    ("exit_code", "state", "reason"),
    [
        (None, "RUNNING", "the command runs"),
        (
            "none yet",
            "RUNNING (command does not run)",
            "the command does not run since main1 was started; the launch of the session, run again, starts it",
        ),
        (0, "RUNNING (command succeeded)", "the command ended with exit code 0"),
        (3, "RUNNING (command failed)", "the command ended with exit code 3"),
    ],
)
def test_the_list_shows_what_became_of_the_command(exit_code: int | str | None, state: str, reason: str) -> None:
    """It read "every container is verified" while a command ran, and RUNNING alone after its end."""
    row = {**ROW, "degraded": [], "containers": [], "reason": "every container is verified"}
    row["command"] = {"exit_code": exit_code, "oom_killed": False, "reason": ""}
    if exit_code == "none yet":
        row["command"].update(exit_code=None, begun=False)
    line = sessions_table([row])[1]
    assert f"  {state}  " in line
    assert line.endswith("  " + reason)


def test_the_time_that_is_left_is_beside_the_state() -> None:
    session = {"state": "RUNNING", "degraded": ["sub1"], "ends": time.time() + 7290, "idle_timeout": 600}
    assert remarks(session) == ["degraded: sub1", "2 h 1 min left", "ends when idle for 10 min"]
    assert remarks({**session, "state": "TERMINATED", "degraded": []}) == []
    failed = {"state": "RUNNING", "unhealthy": ["app web", "command"], "command": {"exit_code": 1}}
    assert remarks(failed) == ["unhealthy: app web", "command failed"]
