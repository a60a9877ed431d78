# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drill against playbooks that behave as a table says: verdicts, times, and what is not run."""

from __future__ import annotations

import doctest
import json
import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import drill as program
import drill_actions
import drill_commands
import drill_faults as faults
import drill_steps
import pytest
from drill_actions import Drill
from drill_steps import Settings
from playbook_runs import Ended, Interruption

from ansible_collections.cluster.compute.plugins.module_utils._shared import label
from ansible_collections.cluster.compute.plugins.plugin_utils._client import session_dir
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.phases import PHASES, SILENT

DISK, DOCKER = "disk of the head full", "docker"
STRANGER = "id1 alice alice.train.main1 running"


@dataclass
class World:
    """Agents and playbooks that work, but for ``broken``: what fails, by fault."""

    folder: Path
    broken: str = ""
    agent: str = "agent1"
    others: list[str] = field(default_factory=lambda: [STRANGER])
    calls: list[str] = field(default_factory=list)
    sessions: set[str] = field(default_factory=set)

    def play(
        self, playbook: str, variables: Mapping[str, Any], interruption: Interruption | None = None, cut_off: str = ""
    ) -> Ended:
        name = str(variables.get("session_name", ""))
        self.calls.append(playbook)
        if interruption:
            hit = self.broken != "no phase"
            text = (
                "" if self.broken == "silent" else f"Session {name} may be left: terminate.yml -e session_name={name}."
            )
            return Ended(-2, text, 0.5, hit)
        return getattr(self, playbook)(name, variables) if playbook != "provision_agents" else Ended(0, "", 1.0)

    def cluster_session(self, name: str, variables: Mapping[str, Any]) -> Ended:
        if variables.get("agent_schedulable") is False:
            return Ended(0, f"Session {name}: PENDING: no agent can hold it: agent1 is not schedulable", 1.0)
        wrong = {"session_bootstrap", "session_port_range"} & set(variables) or "no-such" in str(
            variables.get("session_image")
        )
        if wrong and self.broken != "never refused":
            return Ended(2, "phase 1.0 s\nThat is refused.", 1.0)
        self.sessions.add(name)
        (self.folder / name).mkdir(parents=True, exist_ok=True)
        hosts = ["main1", "sub1", "sub2"][
            : 2 if self.broken == "no growth" else variables.get("session_cluster_size", 2)
        ]
        containers = [{"hostname": host, "agent": self.agent} for host in hosts]
        document = {"containers": containers, "apps": [{"port": 30000}]}
        (self.folder / name / "session.json").write_text(json.dumps(document))
        return Ended(0, f"Session {name}: RUNNING (cluster session)", 2.0)

    def schedule(self, _name: str, _variables: Mapping[str, Any]) -> Ended:
        did = "all containers restarted"
        if any("-STOP" in call for call in self.calls):
            did = f"main1, sub1 made again on agent1 in place of {self.agent}"
            for name in () if self.broken == "not moved" else self.sessions:
                path = self.folder / name / "session.json"
                path.write_text(path.read_text().replace(self.agent, "agent1"))
        restarted = [] if self.broken == "no restart" else [f"Session {name}: RUNNING, {did}" for name in self.sessions]
        return Ended(0, "\n".join(restarted), 1.0)

    def session_exec(self, name: str, _variables: Mapping[str, Any]) -> Ended:
        is_lost = not (self.folder / name).exists()
        return Ended(1 if is_lost or self.broken == "no answer" else 0, "sub1 does not answer.", 1.0)

    def terminate(self, name: str, _variables: Mapping[str, Any]) -> Ended:
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


def made(world: World, *names: str, **more: Any) -> Any:
    given = {
        "agents": ["agent1"],
        "head": "agent1",
        "owner": "drill-1",
        "directory": str(world.folder),
        **more,
    }
    return Drill(world, Settings(faults=faults.chosen(names), **given))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "artifacts")


def test_all_harmless_faults_pass_where_everything_works(world: World) -> None:
    result = made(world).run()
    verdicts = {one["fault"]: one["verdict"] for one in result["outcomes"]}
    needy = {fault.name for fault in faults.FAULTS if fault.needs}
    assert {name for name, verdict in verdicts.items() if verdict == "not run"} == needy
    assert {verdicts[name] for name in set(verdicts) - needy} == {"ok"}
    assert (result["passed"], result["others"]) == (True, {"count": 1, "changed": []})
    assert result["times"]["repair"]["count"] > 10
    assert (
        result["lines"][-1]
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
        ("no growth", "growth killed after the start", "has not another size"),
        ("no growth", "shrink killed after the removal", "has not another size"),
        ("no restart", "sub killed, all restart", "A pass did not restart drill-sub-killed--all-restart"),
        ("never refused", "image gone", "succeeded, although it should fail"),
    ],
)
def test_what_a_fault_reveals_is_its_verdict(broken: str, fault: str, message: str, world: World) -> None:
    world.broken = broken
    result = made(world, fault).run()
    (outcome,) = result["outcomes"]
    assert (outcome["verdict"] == "failed", result["passed"]) == (bool(message), not message)
    assert message in outcome["message"]
    assert world.calls.count("terminate") >= bool(message)


