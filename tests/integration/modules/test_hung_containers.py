# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container whose containerd shim does not answer, as under a disk that hangs, and one that is paused: they keep nothing else."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from containers_lab import Launcher, create_and_start, ours
from engine_lab import AGENT, Shape, run_module, with_container

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.batch import Batch
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.client import Engine, LateError
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.logs import LogRequest, death
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.removal import Removal
from ansible_collections.cluster.compute.plugins.module_utils._shared import label
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Plan

SECONDS = 3


def shim_of(identity: str) -> int:
    """The process of this machine that stands between the engine and a container."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"containerd-shim" in words[0] and identity.encode() in words:
            return int(folder.name)
    pytest.skip("the engine runs on another machine")


@contextmanager
def hung(client: Any, name: str) -> Iterator[None]:
    process = shim_of(client.inspect_container(name)["Id"])
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def bounded(plan: Plan) -> Plan:
    """Of a container with these labels, a program in it reads the state of its command."""
    for rank, container in enumerate(plan.containers):
        labels = {**container.labels, label.GRACE: "1", label.FOLDERS: "[]", label.BATCH: "true"}
        plan = with_container(plan, rank, labels=labels)
    return plan


def states(plan: Plan) -> dict[str, Any]:
    """The entries of the plan in the report of the agent, which the engine must have made."""
    report = run_module("agent_info", name=AGENT, timeout=SECONDS)["agent"]
    assert (report["reachable"], report["reason"]) == (True, "")
    return {one["hostname"]: one for one in report["containers"] if one["session"] == plan.session.id}


def test_a_container_that_hangs_keeps_neither_the_report_nor_the_end_of_others(
    launcher: Launcher, client: Any, engine_host: str
) -> None:
    launch = launcher(bounded(Shape(size=2).plan()))
    create_and_start(launch)
    plan, session, engine = launch.plan, launch.plan.session.id, Engine(engine_host, SECONDS, AGENT)
    removal = Removal(engine, [session], "", SECONDS, LogRequest(session, deadline=SECONDS))
    with hung(client, plan.containers[1].name):
        assert states(plan)["sub1"]["batch"]["reason"].startswith("sub1: ")

        ended = removal.carry_out(check=False).to_json()
        assert [one["Names"] for one in ours(client, plan)] == [["/" + plan.containers[1].name]]
        assert ended["changed_names"] == [plan.main.name]
        assert ended["failure"]["message"].startswith(
            f"{plan.containers[1].name}: on {AGENT} the container hangs, and the engine"
        )
        texts = {log["hostname"]: log["text"] for log in ended["logs"]}
        assert "init says: sleep" in texts["main1"]
        assert "cannot be read" in texts["sub1"]
        # The engine holds what belongs to the container: it answers no request for it any more.
        assert states(plan)["sub1"]["batch"]["reason"].startswith("sub1: ")
    again = replace(removal, engine=Engine(engine_host, 60, AGENT)).carry_out(check=False).to_json()
    assert "failure" not in again
    assert ours(client, plan) == []


def test_an_agent_answers_beside_a_container_of_which_its_engine_says_nothing(
    launcher: Launcher, client: Any, engine_host: str
) -> None:
    """Such an agent is not lost: its sessions must not move to others."""
    launch = launcher(bounded(Shape(size=2).plan()))
    create_and_start(launch)
    impatient = Engine(engine_host, SECONDS, AGENT)
    with hung(client, launch.plan.containers[1].name):
        with pytest.raises(LateError):
            impatient.stop(launch.plan.containers[1].name, 0)
        found = states(launch.plan)
        assert {name: one["state"] for name, one in found.items()} == {"main1": "running", "sub1": "running"}
        assert found["sub1"]["batch"]["reason"].startswith("sub1: the engine of agent1 does not answer")


def test_a_container_that_is_paused_is_reported_named_and_ended(
    launcher: Launcher, client: Any, engine_host: str
) -> None:
    launch = launcher(bounded(Shape(size=2).plan()))
    create_and_start(launch)
    plan, engine = launch.plan, Engine(engine_host, 60, AGENT)
    for container in plan.containers:
        client.pause(container.name)
    assert Batch(engine, plan, AGENT).wait(0).exit_code is None
    found = states(plan)["sub1"]
    assert (found["state"], found["batch"]["exit_code"]) == ("paused", None)
    assert found["batch"]["reason"].endswith(" before exec; run `docker unpause` there, and this again.")
    error = death(engine, plan.containers[1], plan.containers[1].name, AGENT)
    assert error.message == f"sub1: on {AGENT} the container is paused; run `docker unpause` there, and this again."

    ended = Removal(engine, [plan.session.id], "", 20).carry_out(check=False).to_json()
    assert sorted(ended["changed_names"]) == sorted(one.name for one in plan.containers)
    assert ours(client, plan) == []


def test_a_container_that_another_command_is_removing_is_waited_for(
    launcher: Launcher, client: Any, engine_host: str
) -> None:
    """An engine refuses the second removal until the first is complete."""
    launch = launcher(Shape(size=1).plan())
    create_and_start(launch)
    removals = []
    with ThreadPoolExecutor(2) as pool:
        with hung(client, launch.plan.main.name):
            for _command in range(2):
                removals.append(pool.submit(Engine(engine_host, 60, AGENT).remove, launch.plan.main.name))
                time.sleep(1)
        assert [removal.result() for removal in removals] == [None, None]
    assert ours(client, launch.plan) == []
