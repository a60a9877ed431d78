# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drill against playbooks that behave as a table says: verdicts, times, and what is not run."""

from __future__ import annotations

import doctest
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from samples import SESSION

from ansible_collections.cluster.compute.plugins.module_utils._core.errors import InputError
from ansible_collections.cluster.compute.plugins.plugin_utils import _drill_faults as faults
from ansible_collections.cluster.compute.plugins.plugin_utils._conduct.phases import PHASES, SILENT
from ansible_collections.cluster.compute.plugins.plugin_utils._drill import Drill, quoted
from ansible_collections.cluster.compute.plugins.plugin_utils._drill_steps import Settings
from ansible_collections.cluster.compute.plugins.plugin_utils._playbook_runs import Ended, Interruption

TASKS = Path(__file__).resolve().parents[4] / "roles/session/tasks"
DISK, DOCKER = "disk of the head full", "docker"
STRANGER = "id1 alice alice.train.main1 running"


@dataclass
class World:
    """Agents and playbooks that work, but for ``broken``: what fails, by fault."""

    folder: Path
    broken: str = ""
    others: list[str] = field(default_factory=lambda: [STRANGER])
    calls: list[str] = field(default_factory=list)
    sessions: set[str] = field(default_factory=set)

    def play(self, playbook: str, variables: dict[str, Any], interruption: Interruption | None = None) -> Ended:
        name = str(variables.get("session_name", ""))
        self.calls.append(playbook)
        if interruption:
            hit = self.broken != "no phase"
            text = (
                "" if self.broken == "silent" else f"Session {name} may be left: terminate.yml -e session_name={name}."
            )
            return Ended(-2, text, 0.5, hit)
        return getattr(self, playbook)(name, variables) if playbook != "provision_agents" else Ended(0, "", 1.0)

    def cluster_session(self, name: str, variables: dict[str, Any]) -> Ended:
        if variables.get("agent_schedulable") is False:
            return Ended(0, f"Session {name}: PENDING: no agent can hold it: agent1 is not schedulable", 1.0)
        wrong = {"session_bootstrap", "session_port_range"} & set(variables) or "no-such" in str(
            variables.get("session_image")
        )
        if wrong and self.broken != "never refused":
            return Ended(2, "phase 1.0 s\nThat is refused.", 1.0)
        self.sessions.add(name)
        (self.folder / name).mkdir(parents=True, exist_ok=True)
        containers = [{"hostname": host, "agent": "agent1"} for host in ("main1", "sub1")]
        session = {"id": SESSION, "name": name, "owner": "drill", "user": {"name": "work"}}
        document = {"session": session, "containers": containers, "apps": [{"port": 30000}]}
        (self.folder / name / "session.json").write_text(json.dumps(document))
        return Ended(0, f"Session {name}: RUNNING (cluster session)", 2.0)

    def session_exec(self, name: str, _variables: dict[str, Any]) -> Ended:
        is_lost = not (self.folder / name).exists()
        return Ended(1 if is_lost or self.broken == "no answer" else 0, "sub1 does not answer.", 1.0)

    def terminate(self, name: str, _variables: dict[str, Any]) -> Ended:
        if self.broken != "left on the controller" and (self.folder / name).exists():
            (self.folder / name / "session.json").unlink()
            (self.folder / name).rmdir()
        self.sessions.discard(name)
        return Ended(0, f"Session {name}: TERMINATED", 1.5)

    def docker(self, hosts: str, *commands: str) -> dict[str, str]:
        self.calls.append(commands[0])
        if "{{" in commands[0]:
            return {"agent1": "\n".join(self.others)}
        return {"agent1": "abc" if self.broken == "left on an agent" and len(commands) == 3 else ""}

    def root(self, host: str, script: str) -> None:
        self.calls.append(f"root {host}: {script}")

    def message(self, ended: Ended) -> str:
        return ended.text.splitlines()[-1] if ended.text else ""


def drill(world: World, *names: str, **more: Any) -> Any:
    given = {
        "agents": ["agent1"],
        "head": "agent1",
        "owner": "drill-1",
        "folder": str(world.folder),
        **more,
    }
    return Drill(world, Settings(faults=faults.chosen(names), **given))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "artifacts")


def test_all_harmless_faults_pass_where_everything_works(world: World) -> None:
    result = drill(world).run()
    verdicts = {one["fault"]: one["verdict"] for one in result["outcomes"]}
    needy = {fault.name for fault in faults.FAULTS if fault.needs}
    assert {name for name, verdict in verdicts.items() if verdict == "not run"} == needy
    assert {verdicts[name] for name in set(verdicts) - needy} == {"ok"}
    assert (result["passed"], result["others"]) == (True, {"count": 1, "changed": []})
    assert result["times"]["repair"]["count"] > 10
    assert (
        result["message"]
        == f"{len(verdicts) - len(needy)} of {len(verdicts) - len(needy)} faults passed, {len(needy)} not run."
    )
    assert not any(call.startswith("root agent1: kill") for call in world.calls)


