# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The logs of a session, read once from its agents, or followed in rounds over them."""

from __future__ import annotations

import pytest
from conducted import conducted

from ansible_collections.cluster.compute.plugins.action import session_logs_info
from ansible_collections.cluster.compute.plugins.action.session_logs_info import _Rounds, read
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.container_view import ContainerView
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.step_documents import ContainerLog
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.view import SessionView
from ansible_collections.cluster.compute.plugins.plugin_utils._client.log_follower import FollowedLogs
from ansible_collections.cluster.compute.plugins.plugin_utils._settings.settings import Settings

LOST = {"failed": True, "msg": "Connection refused."}


def log(hostname: str, state: str, *seconds: int) -> Json:
    text = "".join(f"2026-01-01T00:00:{second:02}.000000000Z line {second}\n" for second in seconds)
    return {"logs": [{"hostname": hostname, "state": state, "text": text}]}


def rounds(**answers: list[Json]) -> tuple[_Rounds, list[Json]]:
    """Rounds over agents that give these answers in turn, and the questions."""
    asked: list[Json] = []

    def answer(agent: str, query: Json) -> Json:
        asked.append({"agent": agent, **query})
        return answers[agent].pop(0)

    return _Rounds(conducted({"logs.read": answer}, *answers), FollowedLogs("uuid", [], 200), list(answers)), asked


def test_each_line_of_each_agent_is_shown_once_until_all_containers_have_ended() -> None:
    made, asked = rounds(
        a=[log("main1", "running", 1), log("main1", "running", 1, 2), log("main1", "exited", 2, 3)],
        b=[log("sub1", "running", 1), log("sub1", "exited", 1)],
    )
    assert made.unseen() == ["main1: line 1", "sub1: line 1"]
    assert made.unseen() == ["main1: line 2"]
    assert made.answering == ["a"]
    assert made.unseen() == ["main1: line 3"]
    assert made.answering == []
    assert [one["wanted"]["tail"] for one in asked] == [200, 200, 500, 500, 500]
    since = [one["wanted"]["since"] for one in asked]
    assert since[0] == 0 < since[2] < since[4]


def test_an_agent_that_does_not_answer_is_named_once_and_given_up_at_last(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _asked = rounds(a=[LOST, LOST, log("main1", "running", 1), LOST, LOST])
    silence = "(a does not answer: Connection refused)"
    assert [made.unseen() for _round in range(4)] == [[silence], [], ["main1: line 1"], [silence]]
    monkeypatch.setattr(session_logs_info, "PATIENCE", -1.0)
    assert made.unseen() == []
    assert made.answering == []


def test_a_log_that_cannot_be_read_says_why_once() -> None:
    unreadable = {"logs": [{"hostname": "main1", "state": "running", "text": "(its log cannot be read: no driver)\n"}]}
    made, _asked = rounds(a=[unreadable, unreadable])
    assert [made.unseen(), made.unseen()] == [["main1: (its log cannot be read: no driver)"], []]


def container(hostname: str, agent: str, state: str = "running") -> ContainerView:
    return ContainerView(hostname, agent, state)


@pytest.mark.parametrize(
    ("wanted", "lines"),
    [
        (
            [],
            [
                "main1: hello",
                "sub1: bye",
                "(b does not answer: Connection refused)",
                "(sub3 on c is out of reach)",
            ],
        ),
        (["main1"], ["main1: hello"]),
        (["sub3"], ["(sub3 on c is out of reach)"]),
    ],
)
def test_all_logs_are_shown_in_rank_order_and_after_them_what_cannot_be_read(
    wanted: list[str], lines: list[str]
) -> None:
    """The head keeps the log of a container that is gone."""
    answers = {"a": {"logs": [{"hostname": "main1", "state": "running", "text": "first\nhello\n"}]}, "b": LOST}
    lost = [container("sub1", "b", "missing"), container("sub2", "b"), container("sub3", "c", "unknown")]
    containers = (container("main1", "a"), *lost)
    kept = (ContainerLog("sub1", "ended", "bye"),)
    session = SessionView("uuid", "train", "alice", "RUNNING", containers=containers, logs=kept)
    play = conducted({"logs.read": lambda agent, _query: answers[agent]}, "a", "b")
    assert read(play, session, Settings(logs_containers=tuple(wanted), logs_tail=1))["lines"] == lines
