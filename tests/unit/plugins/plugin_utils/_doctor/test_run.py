# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of a check, and what it makes of agents that do not answer, by what the hosts of a play answer."""

from __future__ import annotations

import doctest
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure
from check_samples import NAMES, overlay, probes, report, swarm
from conducted import conducted, options_of

from ansible_collections.cluster.compute.plugins.action import agent_check_info
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.examination import Probe
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.findings import Checkup, Requirements
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError
from ansible_collections.cluster.compute.plugins.plugin_utils._doctor import run as check
from ansible_collections.cluster.compute.plugins.plugin_utils._doctor.run import check_agents
from ansible_collections.cluster.compute.plugins.plugin_utils._settings.settings import Settings

LOST = AnsibleConnectionFailure("no route\n to host")


def examined(number: int, **changes: Any) -> Json:
    return {"report": report(number, **{"time": time.time(), **changes}).to_json()}


class World:
    """Agents that answer without a fault, except for what ``broken`` has for a step and an agent."""

    def __init__(self, *names: str, broken: dict[tuple[str, str], Any] | None = None, **options: Any) -> None:
        self.names = names or NAMES
        self.broken = broken or {}
        self.members: list[str] = []
        self.mbits: dict[str, dict[str, float]] = {name: {} for name in self.names}
        self.play = conducted({"doctor": self.answer}, *self.names, **options)

    def answer(self, host: str, params: Json) -> Any:
        verb = params["verb"]
        if (verb, host) in self.broken:
            return self.broken[verb, host]
        if verb == "examine":
            return examined(self.names.index(host) + 1)
        if verb == "create_network":
            self.members = [member["name"] for member in params["plan"]["members"]]
        if verb == "measure":
            self.mbits[host][params["peer"]] = 940.0
        found = probes(*self.names)[host]
        parts = {
            "listen": Probe(listened=True),
            "send": replace(found, listened=False, received=None),
            "hear": Probe(received=found.received),
            "test_network": Probe(overlay=overlay(host, *self.members)),
            "leave_network": Probe(overlay=overlay(host, *self.members, mbits=self.mbits[host])),
        }
        return parts.get(verb, Probe()).to_json()

    def check(self, seconds: float = 2.0) -> Checkup:
        return check_agents(self.play, Requirements(head=self.play.head), seconds)

    def steps(self) -> list[str]:
        """The steps in order, each once with its hosts."""
        found: list[str] = []
        for host, step, _params in self.play.asked:
            verb = step.removeprefix("doctor.")
            if found and found[-1].startswith(verb + " "):
                found[-1] += f" {host}"
            else:
                found.append(f"{verb} {host}")
        return found


def bad(result: Checkup) -> list[tuple[str, str, str]]:
    return [(one.status, one.check, one.where) for one in result.findings if one.status != "ok"]


def test_all_agents_finish_a_step_before_the_next_one_begins() -> None:
    world = World()
    result = world.check()
    everyone = "agent1 agent2 agent3"
    assert world.steps() == [
        f"examine {everyone}",
        f"listen {everyone}",
        f"send {everyone}",
        f"hear {everyone}",
        "create_network agent1",
        f"join_network {everyone}",
        f"test_network {everyone}",
        f"measure {everyone}",
        f"leave_network {everyone}",
        "remove_network agent1",
    ]
    assert bad(result) == []
    assert [one["peer"] for one in options_of(world.play, "doctor.measure")] == ["agent2", "agent3", "agent1"]
    rates = {(one.sender, one.receiver): one.mbits for one in result.overlay}
    assert len(rates) == 6
    assert {pair for pair, rate in rates.items() if rate} == {("agent1", "agent2"), ("agent2", "agent3"), ("agent3", "agent1")}  # fmt: skip


def test_the_agents_of_a_check_have_the_same_mark_and_another_check_has_another() -> None:
    first, second = World(), World()
    first.check()
    second.check()
    marks = [{params["mark"] for _host, _step, params in one.play.asked if "mark" in params} for one in (first, second)]
    assert [len(one) for one in marks] == [1, 1]
    assert marks[0] != marks[1]