def test_a_container_of_others_that_changes_is_named(world: World) -> None:
    drill = made(world, "no room")
    before = drill._others
    drill._others = lambda: {} if world.others.clear() else before()  # type: ignore[method-assign]
    assert drill.run()["passed"]
    world.others.append(STRANGER)
    drill._others = before
    run = drill._outcome
    drill._outcome = lambda fault: (world.others.clear(), run(fault))[1]
    result = drill.run()
    assert (result["passed"], result["others"]) == (False, {"count": 1, "changed": ["alice.train.main1 on agent1"]})
    assert result["lines"][-1].endswith("containers of others changed meanwhile: alice.train.main1 on agent1.")


@pytest.mark.parametrize(
    ("fault", "more", "is_run"),
    [
        ("engine killed under a session", {}, False),
        ("engine killed under a session", {"disruptive": True}, True),
        ("host cut off during the launch", {"disruptive": True}, False),
        ("agent cut off from the controller", {"agents": ["agent1", "agent2"]}, False),
        ("agent cut off from the controller", {"agents": ["agent1", "agent2"], "remote": True}, True),
        (DISK, {"disruptive": True}, False),
        (DISK, {"full_directory": "/small"}, True),
    ],
)
def test_faults_that_need_more_run_only_with_it(fault: str, more: dict[str, Any], is_run: bool, world: World) -> None:
    (outcome,) = made(world, fault, **more).run()["outcomes"]
    assert (outcome["verdict"] != "not run") == is_run


@pytest.mark.parametrize("broken", ["", "no restart", "not moved"])
def test_a_host_that_is_lost_comes_back_and_its_session_has_moved(
    broken: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(0, 100000, 10))
    waited: list[float] = []
    monkeypatch.setattr(drill_actions, "time", SimpleNamespace(monotonic=lambda: next(clock), sleep=waited.append))
    world.agent, world.broken = "agent2", broken
    hosts = {"agents": ["agent1", "agent2"], "head": "agent1", "remote": True, "disruptive": True}
    (outcome,) = made(world, "host lost", **hosts).run()["outcomes"]
    assert (outcome["verdict"], "in place of agent2" in outcome["message"]) == (
        ("failed", False) if broken else ("ok", True)
    )
    [lost] = [call for call in world.calls if "-STOP" in call]
    assert lost.startswith("root agent2: nohup sh -c ")
    assert lost.index("-STOP") < lost.index("sleep 180") < lost.index("-CONT") < lost.index("iptables -D")
    assert waited[0] == drill_actions.LOST_AFTER


def test_the_sessions_of_a_drill_have_an_owner_of_their_own(world: World) -> None:
    seen = []
    play = world.play
    world.play = lambda *arguments: (seen.append(arguments[1]), play(*arguments))[1]  # type: ignore[method-assign]
    assert made(world, "sub killed").run()["passed"]
    assert {variables["session_owner"] for variables in seen} == {"drill-1"}


@pytest.mark.parametrize("agent", ["agent9", "-v", "all"])
def test_no_command_runs_on_a_host_that_is_no_agent_of_the_inventory(agent: str, world: World) -> None:
    world.agent = agent
    (outcome,) = made(world, "sub killed").run()["outcomes"]
    assert (outcome["verdict"], "that the drill does not know" in outcome["message"]) == ("failed", True)
    assert not any(call.startswith("kill") for call in world.calls)


def test_a_session_is_ended_when_its_user_stops_the_drill(world: World) -> None:
    drill = made(world, "sub killed")
    drill._must_answer = lambda _name: (_ for _ in ()).throw(KeyboardInterrupt)  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        drill.run()
    assert (world.sessions, world.calls[-1]) == (set(), "terminate")


def test_every_fault_has_an_action_and_a_name_of_its_own() -> None:
    names = [fault.name for fault in faults.FAULTS]
    assert len(set(names)) == len(names) >= 25
    assert all(callable(getattr(Drill, fault.action)) for fault in faults.FAULTS)
    with pytest.raises(faults.DrillError, match="--fault: 'earthquake': must be a fault of the drill: sub killed, "):
        faults.chosen(["earthquake"])


@pytest.mark.parametrize("phases", [faults.LAUNCHING, faults.SHRINKING, faults.ENDING])
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


def test_names_are_those_of_the_collection() -> None:
    assert drill_steps.LABEL_SESSION == label.SESSION
    assert drill_actions.IDENTITY == session_dir.IDENTITY