@pytest.mark.parametrize(
    ("broken", "fault", "message"),
    [
        ("no answer", "sub killed", "does not answer after the repair"),
        ("left on an agent", "sub killed", "is left: abc on agent1."),
        ("left on the controller", "image gone", ""),
        ("left on the controller", "sub removed", "is left: "),
        ("no phase", "launch killed after the start", "ended before its phase 'Starting'"),
        ("silent", "launch terminated after the containers", "does not say how to end the session"),
        ("never refused", "image gone", "succeeded, although it should fail"),
    ],
)
def test_what_a_fault_reveals_is_its_verdict(broken: str, fault: str, message: str, world: World) -> None:
    world.broken = broken
    result = drill(world, fault).run()
    (outcome,) = result["outcomes"]
    assert (outcome["verdict"] == "failed", result["passed"]) == (bool(message), not message)
    assert message in outcome["message"]
    assert world.calls.count("terminate") >= bool(message)


def test_a_container_of_others_that_changes_is_named(world: World) -> None:
    made = drill(world, "no room")
    before = made._others
    made._others = lambda: {} if world.others.clear() else before()  # type: ignore[method-assign]
    assert made.run()["passed"]
    world.others.append(STRANGER)
    made._others = before
    run = made._outcome
    made._outcome = lambda fault: (world.others.clear(), run(fault))[1]
    result = made.run()
    assert (result["passed"], result["others"]) == (False, {"count": 1, "changed": ["alice.train.main1 on agent1"]})
    assert result["message"].endswith("containers of others changed meanwhile: alice.train.main1 on agent1.")


@pytest.mark.parametrize(
    ("fault", "more", "is_run"),
    [
        ("engine killed under a session", {}, False),
        ("engine killed under a session", {"disruptive": True}, True),
        ("host cut off during the launch", {"disruptive": True}, False),
        ("agent cut off from the controller", {"agents": ["agent1", "agent2"]}, False),
        ("agent cut off from the controller", {"agents": ["agent1", "agent2"], "remote": True}, True),
        (DISK, {"disruptive": True}, False),
        (DISK, {"full_folder": "/small"}, True),
    ],
)
def test_faults_that_need_more_run_only_with_it(fault: str, more: dict[str, Any], is_run: bool, world: World) -> None:
    (outcome,) = drill(world, fault, **more).run()["outcomes"]
    assert (outcome["verdict"] != "not run") == is_run


@pytest.mark.parametrize(("given", "cpus"), [((), 0.1), (("session_cpus",), None)])
def test_variables_of_the_command_line_replace_the_small_ones(
    given: tuple[str, ...], cpus: float | None, world: World
) -> None:
    seen = []
    play = world.play
    world.play = lambda *arguments: (seen.append(arguments[1]), play(*arguments))[1]  # type: ignore[method-assign]
    assert drill(world, "sub killed", given=given).run()["passed"]
    assert {variables.get("session_cpus") for variables in seen} == {cpus}
    assert {variables["session_owner"] for variables in seen} == {"drill-1"}


def test_every_fault_has_an_action_and_a_name_of_its_own() -> None:
    names = [fault.name for fault in faults.FAULTS]
    assert len(set(names)) == len(names) >= 25
    assert all(callable(getattr(Drill, fault.action)) for fault in faults.FAULTS)
    with pytest.raises(InputError, match="drill_faults: 'earthquake': must be a fault of the drill: sub killed, "):
        faults.chosen(["earthquake"])


@pytest.mark.parametrize("phases", [faults.LAUNCHING, faults.ENDING])
def test_a_fault_strikes_after_a_phase_that_the_conductor_shows(phases: dict[str, str]) -> None:
    """A phase that is never shown is never at its end."""
    shown = [phase.message for key, phase in PHASES.items() if key not in SILENT]
    assert [phase for phase in phases.values() if not any(one.startswith(phase) for one in shown)] == []


def test_the_table() -> None:
    outcomes = [faults.Outcome("sub killed", "ok", "RUNNING.", 12.34), faults.Outcome(DISK, "not run", "why")]
    times = faults.Times()
    times.add("launch", 2.0)
    assert faults.report(outcomes, times.to_json(), {"count": 2, "changed": []}) == [
        "VERDICT  FAULT                  SECONDS  WHAT THE USER READS",
        "ok       sub killed             12.3     RUNNING.",
        "not run  disk of the head full  -        why",
        "",
        "launch    1 times, p50   2.00 s, p95   2.00 s",
        "repair    0 times, p50   0.00 s, p95   0.00 s",
        "end       0 times, p50   0.00 s, p95   0.00 s",
        "Containers of other sessions: 2, all unchanged.",
        "1 of 1 faults passed, 1 not run.",
    ]


def test_scripts_are_quoted() -> None:
    assert quoted("a 'b'") == "'a '\\''b'\\'''"
    assert os.popen("sh -c " + quoted("echo 'x y'")).read() == "x y\n"


def test_examples() -> None:
    assert doctest.testmod(faults).failed == 0