def test_an_agent_alone_is_only_examined() -> None:
    world = World("agent1")
    assert not world.check().failed
    assert world.steps() == ["examine agent1"]
    assert options_of(world.play, "doctor.examine")[0]["several"] is False


def test_without_seconds_no_throughput_is_measured() -> None:
    world = World()
    result = world.check(0)
    assert not [step for step in world.steps() if step.startswith("measure")]
    assert "throughput" not in {one.check for one in result.findings}


def test_a_lost_agent_is_a_finding_and_the_others_are_checked() -> None:
    world = World(broken={("examine", "agent2"): LOST})
    result = world.check()
    found = {one.where: one.found for one in result.findings if one.check == "reachable"}
    assert found["agent2"] == "no route to host"
    assert list(result.unfit) == ["agent2"]
    assert [step for step in world.steps() if "agent2" in step] == ["examine agent1 agent2 agent3"]
    assert options_of(world.play, "doctor.measure")[0]["peer"] == "agent3"


def test_an_agent_sends_to_the_reachable_agents() -> None:
    member = swarm(1, data_path_port=7789)
    first = examined(1, mtu=1450, swarm=member)
    world = World(broken={("examine", "agent1"): first, ("examine", "agent2"): LOST})
    world.check(0)
    sent = options_of(world.play, "doctor.send")
    assert [one["port"] for one in sent] == [7789, 7789]
    assert sent[0]["agents"] == [
        {"name": "agent1", "address": "192.0.2.1", "mtu": 1450, "member": True},
        {"name": "agent3", "address": "192.0.2.3", "mtu": 1500, "member": True},
    ]


@pytest.mark.parametrize("step", ["listen", "send"])
def test_an_agent_that_cannot_listen_or_send_says_why(step: str) -> None:
    result = World(broken={(step, "agent2"): {"failed": True, "msg": "No space."}}).check()
    assert ("warn", "ports", "agent2") in bad(result)
    assert "No space." in [one.found for one in result.findings]


LEFT = ["leave_network agent1 agent2 agent3", "remove_network agent1"]


@pytest.mark.parametrize(
    ("step", "line"),
    [
        ("join_network", ("fail", "overlay", "agent2")),
        ("test_network", None),
        ("leave_network", ("fail", "overlay", "agent2")),
    ],
)
def test_an_agent_that_is_lost_in_the_overlay_network_is_left_out(step: str, line: tuple[str, str, str] | None) -> None:
    world = World(broken={(step, "agent2"): LOST})
    result = world.check()
    assert bad(result) == ([line] if line else [])
    assert world.steps()[-2:] == LEFT
    asked = options_of(world.play, "doctor.measure")
    assert [one["peer"] for one in asked] == (["agent2", "agent3", "agent1"] if step == "leave_network" else ["agent3", "agent1"])  # fmt: skip


def test_a_link_whose_agent_is_lost_during_the_measurement_is_not_measured() -> None:
    result = World(broken={("measure", "agent2"): LOST}).check()
    assert bad(result) == [("warn", "throughput", "agent2 -> agent3")]
    assert "not measured" in [one.found for one in result.findings]


def test_a_network_that_cannot_be_created_is_a_finding_and_is_removed() -> None:
    world = World(broken={("create_network", "agent1"): {"failed": True, "msg": "rpc error"}})
    result = world.check()
    assert bad(result) == [("fail", "overlay", "all")]
    assert world.steps()[-2:] == ["create_network agent1", "remove_network agent1"]


def test_a_network_that_stays_is_a_warning() -> None:
    world = World(broken={("remove_network", "agent1"): {"failed": True, "msg": "It has endpoints."}})
    world.check()
    assert world.play.warnings == ["The overlay network of the check stays on agent1 until the next check: It has endpoints."]  # fmt: skip


