# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from samples import SESSION, decision, plan, request

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.decision import DecidedSession, Decision
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import App, Plan, Port
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.step_documents import ContainerLog
from ansible_collections.cluster.compute.plugins.module_utils._shared.names import local_port
from ansible_collections.cluster.compute.plugins.module_utils._shared.text.summaries import (
    logs_view,
    summary,
    termination_summary,
)

ROW = {
    "id": SESSION,
    "name": "train",
    "owner": "alice",
    "state": "RUNNING",
    "created": 100.0,
    "changed": 105.0,
    "reason": "x",
}
TUNNEL = "ssh -N -o ExitOnForwardFailure=yes -F /tmp/x/train/ssh_config -L %s main1"
THREE = plan(request(cluster_size=3, cluster_mode="multi-node"), "aab")


def with_apps(made: Plan) -> Plan:
    apps = (*made.main.ports, Port("web", 80, "127.0.0.1", 8080), Port("board", 6006, "0.0.0.0", 30001))
    return replace(made, containers=(replace(made.main, ports=apps), *made.containers[1:]))


def scheduled(outcome: str, made: Plan | None = THREE, **fields: Any) -> Decision:
    return decision(outcome, made, ROW, **fields)


def lines_of(
    decided: Decision, artifacts: str, check: bool = False, address: str = "127.0.0.1", **found: Any
) -> list[str]:
    return summary(decided, artifacts, check, address, found)


@pytest.mark.parametrize(
    ("outcome", "missing", "check", "expected"),
    [
        ("placed", [], False, "RUNNING"),
        ("placed", [], True, "would be launched"),
        ("running", [], False, "RUNNING, nothing to do"),
        ("running", [], True, "RUNNING, nothing to do"),
        ("repair", ["sub1", "sub2"], False, "RUNNING, sub1, sub2 brought back"),
        ("repair", ["sub1"], True, "RUNNING, sub1 would be brought back"),
    ],
)
def test_a_summary_begins_with_the_state(outcome: str, missing: list[str], check: bool, expected: str) -> None:
    lines = lines_of(scheduled(outcome, missing=missing), "/home/alice/.cluster-compute/", check)
    assert lines[0] == "Session train: %s (cluster session, multi-node)" % expected
    enter = "Enter it: ssh -F /home/alice/.cluster-compute/train/ssh_config main1"
    assert (lines[-1] == enter) == (not check)


@pytest.mark.parametrize(
    ("outcome", "names", "check", "expected"),
    [
        ("running", ["lifetime"], False, "RUNNING, limit changed: lifetime 2 h"),
        ("running", ["lifetime"], True, "RUNNING, limit would change: lifetime 2 h"),
        ("running", ["lifetime", "idle_timeout"], False, "RUNNING, limit changed: lifetime 2 h, idle timeout none"),
        ("repair", ["lifetime"], False, "RUNNING, sub1 brought back, limit changed: lifetime 2 h"),
    ],
)
def test_a_summary_names_the_limits_that_change(outcome: str, names: list[str], check: bool, expected: str) -> None:
    limited = replace(THREE, session=replace(THREE.session, lifetime=7200))
    lines = lines_of(scheduled(outcome, limited, new_limits=names, missing=["sub1"]), "/tmp", check)
    assert lines[0] == f"Session train: {expected} (cluster session, multi-node)"


def test_only_a_launch_without_a_data_folder_says_that_its_files_are_removed() -> None:
    line = "No data directory: the files of this session are removed with it"
    mount = {"source": "/srv/data", "target": "/data"}
    mounted = plan(request(mounts=[mount]))
    assert line in lines_of(scheduled("placed"), "/tmp")
    assert line in lines_of(scheduled("placed"), "/tmp", check=True)
    assert line not in lines_of(scheduled("placed", mounted), "/tmp")
    assert line not in lines_of(scheduled("running"), "/tmp")


@pytest.mark.parametrize(("check", "verb"), [(False, "are"), (True, "would be")])
def test_a_summary_names_files_that_were_lost(check: bool, verb: str) -> None:
    lines = lines_of(scheduled("running"), "/tmp", check, restored_files=["ssh_config"])
    assert "RUNNING, its files on this controller %s written again" % verb in lines[0]


def test_a_whole_summary() -> None:
    assert lines_of(scheduled("placed", with_apps(THREE)), "/tmp/x") == [
        "Session train: RUNNING (cluster session, multi-node)",
        "Each container: 1 CPUs, 1g memory, 64m shared memory",
        "Network 10.201.0.0/27 (overlay)",
        "  CONTAINER  AGENT  ADDRESS",
        "  main1      a      10.201.0.2",
        "  sub1       a      10.201.0.3",
        "  sub2       b      10.201.0.4",
        "No data directory: the files of this session are removed with it",
        "App web: port 8080 of a",
        "App board: port 30001 of a",
        "Enter it: ssh -F /tmp/x/train/ssh_config main1",
    ]


