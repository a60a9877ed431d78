# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The trace of a launch: what each action notes, the document of the viewers, and the sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible import constants
from samples import plan, request

from ansible_collections.cluster.compute.plugins.plugin_utils._hosts import trace

PLAN = plan(request(cluster_size=3), "aab")


def entry(uuid: str, host: str, begun: float, ended: float, action: str, *steps: trace.StepTime) -> trace.Entry:
    return trace.Entry(uuid, f"Task {uuid}", action, host, begun, ended, steps=steps)


STARTED = trace.StepTime("containers.started", 103.0, 1.5, ((0.5, 0.25, "start it", "sub1"),))
LAUNCH = [
    entry("1", "a", 100.0, 100.5, "place"),
    entry("2", "a", 101.0, 103.0, "start", STARTED),
    entry("2", "b", 101.0, 104.0, "start"),
    entry("3", trace.CONTROLLER, 104.0, 106.0, "verify"),
]


@pytest.fixture(autouse=True)
def temporary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(constants, "DEFAULT_LOCAL_TMP", str(tmp_path))


def test_notes_are_kept_until_they_are_forgotten(tmp_path: Path) -> None:
    assert trace.notes() == []
    for one in LAUNCH:
        trace.note(one)
    [file] = tmp_path.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    with file.open("a") as cut_off:
        cut_off.write('{"uuid": ')
    assert trace.notes() == LAUNCH
    trace.forget()
    assert trace.notes() == []


def test_a_trace_that_cannot_be_written_disturbs_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(constants, "DEFAULT_LOCAL_TMP", str(tmp_path / "absent"))
    trace.note(LAUNCH[0])
    trace.forget()
    assert trace.notes() == []


def test_the_document_has_a_row_for_each_container_of_each_host() -> None:
    events = trace.trace_document(LAUNCH)["traceEvents"]
    names = {(one["pid"], one.get("tid")): one["args"]["name"] for one in events if one["ph"] == "M"}
    assert [name for (_pid, tid), name in names.items() if tid is None] == ["playbook", "a", "b", "controller"]
    shown = [one for one in events if one["ph"] == "X"]
    assert min(one["ts"] for one in shown) == 0
    [call] = [one for one in shown if one["cat"] == "engine"]
    # The module ended with its task at 103.0 and took 1.5 s; its request came 0.5 s later.
    assert (call["name"], call["ts"], call["dur"]) == ("start it", 2000000, 250000)
    assert names[call["pid"], call["tid"]] == "sub1"
    phases = [(one["ts"], one["dur"]) for one in shown if one["cat"] == "phase"]
    assert phases == [(0, 500000), (1000000, 3000000), (4000000, 2000000)]


def test_the_sentence_names_the_longest_steps_and_their_slowest_host() -> None:
    assert trace.explanation(LAUNCH, PLAN) == (
        "6.0 s: 3.0 s starting 1 container on b, 2.0 s verifying SSH to 3 containers, 0.5 s placing the session on a, "
        "0.5 s outside of these tasks."
    )


def test_many_steps_are_summed_up() -> None:
    steps = [entry(str(number), "a", number, number + 1.0, "other") for number in range(7)]
    assert trace.explanation(steps, PLAN).endswith(
        """1.0 s in "Task 4", 2.0 s in 2 other tasks, 0.0 s outside of these tasks."""
    )


def test_nothing_is_explained_without_tasks() -> None:
    assert trace.explanation([], PLAN) == ""
    assert trace.trace_document([]) == {"displayTimeUnit": "ms", "traceEvents": []}
