# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is prepared before a launch, and which agents a launch avoids, on a scripted play."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure
from conducted import conducted
from samples import decision, plan, request

from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request import Request
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.conductor import StepError
from ansible_collections.cluster.compute.plugins.plugin_utils._session import session
from ansible_collections.cluster.compute.plugins.plugin_utils._session.launch_spec import Launch, LaunchSpec
from ansible_collections.cluster.compute.plugins.plugin_utils._session.session import launch_session, terminate_session
from ansible_collections.cluster.compute.plugins.plugin_utils._settings.agent_checks import AgentChecks
from ansible_collections.cluster.compute.plugins.plugin_utils._settings.settings import Settings
from ansible_collections.cluster.compute.plugins.plugin_utils._variables.request_variables import LaunchVariables

# What a host reports: it lacks the image of an environment, has it, is no agent yet, or has no connection.
IMAGE = "cluster-compute/lab:1.0"
ENGINE: Json = {"reachable": True, "runtime": {"present": True}}
REPORTS: dict[str, Json] = {
    "a": {**ENGINE, "image": {"reference": IMAGE, "present": False}},
    "b": {**ENGINE, "image": {"reference": IMAGE, "present": False}},
    "c": {**ENGINE, "image": {"reference": IMAGE, "present": True}},
    "l": {"reachable": False},
}


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The agents that each launch avoids."""
    found: list[Any] = []
    placed = Launch(LaunchSpec(request()), decision("pending"))

    def launch(_play: Any, asked: Any, _reports: Any) -> Any:
        found.append(dict(asked.unfit))
        return SimpleNamespace(placed=placed, changed=True, note_in=lambda reports: reports.note_use("b"))

    monkeypatch.setattr(session, "launch", launch)
    return found


def _answer(host: str) -> Any:
    return AnsibleConnectionFailure("timed out") if host == "s" else {"agent": {"name": host, **REPORTS[host]}}


PROVISIONS = Settings(provision=True)


def presented(
    monkeypatch: pytest.MonkeyPatch,
    hosts: str,
    settings: Settings,
    checks: AgentChecks | None = None,
    *,
    prepares: bool = True,
    check: bool = False,
) -> tuple[Json, list[str]]:
    """The result of a launch by these hosts, and the lines that it shows."""
    asked = LaunchVariables(settings, [request(image=IMAGE)], {}, None)
    monkeypatch.setattr(session, "launch_variables", lambda *_arguments: asked)
    play = conducted({"report.collect": lambda host, _args: _answer(host)}, *hosts, check=check)
    result = launch_session(play, prepares=prepares, checks=checks or AgentChecks())
    return result, play.said + play.lines


@pytest.mark.parametrize(
    ("hosts", "environment", "provision"),
    [
        ("a", "lab", ""),
        ("ab", "lab", ""),
        ("ac", "", ""),
        ("c", "", ""),
        ("al", "lab", "l"),
        ("cl", "", "l"),
        ("l", "lab", "l"),
    ],
)
def test_hosts_become_agents_and_an_image_is_built_that_no_agent_has(
    hosts: str, environment: str, provision: str, monkeypatch: pytest.MonkeyPatch, launched: list[Any]
) -> None:
    result, _said = presented(monkeypatch, hosts, PROVISIONS)
    is_unprepared = bool(environment or provision)
    assert (result["unprepared"], launched) == (is_unprepared, [] if is_unprepared else [{}])
    assert (result.get("environment", ""), result.get("provision", [])) == (environment, list(provision))


@pytest.mark.parametrize("settings", [Settings(), Settings(preflight=True)])
def test_nothing_is_prepared_that_the_user_does_not_want(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, launched: list[Any]
) -> None:
    result, _said = presented(monkeypatch, "al", settings)
    assert result["unprepared"] is settings.preflight
    assert (result.get("provision") or [], result.get("environment") or "") == ([], "")


@pytest.mark.parametrize(("hosts", "is_planned"), [("l", False), ("al", True)])
def test_check_mode_shows_no_plan_before_a_host_is_an_agent(
    hosts: str, is_planned: bool, monkeypatch: pytest.MonkeyPatch, launched: list[Any]
) -> None:
    result, shown = presented(monkeypatch, hosts, PROVISIONS, check=True)
    line = "Not an agent yet: l. The launch sets this up first; only then is there a plan to show."
    assert (result["changed"], result["unprepared"], launched) == (True, False, [{}] if is_planned else [])
    assert shown == ([] if is_planned else [line])


@pytest.mark.parametrize(("hosts", "settings"), [("l", Settings()), ("s", PROVISIONS)])
def test_check_mode_leaves_hosts_that_no_launch_makes_agents_to_the_placement(
    hosts: str, settings: Settings, monkeypatch: pytest.MonkeyPatch, launched: list[Any]
) -> None:
    presented(monkeypatch, hosts, settings, check=True)
    assert launched == [{}]


THREE = [request(image=IMAGE, name=name) for name in ("train-1", "train-2", "train-3")]


def play_of(monkeypatch: pytest.MonkeyPatch, requests: list[Request], **how: Any) -> Any:
    """A play of three agents whose variables ask for these sessions."""
    found = LaunchVariables(Settings(), requests, {}, None)
    monkeypatch.setattr(session, "launch_variables", lambda *_arguments: found)
    return conducted({"report.collect": lambda host, _args: {"agent": {"name": host, **REPORTS[host]}}}, *"abc", **how)


def test_the_next_session_asks_only_the_agents_again_that_the_last_one_has_changed(
    monkeypatch: pytest.MonkeyPatch, launched: list[Any]
) -> None:
    play = play_of(monkeypatch, THREE[:2])
    launch_session(play, prepares=False, checks=AgentChecks())
    assert (len(launched), [host for host, _name, _args in play.asked]) == (2, [*"abc", "b"])


@pytest.mark.parametrize(("check", "before"), [(True, [0, 1, 2]), (False, [0, 0, 0])])
def test_check_mode_counts_the_sessions_before(check: bool, before: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """What a launch places is in the store. Check mode records nothing, so the head gets the requests before."""
    asked: list[Any] = []
    placed = Launch(LaunchSpec(request()), decision("pending"))

    def launch(_play: Any, one: Any, _reports: Any) -> Any:
        asked.append(list(one.before))
        return SimpleNamespace(placed=placed, changed=True, note_in=lambda _reports: None)

    monkeypatch.setattr(session, "launch", launch)
    launch_session(play_of(monkeypatch, THREE, check=check), prepares=False, checks=AgentChecks())
    assert asked == [THREE[:number] for number in before]


@pytest.mark.parametrize(("age", "when"), [("", ""), ("12 min", " (checked 12 min ago)")])
def test_each_agent_that_a_launch_avoids_has_a_line(
    age: str, when: str, monkeypatch: pytest.MonkeyPatch, launched: list[Any]
) -> None:
    checks = AgentChecks({"b": "no clock", "a": "no Swarm"}, ["c"], age)
    _result, said = presented(monkeypatch, "abc", PROVISIONS, checks, prepares=False)
    assert said[:2] == [f"a is avoided{when}: no Swarm", f"b is avoided{when}: no clock"]
    assert said[2].startswith("c: the rules are missing that keep containers from sending frames into overlay networks")
    assert launched == [checks.unfit]


def test_a_launch_fails_if_no_agent_passes_the_check(monkeypatch: pytest.MonkeyPatch, launched: list[Any]) -> None:
    with pytest.raises(ComputeError, match=r"^No agent passes the check: no clock; check_agents\.yml shows all"):
        presented(monkeypatch, "ab", PROVISIONS, AgentChecks({"b": "no clock", "a": "no Swarm"}), prepares=False)
    assert launched == []


def test_the_difference_says_where_each_value_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither values of secrets nor variables with their default are shown, and no value or origin starts a line."""
    asked = request(
        cluster_size=2,
        cpus=0.5,
        memory="2g",
        lifetime=3600,
        command="one\ntwo",
        secrets=[{"name": "key", "value": "s3cret"}],
    )
    planned = plan(asked)
    placed = Launch(LaunchSpec(asked), decision("placed", planned), planned)
    launched = SimpleNamespace(placed=placed, changed=True, note_in=lambda _reports: None)
    monkeypatch.setattr(session, "launch", lambda *_arguments: launched)
    names = ("session_cpus", "session_memory", "session_command", "session_secrets", "session_shm")
    origins = {**dict.fromkeys(names, "command line"), "session_memory": "/srv/a\nb.yml"}
    play = conducted({"report.collect": {"agent": {"name": "a", **ENGINE}}}, "a", check=True, diff=True)
    found = LaunchVariables(Settings(), [asked], origins, None)
    monkeypatch.setattr(session, "launch_variables", lambda *_arguments: found)
    variables, shown = launch_session(play, prepares=False, checks=AgentChecks())["diff"]
    assert variables["after"].splitlines() == [
        'session_command: "one\\ntwo"    # command line',
        "session_cpus: 0.5    # command line",
        'session_memory: "2g"    # /srv/a\\nb.yml',
        'session_secrets: [{"name": "key"}]    # command line',
    ]
    assert (shown["after_header"], "s3cret" in str(variables)) == ("plan", False)
    read = shown["after"]
    assert (read["containers"]["sub1"]["environment"]["RANK"], read["environment"]["MASTER_ADDR"]) == ("1", "main1")
    assert "MASTER_ADDR" not in read["containers"]["sub1"]["environment"], "what all containers share is there once"
    assert "labels" not in str(read)
    assert (read["session"]["lifetime"], "idle_timeout" in read["session"]) == (3600, False)


def test_an_end_that_an_agent_prevents_is_not_called_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "checked_settings", lambda *_arguments: Settings())
    row = {"id": "3614fdf3-0e04-4a4b-9d5c-1f7c0a8e6b11", "name": "train", "state": "TERMINATING", "reason": "x"}
    script = {
        "report.collect": {"agent": {"name": "a", **ENGINE}},
        "session.record": {"changed": True, "session": row, "remove": [], "waiting": 2, "grace": 10},
        "containers": {"failed": True, "msg": "a: the engine does not answer.", "failure": {"code": "engine"}},
    }
    play = conducted(script, "a", session_name="train")
    with pytest.raises(StepError, match=r"^a: the engine does not answer\.$"):
        terminate_session(play)
    assert (play.waiting, [line for line in play.lines if "complete" in line]) == (2, [])
