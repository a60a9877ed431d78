# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The logs of the containers of a session on one engine."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from samples import plan, request

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.logs import LogRequest, death, read_logs
from ansible_collections.cluster.compute.plugins.module_utils._shared import label
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ConflictError


def test_the_order_of_logs_does_not_follow_ranks_that_a_resize_has_made_stale() -> None:
    """The workers were made beside one ps, and ps2 and ps3 after them."""
    asked = request(roles=[{"name": "ps", "size": 3}, {"name": "worker", "size": 2}])
    stale = {"worker1": "2", "worker2": "3", "ps2": "2", "ps3": "3"}

    def listed(container: Any) -> dict[str, Any]:
        rank = {label.RANK: stale.get(container.hostname, str(container.rank))}
        labels, names = {**container.labels, **rank}, ["/" + container.name]
        return {"Id": container.hostname, "Names": names, "State": "running", "Labels": labels}

    everyone = [listed(one) for one in reversed(plan(asked).containers)]
    engine: Any = SimpleNamespace(containers=lambda session: everyone, logs=lambda *_arguments: "x\n")
    found = [one.hostname for one in read_logs(engine, LogRequest("session"))]
    assert found == ["main1", "ps1", "ps2", "ps3", "worker1", "worker2"]


def test_a_container_that_hangs_is_not_asked_for_its_log() -> None:
    (main,) = plan(request(), ["a"]).containers
    hung = {"Id": "hung", "Names": ["/" + main.name], "State": "running", "Labels": dict(main.labels)}
    engine: Any = SimpleNamespace(containers=lambda session: [hung], logs=None)
    (found,) = read_logs(engine, LogRequest("session"), {"hung"})
    assert found.text == "(its log cannot be read: the container hangs)\n"


def test_a_container_that_the_engine_is_removing_does_not_hide_the_logs_of_others() -> None:
    """An engine answers 409 for its log. The end of a session reads the logs first, so it would never remove such a container."""
    main, sub = plan(request(cluster_size=2), ["a", "a"]).containers

    def listed(container: Any, state: str) -> dict[str, Any]:
        names, labels = ["/" + container.name], dict(container.labels)
        return {"Id": container.hostname, "Names": names, "State": state, "Labels": labels}

    def logs(identity: str, *_options: Any) -> str:
        if identity == "main1":
            raise ConflictError("can not get logs from container which is dead or marked for removal.")
        return "x\n"

    both = [listed(main, "dead"), listed(sub, "running")]
    engine: Any = SimpleNamespace(containers=lambda session: both, logs=logs)
    first, second = (one.text for one in read_logs(engine, LogRequest("session")))
    assert first == "(its log cannot be read: can not get logs from container which is dead or marked for removal)\n"
    assert second == "x\n"


@pytest.mark.parametrize(
    ("log", "errors", "shown"),
    [
        ("1 2 3 4 5", "ls end", "3 | 4 | 5 | ls | end"),
        ("3 4 5 ls failed", "ls failed", "3 | 4 | 5 | ls | failed"),
        ("1 2 3 failed 5", "ls failed", "2 | 3 | failed | 5 | ls"),
        ("1", "", "1"),
        ("", "", "it wrote nothing"),
    ],
)
def test_the_last_errors_of_a_container_are_shown_also_if_the_engine_logged_them_before_other_output(
    log: str, errors: str, shown: str
) -> None:
    """It reads the two streams one beside the other."""
    (main,) = plan(request(), ["a"]).containers
    listed = {"Id": "main1", "Names": ["/" + main.name], "State": "exited", "Labels": dict(main.labels)}

    def logs(_identity: str, tail: int, errors_only: bool = False, **_options: Any) -> str:
        return "\n".join((errors if errors_only else log).split()[-tail:])

    state = {"State": {"Status": "exited", "ExitCode": 1}}
    engine: Any = SimpleNamespace(containers=lambda session: [listed], logs=logs, inspect=lambda *_given: state)
    assert death(engine, main, "main1", "a").message.endswith(f"; its last lines: {shown}.")
    [found] = read_logs(engine, LogRequest("session", ended=True))
    assert " | ".join(found.text.split()) == (shown if log else "")


ARRIVED = "cluster-compute: the files of the session have arrived\n"
CHECKED = "cluster-compute: the data folders are those that were checked\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (ARRIVED, ""),
        (CHECKED + ARRIVED + "epoch 1\n", "epoch 1\n"),
        (ARRIVED + "\n" + ARRIVED + "epoch 1", "\n" + ARRIVED + "epoch 1"),
        ("epoch 1\n" + ARRIVED + "epoch 2", "epoch 1\nepoch 2"),
        ("epoch 1\n" * 4096 + ARRIVED, "epoch 1\n" * 4096 + ARRIVED),
        ("> " + ARRIVED, "> " + ARRIVED),
        (ARRIVED.rstrip() + " twice\n", ARRIVED.rstrip() + " twice\n"),
        (ARRIVED + "cluster-compute: the bootstrap script failed\n", "cluster-compute: the bootstrap script failed\n"),
    ],
)
@pytest.mark.parametrize("stamp", ["", "2026-11-28T19:00:00.000000001Z "], ids=["plain", "timestamps"])
def test_what_pid_1_confirms_to_a_launch_is_no_part_of_a_log(text: str, shown: str, stamp: str) -> None:
    """It precedes nearly all that programs write. The same words once more are a line of a program."""
    (main,) = plan(request(), ["a"]).containers
    listed = {"Id": "main1", "Names": ["/" + main.name], "State": "running", "Labels": dict(main.labels)}

    def stamped(lines: str) -> str:
        return "".join(stamp + line for line in lines.splitlines(keepends=True))

    engine: Any = SimpleNamespace(containers=lambda session: [listed], logs=lambda *_options: stamped(text))
    (found,) = read_logs(engine, LogRequest("session", timestamps=bool(stamp)))
    assert found.text == stamped(shown)


def test_a_container_that_has_ended_says_nothing_of_what_its_launch_sent() -> None:
    (main,) = plan(request(), ["a"]).containers
    state = {"ExitCode": 3}
    engine: Any = SimpleNamespace(inspect=lambda *_names: {"State": state}, logs=lambda *_lines, **_bounds: ARRIVED)
    assert death(engine, main, "id", "a").message.endswith(
        "exit code 3 right after its start; its last lines: it wrote nothing."
    )
