# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.cluster.compute.plugins.plugin_utils._client.log_follower import MOST, WIDEST, GrowingLog


def written(*numbers: int, text: str = "line") -> str:
    return "".join("2026-01-01T00:00:%02d.%09dZ %s %d\n" % (number // 1000, number, text, number) for number in numbers)


def test_lines_are_shown_once_though_an_answer_repeats_the_last_second() -> None:
    log = GrowingLog()
    assert log.query("s", "main1").since == 0
    assert log.unseen("main1", written(1, 2)) == ["main1: line 1", "main1: line 2"]
    assert log.query("s", "main1").since == 1767225600
    assert log.unseen("main1", written(1, 2, 1003)) == ["main1: line 1003"]
    assert log.unseen("main1", "") == []


def test_a_flood_is_bounded_and_says_so() -> None:
    lines = GrowingLog().unseen("main1", written(*range(MOST)))
    assert lines[0] == "main1: (earlier lines are left out; session_logs.yml shows them)"
    assert len(lines) == MOST + 1
    [line] = GrowingLog().unseen("main1", written(1, text="x" * 100_000))
    assert len(line) < WIDEST + 100
    assert line.endswith("(98002 characters more)")


def test_what_is_no_line_of_an_engine_is_not_shown() -> None:
    assert GrowingLog().unseen("main1", "(its log cannot be read: gone)\nZZZZ x\n\x1b[2J\n") == []


def test_a_line_that_returns_to_its_beginning_keeps_the_name_of_its_container() -> None:
    text = "2026-01-01T00:00:00.000000001Z 10 %\r20 %\rsub1: not from sub1\r\n"
    assert GrowingLog().unseen("main1", text) == ["main1: 10 %", "main1: 20 %", "main1: sub1: not from sub1"]


def test_a_time_that_does_not_exist_is_none() -> None:
    log = GrowingLog("9999-99-99T99:99:99.000000000Z")
    assert log.since == 0