RECORDS = """#!/bin/sh
for word; do case $word in --extra-vars=@*) echo "${word##*/} $(cat "${word#--extra-vars=@}")";; *) echo "$word";; esac; done
"""
ANSWERS = {
    "ansible-inventory": """#!/bin/sh
echo '{"agents": {"children": ["gpus"]}, "gpus": {"hosts": ["n1", "n2"]}, "head": {"hosts": ["n2"]}, "_meta": {"hostvars": {}}}'
""",
    "ansible-config": """#!/bin/sh
echo '[{"name": "DEFAULT_HOST_LIST", "value": ["/etc/hosts.ini"]}, {"SERVERS": {}}]'
""",
    "ansible-playbook": RECORDS,
    "ansible": """#!/bin/sh
printf 'n1 | CHANGED | rc=0 >>\\nabc\\nn2 | %s >>\\n\\n' "$STATE"
""",
}


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of Ansible that answer, and show what they get."""
    for name, text in ANSWERS.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(drill_commands, "_program", lambda name: str(tmp_path / name))


def commands(tmp_path: Path, *words: str) -> drill_commands.CommandLines:
    asked, rest = program.parsed(list(words))
    found = program.options(asked, program.OF_INVENTORY), program.options(asked, program.OF_CONNECTIONS)
    return drill_commands.CommandLines(str(tmp_path), 60, *found, rest)


@pytest.mark.usefixtures("programs")
def test_options_are_passed_on_and_variables_of_a_fault_win(tmp_path: Path) -> None:
    runs = commands(
        tmp_path, "-i", "mine.ini", "--forks", "3", "-e", "session_cpus=2", "-u", "root", "--fault", "no room"
    )
    assert runs.hosts() == (["n1", "n2"], "n2", True)
    runs.defaults = {"session_cpus": 0.1}
    words = runs.play("terminate", {"session_name": "a"}).text.splitlines()
    assert words[0].endswith("/playbooks/terminate.yml")
    assert Path(words[0]).is_file()
    assert words[1:] == [
        *("--forks", "3", 'defaults.json {"session_cpus": 0.1}', "--inventory=mine.ini"),
        *("--extra-vars=session_cpus=2", "--user=root", 'variables.json {"session_name": "a"}'),
    ]


@pytest.mark.usefixtures("programs")
def test_an_agent_that_is_cut_off_is_in_the_configured_inventory(tmp_path: Path) -> None:
    words = commands(tmp_path).play("terminate", {}, cut_off="n2").text.splitlines()
    assert words[2:4] == ["--inventory=/etc/hosts.ini", f"--inventory={tmp_path}/cut_off.json"]
    assert json.loads((tmp_path / "cut_off.json").read_text())["agents"]["hosts"] == {"n2": {"ansible_port": 9}}


@pytest.mark.usefixtures("programs")
def test_each_host_has_its_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATE", "CHANGED | rc=0")
    assert commands(tmp_path).docker("agents", "ps") == {"n1": "abc", "n2": ""}
    monkeypatch.setenv("STATE", "FAILED | rc=1")
    with pytest.raises(faults.DrillError, match="n2: the command 'ps' failed: "):
        commands(tmp_path).docker("agents", "ps")


@pytest.mark.parametrize("words", [["-k"], ["--playbook-timeout", "0"], ["--fault"]])
def test_wrong_options_are_refused(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        program.parsed(words)
    assert ended.value.code == 2


def test_the_exit_code_says_whether_all_passed(
    tmp_path: Path, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "drill.json"
    assert program.shown(made(world, "sub killed").run(), str(path)) == 0
    assert json.loads(path.read_text())["passed"] is True
    world.broken = "no answer"
    assert program.shown(made(world, "sub killed").run(), "") == 2
    assert program.main(["--fault", "earthquake"]) == 2
    capsys.readouterr()
    assert program.main(["--list", "--fault", "no room", "--fault", "image gone"]) == 0
    assert capsys.readouterr().out == "no room\nimage gone\n"


@pytest.mark.parametrize("module", [faults, drill_commands])
def test_examples(module: Any) -> None:
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_drill_as_ctrl_c_does(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGHUP)}
    # What would end these tests without a handler; with nohup, SIGHUP would be ignored.
    signal.signal(number, lambda *_: pytest.fail("the drill has no handler"))
    monkeypatch.setattr(program, "drilled", lambda *_: signal.raise_signal(number))
    try:
        assert program.main([]) == 130
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
    assert "interrupted" in capsys.readouterr().err


@pytest.mark.parametrize("containers", ["", "0f1e2d3c"])
def test_a_fault_that_waits_for_containers_gives_up(containers: str, tmp_path: Path) -> None:
    """Otherwise it would strike a later drill, and use a processor until then."""
    (tmp_path / "docker").write_text(f"#!/bin/sh\necho {containers} | grep .\n")
    (tmp_path / "docker").chmod(0o755)
    script = drill_actions.CREATED.replace(f"timeout {drill_actions.CREATED_SECONDS} ", "timeout 1 ") % "drill-x"
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-c", script + "touch struck"], cwd=tmp_path, env=environment, check=False, timeout=60)
    assert (tmp_path / "struck").exists() == bool(containers)
