# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a container, its image, its engine or a driver answers: text of any kind is read without an error, and shown visibly."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from hostile import Choices, assert_one_message, assert_visible, changed_bytes, changed_parts, fuzzed

from ansible_collections.cluster.compute.plugins.module_utils._agent.devices import parse_gpu_use, parse_list
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.apps import parse_status, parse_statuses
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.batch import parse_exit
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.images import PullCount
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.streams import CutError, last, unframed
from ansible_collections.cluster.compute.plugins.module_utils._agent.measuring import parse_stats, use
from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh.app_files import _with_new_serial, parse_index
from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh.config_files import (
    included_config,
    known_hosts,
    login_environment,
    sshd_config,
)
from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh.container_files import (
    merged_group,
    merged_passwd,
    merged_shadow,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents import validation
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.container_view import BatchStatus
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Container, Resources, User
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.step_documents import ContainerLog, Logs
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError, visible_lines
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.batch_result import BatchWait
from ansible_collections.cluster.compute.plugins.plugin_utils._client.log_follower import FollowedLogs
from ansible_collections.cluster.compute.plugins.plugin_utils._client.shell import Output
from ansible_collections.cluster.compute.plugins.plugin_utils._client.ssh import _answer

MAIN = Container("", "", "main1", "main", 1, 0, 0, "a", "10.0.0.2", Resources())
PASSWD = "root:x:0:0:root:/root:/bin/sh\nbob:x:1000:1000::/home/bob:/bin/sh\nsshd:x:101:65534::/run/sshd:/bin/false\n"
GROUP = "root:x:0:\nvideo:x:44:bob,alice\nrender::\n"
LOG = "2026-01-01T00:00:00.000000001Z epoch 1\n2026-01-01T00:00:00.100000000Z 10%\r20%\n"
STATS: dict[str, Any] = {
    "read": "2026-11-21T17:36:50.123456789Z",
    "cpu_stats": {"cpu_usage": {"total_usage": 5}},
    "memory_stats": {"usage": 9, "stats": {"inactive_file": 3, "total_inactive_file": 3}},
}
STATUS: dict[str, Any] = {
    "exit_code": None,
    "oom_killed": False,
    "reason": "",
    "begun": True,
    "dead": [{"hostname": "main1", "agent": "a", "state": "exited", "exit_code": 1, "oom_killed": False}],
}
PULL: dict[str, Any] = {"id": "4f4f", "status": "Downloading", "progressDetail": {"current": 20, "total": 90}}


def written(text: str, choices: Choices) -> bytes:
    return changed_bytes(text.encode(), choices)


@fuzzed(3000)
def test_what_pid_1_writes_is_read(choices: Choices) -> None:
    content = written(
        choices.of(("lab ready\nweb failed 3\n", "failed 127\n", "137 oom\n", "lab 8888 /api 0f\nend\n")), choices
    )
    for status in (*parse_statuses(content), parse_status("lab", content[:64])):
        json.dumps(status.to_json()).encode()
        assert_visible(status.to_json())
    ended = parse_exit(content[:64])
    assert ended.exit_code in range(1000)
    lines = parse_index(content.decode("ascii", "replace"))
    for line in lines.values():
        assert _with_new_serial(line).split()[:-1] == line.split()[:-1]


@fuzzed(2500)
def test_the_accounts_of_an_image_are_completed(choices: Choices) -> None:
    """Its accounts may have any lines. Those of the session are there, each once."""
    passwd = written(PASSWD, choices).decode("utf-8", "surrogateescape")
    group = written(GROUP, choices).decode("utf-8", "surrogateescape")
    user = User()
    lines = merged_passwd(passwd, user, "/bin/sh").split("\n")
    assert [line for line in lines if line.startswith("work:")] == ["work:x:1000:1000::/home/work:/bin/sh"]
    assert lines[0].startswith("root:")
    assert [line for line in lines if line.startswith("sshd:")]
    groups = merged_group(group, user, [44, 105]).split("\n")
    assert len([line for line in groups if line.startswith("work:")]) == 1
    assert sum("work" in line.split(":")[-1].split(",") for line in groups) >= 2
    merged_shadow(passwd, user)
    included_config(passwd)
    assert known_hosts(passwd, "@cert-authority x").split("\n")[0] == "@cert-authority x"


@fuzzed(1500)
def test_the_environment_of_a_container_is_one_line_of_sshd_for_each_variable(choices: Choices) -> None:
    entries = [written(text, choices).decode("utf-8", "replace") for text in ("PATH=/bin", 'A=it\'s \\ "x"', "B")]
    given = login_environment(entries, MAIN)
    text = sshd_config(given, "work", 10)
    assert "\r" not in text
    assert "\0" not in text
    keywords = {line.split()[0] for line in text.split("\n") if line.strip() and not line.startswith("#")}
    assert keywords == {
        line.split()[0]
        for line in sshd_config({"A": "1"}, "work", 10).split("\n")
        if line.strip() and not line.startswith("#")
    }


@fuzzed(1500)
def test_what_a_session_prints_is_shown_visibly(choices: Choices) -> None:
    content = written(LOG, choices)
    assert_visible(visible_lines(content))
    followed = FollowedLogs("uuid", [], 10)
    answer = ContainerLog("main1", "running", content.decode("utf-8", "replace"))
    for _time in range(2):
        assert_visible(followed.unseen("a", [answer]))
        followed.query("a")
    output = Output("mark", 64)
    for at in range(0, len(content), 7):
        output.add(content[at : at + 7])
    assert_visible([output.complaint])
    assert len(output.content) <= 64


@fuzzed(700)
def test_an_agent_that_answers_with_other_logs_is_refused(choices: Choices) -> None:
    answer = changed_parts({"logs": [{"hostname": "main1", "state": "running", "text": LOG}]}, choices)
    try:
        logs = validation.answer(Logs)(answer, "a").logs
    except ComputeError as error:
        assert_one_message(error.message)
        return
    followed = FollowedLogs("uuid", [], 10)
    assert_visible(followed.unseen("a", logs))
    assert all(isinstance(log.state, str) for log in logs)
    followed.query("a")


@fuzzed(700)
def test_an_agent_that_answers_otherwise_about_a_command_is_refused(choices: Choices) -> None:
    answer = changed_parts(STATUS, choices)
    try:
        status = validation.arrived(BatchStatus, answer, "answer", "a")
    except ComputeError as error:
        assert_one_message(error.message)
        return
    other = BatchStatus.from_json(STATUS)
    found = BatchWait().after_round({"a": status, "b": other}, choices.of(("keep", "terminate")))
    assert isinstance(found.result.reason, str)
    assert isinstance(found.warning, str)


@fuzzed(2300)
def test_a_stream_of_an_engine_has_an_end(choices: Choices) -> None:
    frames = b"\1\0\0\0\0\0\0\5hello\2\0\0\0\0\0\0\3err"
    content = changed_bytes(frames, choices)
    read = 0
    with suppress(CutError):
        for piece in unframed([content[:9], content[9:]]):
            read += len(piece)
    assert read <= len(content)
    assert len(last([content] * 5, 64)) <= 64 + len(content) + 60
    word, name, reason = _answer(content.decode("utf-8", "replace"), "\1\0")
    assert all(isinstance(text, str) for text in (word, name, reason))


@fuzzed(1500)
def test_what_an_engine_and_a_driver_measure_is_a_number_or_nothing(choices: Choices) -> None:
    """The engine of an agent answers in its own forms. The output of a driver's program may have any text."""
    text = written(
        choices.of(
            ("GPU-1, 37, 1024, 2048\nGPU-2, [N/A], 1, 2\n", "GPU 0: A100 (UUID: GPU-1)\n  MIG 1g.5gb (UUID: MIG-1)\n")
        ),
        choices,
    )
    for device in parse_gpu_use(text.decode("utf-8", "replace")):
        assert all(
            value is None or isinstance(value, int) for value in (device.percent, device.memory, device.capacity)
        )
    assert all(isinstance(uuid, str) for uuid in parse_list(text.decode("utf-8", "replace")))
    reading = parse_stats(STATS)
    assert reading is not None
    assert use(reading, reading).memory == 6
    count = PullCount()
    count.add(PULL)
    assert count.text() == "20 90"
