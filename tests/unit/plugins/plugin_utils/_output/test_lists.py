# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables of sessions, owners and agents."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from samples import GIB

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.container_view import ContainerView
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Resources
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import (
    BatchState,
    GpuHealth,
    GpuSharing,
    GpuUse,
    Measured,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.usage import (
    NO_AMOUNTS,
    AgentView,
    Amounts,
    GroupView,
    OwnerView,
    Quota,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.view import (
    AppView,
    FolderView,
    RoleView,
    SessionList,
    SessionView,
)
from ansible_collections.cluster.compute.plugins.plugin_utils._output.lists import (
    COLUMNS,
    SHOWN,
    agent_state,
    agents_table,
    failures_of,
    groups_table,
    in_use,
    limits_of,
    list_lines,
    owners_table,
    remarks,
    resources_of,
    sessions_table,
)

ROW = SessionView(
    id="uuid",
    name="train",
    owner="alice",
    state="RUNNING",
    kind="cluster",
    size=3,
    mode="multi-node",
    each=Resources(500, GIB),
    measured=Measured(749, 300 << 20, ()),
    image="env:1",
    started=100.0,
    agents=("a", "b"),
    folders=(FolderView("/srv/data", "/data", "rw"),),
    apps=(AppView("lab", "192.0.2.7", 30001, "a"),),
    degraded=("sub2",),
    priority=10,
    group="default",
    created=5.0,
    containers=(ContainerView("sub2", "b", "missing", rank=2),),
    reason="x",
)
WAITING = SessionView(
    id="uuid",
    name="wait",
    owner="alice",
    state="PENDING",
    turn=4,
    kind="compute",
    size=1,
    each=Resources(500, GIB),
    gpus=2.0,
    priority=10,
    group="default",
    created=5.0,
    reason="a: needs 3 CPUs, 1 free",
)


def table(rows: list[SessionView], *columns: Any, **width: int) -> list[str]:
    """The table of these rows, with the explanations that the head gives them."""
    return sessions_table([replace(row, reason=row.what_happened) for row in rows], *columns, **width)


def test_the_table_of_sessions() -> None:
    when = time.strftime("%m-%d %H:%M", time.localtime(100))
    header, train, wait, *more = table([WAITING, ROW], width=400)
    assert _cells(header) == [
        *("SESSION", "OWNER", "STATE", "TURN", "PRIORITY", "SIZE", "EACH", "STARTED", "REASON"),
    ]
    assert _cells(train) == [
        *("train", "alice", "RUNNING (degraded)", "-", "10", "3 multi-node", "0.5 CPUs, 1g", when, "sub2 on b is gone"),
    ]
    assert _cells(wait) == [
        *("wait", "alice", "PENDING", "4", "10", "1", "0.5 CPUs, 1g, 2 GPUs", "-", "a: needs 3 CPUs, 1 free"),
    ]
    assert more == []


def test_sessions_come_in_the_order_of_the_queue_and_of_their_ends() -> None:
    """Those that run are first, the oldest one above; those that have ended are last."""
    waiting = [replace(WAITING, name=f"turn-{turn}", turn=turn, priority=turn) for turn in (3, 1, 2)]
    ended = [replace(ROW, name=name, state="TERMINATED", changed=when) for name, when in (("new", 9.0), ("old", 8.0))]
    lines = table([*ended, *waiting, replace(ROW, created=7.0, name="young"), ROW])[1:]
    names = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert names == ["train", "young", "turn-1", "turn-2", "turn-3", "old", "new"]


def test_an_ended_session_has_its_end_and_its_result() -> None:
    ended = replace(ROW, state="TERMINATED", changed=3700.0, result="SUCCESS", containers=(), degraded=())
    header, line = table([ended], width=400)
    cells = dict(zip(_cells(header), _cells(line), strict=True))
    assert (cells["RESULT"], cells["END"]) == ("SUCCESS", time.strftime("%m-%d %H:%M", time.localtime(3700)))


def test_the_table_fits_120_columns_and_loses_nothing() -> None:
    reason = "; ".join(f"node{number}: needs 24 CPUs, 2 free" for number in range(8))
    long = replace(WAITING, name="evaluate-the-model-01", owner="alexandra", reason=reason)
    degraded = replace(ROW, time_left=99999.0, idle_timeout=600, command=BatchState(3))
    lines = table([long, degraded])
    assert max(map(len, lines)) <= 120
    assert (
        " ".join(line.strip() for line in lines[lines.index(next(one for one in lines if "PENDING" in one)) + 1 :])
        == reason
    )
    alone = table([replace(long, name="x")])
    assert max(map(len, alone)) <= 120
    assert " ".join(line[alone[0].index("REASON") :] for line in alone[1:]) == reason
    assert len(table([long, degraded], width=400)) == 3


def test_roles_of_one_session_do_not_make_every_line_wide() -> None:
    roles = (RoleView(500, GIB, 0, "ps", 2), RoleView(500, GIB, 0, "worker", 1))
    header, train = table([replace(ROW, roles=roles)], width=400)
    assert dict(zip(_cells(header), _cells(train), strict=True))["EACH"] == "by role"
    assert table([replace(ROW, roles=roles)], ["each"])[1] == "2 ps: 0.5 CPUs, 1g; 1 worker: 0.5 CPUs, 1g"


def test_columns_are_chosen() -> None:
    assert table([ROW], ["session", "apps", "in use"]) == [
        "SESSION  APPS                 IN USE",
        "train    lab 192.0.2.7:30001  0.7 CPUs, 300m",
    ]
    every = table([ROW], ["all"], width=400)[0]
    assert {"KIND", "IMAGE", "FOLDERS", "AGENTS", "RESULT"} <= set(every.split())
    assert tuple(SHOWN) == COLUMNS


def test_a_name_that_matches_nothing_is_named() -> None:
    nothing = SessionList()
    assert list_lines(nothing, "nosuch") == ["No session matches session_name nosuch."]
    assert list_lines(nothing, "")[0].startswith("SESSION ")


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


@pytest.mark.parametrize(
    ("folders", "shown"),
    [(None, "?"), ((), "none"), (("/data", "/scratch"), "/data, /scratch")],
)
def test_a_session_without_a_data_folder_says_so(folders: tuple[str, ...] | None, shown: str) -> None:
    mounted = None if folders is None else tuple(FolderView("/srv", target, "rw") for target in folders)
    assert table([replace(ROW, folders=mounted)], ["folders"])[1] == shown


def test_the_table_of_agents() -> None:
    up = AgentView("a", Amounts(4000, GIB, 1), Amounts(1500, 0, 0.5), NO_AMOUNTS, architecture="x86_64")
    gpus = (GpuUse("x", 80), GpuUse("y", None), GpuUse("z", 40))
    closed = replace(up, name="c", schedulable=False, measured=Measured(1234, 5 << 20, gpus))
    lost = replace(up, name="b", reachable=False, reason="timed out")
    assert agents_table([up, lost, closed]) == [
        "AGENT  GROUP    CPUS      MEMORY    GPUS      IN USE                  STATE",
        "a      default  1.5 of 4  0b of 1g  0.5 of 1  -                       up",
        "b      default  1.5 of 4  0b of 1g  0.5 of 1  -                       lost: timed out",
        "c      default  1.5 of 4  0b of 1g  0.5 of 1  1.2 CPUs, 5m, GPUs 60%  up, takes no new sessions",
    ]
    other, unknown = replace(up, name="d", architecture="aarch64"), replace(lost, architecture="")
    assert agents_table([up, other, unknown]) == [
        "AGENT  ARCHITECTURE  GROUP    CPUS      MEMORY    GPUS      IN USE  STATE",
        "a      x86_64        default  1.5 of 4  0b of 1g  0.5 of 1  -       up",
        "d      aarch64       default  1.5 of 4  0b of 1g  0.5 of 1  -       up",
        "b      -             default  1.5 of 4  0b of 1g  0.5 of 1  -       lost: timed out",
    ]


def test_the_state_of_an_agent_names_its_red_gpus() -> None:
    sick = (
        GpuHealth("GPU-1", "red", ("it must be reset", "XID 48 since the start of the host")),
        GpuHealth("GPU-2", "yellow", ("its infoROM is corrupted",)),
    )
    sharing = GpuSharing("none", "gives no part of a GPU")
    agent = AgentView("a", NO_AMOUNTS, NO_AMOUNTS, NO_AMOUNTS, gpu_health=sick, gpu_sharing=sharing)
    red = "GPU-1 is red: it must be reset, XID 48 since the start of the host"
    assert agent_state(agent) == f"up; {red}"
    assert agent_state(replace(agent, schedulable=False)) == f"up, takes no new sessions; {red}"


def test_the_table_of_resource_groups() -> None:
    used, capacity = Amounts(1500, GIB, 0.5), Amounts(4000, 8 * GIB, 2)
    most = replace(capacity, millicpus=2000)
    group = GroupView("gpu", 2, capacity, used, Amounts(500, 0, 0.5), most)
    assert groups_table([group, replace(group, group="old", own=None)]) == [
        "GROUP  AGENTS  CPUS                    MEMORY            GPUS",
        "gpu    2       1.5 of 4, 0.5 own of 2  1g of 8g, 0b own  0.5 of 2, 0.5 own",
        "old    2       1.5 of 4                1g of 8g          0.5 of 2",
    ]


def test_owners_have_what_they_use_of_what_is_allowed() -> None:
    free = OwnerView("alice", 2, 1, 5, Amounts(4500, 3 * GIB, 1.5), available=Amounts(3500, 5 * GIB, 0))
    limited = replace(free, owner="bob", allowed=Quota(sessions=4, millicpus=8000, memory=8 * GIB))
    assert owners_table([free, limited]) == [
        "OWNER  SESSIONS  WAITING  CONTAINERS  CPUS      MEMORY    GPUS  MAY STILL HAVE",
        "alice  2         1        5           4.5       3g        1.5   3.5 CPUs, 5g",
        "bob    2 of 4    1        5           4.5 of 8  3g of 8g  1.5   3.5 CPUs, 5g",
    ]


@pytest.mark.parametrize(
    ("measured", "shown"),
    [(None, ""), (Measured(0, 0, ()), "0 CPUs, 0b"), (Measured(10, 1, ()), "0 CPUs, 1b")],
)
def test_what_is_in_use(measured: Measured | None, shown: str) -> None:
    assert in_use(measured) == shown


@pytest.mark.parametrize(
    ("command", "state", "reason"),
    [
        (BatchState(), "RUNNING", "the command runs"),
        (
            BatchState(begun=False),
            "RUNNING (command does not run)",
            "the command does not run since main1 was started; the launch of the session, run again, starts it",
        ),
        (BatchState(0), "RUNNING (command succeeded)", "the command ended with exit code 0"),
        (BatchState(3), "RUNNING (command failed)", "the command ended with exit code 3"),
    ],
)
def test_the_list_shows_what_became_of_the_command(command: BatchState, state: str, reason: str) -> None:
    """It read "every container is verified" while a command ran, and RUNNING alone after its end."""
    row = replace(ROW, degraded=(), containers=(), reason="every container is verified", command=command)
    assert table([row], ["state", "reason"], width=400)[1] == f"{state}  {reason}"


def test_the_time_that_is_left_is_beside_the_reason() -> None:
    limited = replace(ROW, ends=1000.0, time_left=7290.0, idle_timeout=600)  # another clock than the controller's
    [line] = table([limited], ["reason"], width=200)[1:]
    assert line == "sub2 on b is gone; 2 h 1 min left; ends when idle for 10 min"
    assert limits_of(replace(limited, state="TERMINATED")) == []
    failed = replace(ROW, degraded=(), containers=(), unhealthy=("app web", "command"), command=BatchState(1))
    assert remarks(failed) == ["unhealthy: app web", "command failed"]
    assert failures_of(failed) == ["app web"]


def test_the_resources_of_each_role() -> None:
    roles = (RoleView(500, GIB, 0, "ps", 2), RoleView(2000, GIB, 0.5, "worker", 1))
    assert resources_of(ROW) == "0.5 CPUs, 1g"
    assert resources_of(replace(ROW, roles=roles)) == "2 ps: 0.5 CPUs, 1g; 1 worker: 2 CPUs, 1g, 0.5 GPUs"