def test_a_summary_says_how_to_reach_apps_of_another_machine() -> None:
    """It never has a token."""
    made = with_apps(THREE)
    running = replace(
        made, session=replace(made.session, apps=(App("web", 80, command="serve", path="/?token={token}"),))
    )
    assert lines_of(scheduled("placed", running), "/tmp/x", address="192.0.2.7")[-4:] == [
        "Open the apps in a browser: their URLs, with tokens, are in /tmp/x/train/apps",
        "Each needs a connection to a first, which lasts until it is stopped:",
        "  " + TUNNEL % "8080:main1:80",
        "Enter it: ssh -F /tmp/x/train/ssh_config main1",
    ]
    assert lines_of(scheduled("placed", running), "/tmp/x")[-2].startswith("Open the apps")


def test_an_app_of_a_role_is_reached_through_main1_also_on_its_own_machine() -> None:
    board = {"name": "board", "port": 6006, "command": "exec board"}
    made = plan(request(roles=[{"name": "worker", "size": 2, "apps": [board]}]))
    way = TUNNEL % f"{local_port(SESSION, 'board')}:worker1:6006"
    lines = lines_of(scheduled("placed", made), "/tmp/x")
    assert "App board: in worker1, by SSH tunnel" in lines
    assert lines[-3:-1] == ["App board needs a connection to worker1, which lasts until it is stopped:", f"  {way}"]


def test_a_summary_of_one_and_of_many() -> None:
    assert lines_of(scheduled("placed", plan(request())), "/x")[0] == "Session train: RUNNING (compute session)"
    many = lines_of(scheduled("placed", plan(request(cluster_size=20))), "/x")
    assert "  … and 4 more" in many
    assert len(many) == 23


@pytest.mark.parametrize(
    ("gpus", "placement", "agents"),
    [
        pytest.param(1, "aab", "a", id="two on an agent"),
        pytest.param(2, "aabb", "a, b", id="two on each of two agents"),
        pytest.param(1, "abc", "", id="one on each agent"),
        pytest.param(0, "aab", "", id="without GPUs"),
        pytest.param(0.25, "aab", "", id="shares of a GPU"),
    ],
)
@pytest.mark.parametrize("check", [False, True])
def test_a_summary_warns_of_gpus_that_nvlink_does_not_connect(
    gpus: float, placement: str, agents: str, check: bool
) -> None:
    made = plan(request(cluster_size=len(placement), cluster_mode="multi-node", gpus=gpus), placement)
    lines = lines_of(scheduled("placed", made), "/tmp/x", check)
    warning = (
        "Warning: several containers have GPUs of the same agent (%s): NCCL connects them by sockets, not by NVLink; "
        "use session_per_agent: 1, and give the container of each agent all its GPUs"
    )
    assert [line for line in lines if line.startswith("Warning")] == ([warning % agents] if agents else [])


@pytest.mark.parametrize(("check", "verb"), [(False, "is PENDING"), (True, "would wait")])
def test_a_waiting_session_says_why(check: bool, verb: str) -> None:
    waits = scheduled("pending", None, reason="a: needs 4 CPUs, 1 free")
    assert lines_of(waits, "/x", check) == [f"Session train {verb}: a: needs 4 CPUs, 1 free."]


@pytest.mark.parametrize(
    ("state", "check", "expected"),
    [
        ("TERMINATED", False, "Session train: TERMINATED (x)"),
        ("TERMINATING", True, "Session train would be terminated."),
        ("CANCELLED", False, "Session train: CANCELLED (x)"),
        ("CANCELLED", True, "Session train would be cancelled."),
    ],
)
def test_the_report_of_a_termination(state: str, check: bool, expected: str) -> None:
    assert termination_summary(DecidedSession.from_json({**ROW, "state": state}), "train", check) == expected
    assert termination_summary(None, "train", check) == "There is no live session train: nothing to end."


def test_logs_come_in_rank_order() -> None:
    logs = [
        ContainerLog(name, "running", text) for name, text in [("sub10", "z\n"), ("main1", "a\nb\nc\n"), ("sub9", "")]
    ]
    assert logs_view(logs, tail=2) == ["main1: b", "main1: c", "sub9: (nothing)", "sub10: z"]
    assert logs_view(logs, ["sub10"]) == ["sub10: z"]


def test_a_session_with_roles_says_what_each_has() -> None:
    made = plan(request(roles=[{"name": "ps", "size": 2, "cpus": 0.5, "image": "own:1"}]))
    lines = lines_of(scheduled("placed", made), "/tmp/x")
    assert lines[1:3] == [
        "1 main (reference): 1 CPUs, 1g memory, 64m shared memory",
        "2 ps (own:1): 0.5 CPUs, 1g memory, 64m shared memory",
    ]


def test_logs_of_roles_are_in_the_order_of_their_names() -> None:
    logs = [ContainerLog(name, "running", "x") for name in ("worker10", "ps1", "worker9", "main1")]
    assert [line.split(":")[0] for line in logs_view(logs)] == ["main1", "ps1", "worker9", "worker10"]