@pytest.mark.parametrize(("step", "ends"), [("send", "hear agent1 agent2 agent3"), ("join_network", LEFT[1])])
def test_what_was_started_is_removed_after_a_bug(step: str, ends: str) -> None:
    world = World(broken={(step, "agent1"): RuntimeError("a bug")})
    with pytest.raises(RuntimeError):
        world.check()
    assert world.steps()[-1] == ends


@pytest.mark.parametrize(
    ("step", "answer", "where"),
    [
        ("examine", {"report": {"name": "agent2", "reachable": True, "reason": ""}}, "agent2"),
        ("examine", {"report": report(1).to_json()}, "agent2"),
        ("examine", {}, "agent2"),
        ("hear", {"received": "everything"}, "agent2"),
        ("leave_network", {"overlay": {"measured": 1}}, "agent2"),
    ],
)
def test_an_answer_that_is_none_is_refused(step: str, answer: Json, where: str) -> None:
    result = World(broken={(step, "agent2"): answer}).check()
    refused = [one.where for one in result.findings if "of agent2 is refused" in one.found]
    assert refused == [where]


def test_clocks_that_differ_are_found() -> None:
    late = examined(2, time=time.time() + 3600)
    assert ("fail", "clock", "agent2") in bad(World(broken={("examine", "agent2"): late}).check())


def test_an_agent_is_asked_for_its_addresses() -> None:
    inventory = {"agent1": {"agent_swarm_address": "192.0.2.1", "ansible_host": "host1"}}
    world = World(inventory=inventory)
    world.check()
    asked = options_of(world.play, "doctor.examine")
    assert [one["addresses"] for one in asked] == [["192.0.2.1", "host1"], ["agent2"], ["agent3"]]


OPTIONS = {"seconds": 0.0, "pools": ["10.201.0.0/16"], "encrypted": False, "artifacts": None}


def conduct(world: World, **options: Any) -> Json:
    task = SimpleNamespace(check_mode=False, diff=False, args={}, async_val=0, delegate_to=None)
    action = agent_check_info.ActionModule(task, None, None, None, None, None)  # type: ignore[arg-type]
    return action.conduct(world.play, {**OPTIONS, **options})


@pytest.mark.parametrize("is_check_mode", [False, True])
def test_the_result_is_kept_except_in_check_mode(is_check_mode: bool, tmp_path: Any) -> None:
    world = World(check=is_check_mode)
    conduct(world, artifacts=str(tmp_path))
    assert (tmp_path / ".last_check.json").exists() != is_check_mode
    assert "hear agent1 agent2 agent3" in world.steps()


@pytest.mark.parametrize("name", ["findings.json", ""])
def test_a_file_that_is_written_is_a_change(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(check_file=name and str(tmp_path / name))
    monkeypatch.setattr(agent_check_info, "checked_settings", lambda *_arguments: settings)
    result = conduct(World(check=True), artifacts=str(tmp_path))
    assert (result["changed"], list(tmp_path.iterdir())) == (bool(name), [])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seconds": 61.0}, r"^seconds \(agent_check_seconds\): 61.0: must be a number of seconds from 0 to 60"),
        ({"pools": ["everything"]}, "^session_network_pool: 'everything': must be a private IPv4 network"),
    ],
)
def test_a_wrong_option_is_refused_before_a_host_is_asked(options: Json, message: str) -> None:
    world = World()
    with pytest.raises(InputError, match=message):
        conduct(world, **options)
    assert world.play.asked == []


def test_examples() -> None:
    assert doctest.testmod(check).failed == 0


def test_an_engine_under_two_names_is_not_tested_with_itself() -> None:
    one_engine = {("examine", name): examined(number, identity="1") for number, name in enumerate(NAMES[:2], 1)}
    world = World(*NAMES[:2], broken=one_engine)
    result = world.check()
    assert world.steps() == ["examine agent1 agent2"]
    assert bad(result)[0] == ("fail", "names", "agent2")
    assert [one.check for one in result.findings if one.where == "agent2"] == ["names"]
