# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The end of sessions, on a scripted play."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from conducted import changes_of, conducted, options_of, reports_of

from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.decision import DecidedSession
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import StateError
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.conductor import StepError
from ansible_collections.cluster.compute.plugins.plugin_utils._session.terminate import (
    remove,
    terminate,
    terminate_matching,
)

ROW = {
    "id": "3614fdf3-0e04-4a4b-9d5c-1f7c0a8e6b11",
    "name": "train",
    "owner": "alice",
    "state": "TERMINATING",
    "reason": "x",
}
OLD, NEW = (f"{number:08}-0000-4000-8000-000000000000" for number in range(2))
FAILED = {"failed": True, "msg": "b: the engine does not answer.", "failure": {"code": "engine"}}


def ending(**changes: Any) -> Any:
    def state(_host: str, args: Json) -> Json:
        row = ROW if args["state"] == "terminating" else {**ROW, "state": "TERMINATED"}
        return {
            "changed": True,
            "session": row,
            "remove": [OLD, NEW],
            "ended": [{**ROW, "id": NEW}],
            "waiting": 2,
            "grace": 30,
        }

    def containers(host: str, _args: Json) -> Json:
        return {"changed": True, "logs": [{"hostname": "main1", "state": "exited", "text": host}], "left_networks": []}

    script = {
        "report.collect": lambda host, _args: {"agent": {"name": host, "reachable": host != "c"}},
        "session.record": state,
        "containers": containers,
        "network": {"changed": True},
        **changes,
    }
    return conducted(script, "a", "b", "c")


def test_an_end_removes_everything_where_agents_answer_and_keeps_the_logs() -> None:
    play = ending()
    assert terminate(play, "train").summary == "Session train: TERMINATED (x)"
    assert [host for host, name, _args in play.asked if name == "containers.absent"] == ["a", "b"]
    assert options_of(play, "containers.absent")[0]["sessions"] == [ROW["id"], OLD, NEW]
    assert options_of(play, "containers.absent")[0]["over"] == [OLD], "programs of another may not know of their end"
    assert options_of(play, "containers.absent")[0]["grace"] == {NEW: 10, ROW["id"]: 30}
    recorded = changes_of(play)[1]
    assert (recorded["state"], recorded["reached"], len(recorded["logs"])) == ("terminated", ["a", "b"], 2)
    assert play.waiting == 2


def test_an_agent_that_keeps_its_part_is_named_and_not_counted_as_reached() -> None:
    play = ending(containers=lambda host, _args: FAILED if host == "b" else {"changed": True})
    with pytest.raises(StepError, match=r"^b: the engine does not answer\.$"):
        terminate(play, "train")
    assert changes_of(play)[1]["reached"] == ["a"]


def test_an_agent_that_removes_only_a_part_has_its_logs_kept() -> None:
    left = {"failure": {"code": "state", "message": "b: main1 does not end.", "where": "b"}}
    logs = {"changed": True, "logs": [{"hostname": "main1", "state": "running", "text": "x"}]}
    play = ending(containers=lambda host, _args: {**logs, **left} if host == "b" else {"changed": True})
    with pytest.raises(StepError, match=r"^b: main1 does not end\.$"):
        terminate(play, "train")
    assert (changes_of(play)[1]["reached"], changes_of(play)[1]["logs"][0]["logs"][0]["text"]) == (["a"], "x")


def test_leftovers_of_other_sessions_that_stay_are_no_failure() -> None:
    nothing = {"changed": False, "session": {}, "remove": [OLD], "waiting": 0}
    play = ending(**{"session.record": nothing, "containers": FAILED})
    assert terminate(play, "gone").summary == "There is no live session gone: nothing to end."
    play.check = True
    assert terminate(play, "gone").changed is True, "in check mode, their removal is a change"


def test_the_logs_of_a_session_that_has_ended_by_itself_are_kept_before_it_is_removed() -> None:
    """By the command that records its end. Those of a session that ended before are kept already."""
    own = DecidedSession.from_json({**ROW, "state": "TERMINATED"})
    script = {"logs.read": {"logs": [{"hostname": "main1", "name": "x", "state": "exited", "text": "done"}]}}
    play = ending(**script)
    held = [{"id": "1", "session": ROW["id"]}, {"id": "2", "session": "old"}]
    agents = [{"name": "a", "reachable": True, "containers": held}, {"name": "b", "reachable": True, "containers": []}]
    remove(play, reports_of(agents), ["old", ROW["id"]], [own, replace(own, id=NEW)])
    names = [(host, name) for host, name, _args in play.asked]
    assert names[:2] == [("a", "logs.read"), ("a", "session.record")]
    [kept] = changes_of(play)
    assert (kept["state"], kept["id"], kept["logs"][0]["logs"][0]["text"]) == ("terminated", ROW["id"], "done")


@pytest.mark.parametrize(("held", "patience"), [([], 3), ([{"id": "one", "session": "old"}], 30)])
def test_a_command_does_not_wait_again_for_networks_that_an_earlier_one_has_left(
    held: list[Json], patience: int
) -> None:
    play = conducted({"containers": {"left_networks": ["n"]}, "network": {}}, "a")
    remove(play, reports_of([{"name": "a", "reachable": True, "containers": held}]), ["old"])
    assert options_of(play, "network.absent")[0]["deadline"] == patience


@pytest.mark.parametrize("many", [True, False])
def test_several_sessions_end_only_if_that_is_meant(many: bool) -> None:
    names = [{**ROW, "name": name} for name in ("sweep-1", "sweep-2", "other")]
    play = ending(**{"sessions.list_all": {"sessions": names}})
    if not many:
        with pytest.raises(StateError, match="sweep-1, sweep-2"):
            terminate_matching(play, "sweep-*", many=False)
    else:
        assert len(terminate_matching(play, "sweep-*", many=True)) == 2
    begun = [one for one in changes_of(play) if one["state"] == "terminating"]
    assert [one["name"] for one in begun] == (["sweep-1", "sweep-2"] if many else [])


def reported(play: Any) -> str:
    return "".join(host for host, name, _args in play.asked if name == "report.collect")


@pytest.mark.parametrize(("agents", "asked"), [("abc", "bc"), ("axb", "b")])
def test_the_end_of_many_sessions_asks_the_agents_once_and_then_those_of_the_play_that_hold_them(
    agents: str, asked: str
) -> None:
    names = [{**ROW, "name": f"sweep-{agent}", "agents": [agent]} for agent in agents]
    play = ending(**{"sessions.list_all": {"sessions": names}, "containers": {"changed": False}})
    assert len(terminate_matching(play, "sweep-*", many=True)) == 3
    assert reported(play) == "abc" + asked


def test_an_agent_that_has_seen_the_network_of_an_ended_session_is_asked_again() -> None:
    names = [{**ROW, "name": "sweep-1"}, {**ROW, "name": "sweep-2"}]
    answers = [{"changed": False, "left_networks": ["n"]}, *[{"changed": False}] * 5]
    play = ending(**{"sessions.list_all": {"sessions": names}, "containers": lambda _host, _args: answers.pop(0)})
    terminate_matching(play, "sweep-*", many=True)
    assert reported(play) == "abc" + "a"
