# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The status of apps, from a file in which root of a container may have written anything."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.apps import Apps, parse_statuses


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe failed 3\n",
        b"web failed 1000\n",
        b"web failed -3\n",
        b"web exploded\n",
        b"web  failed 3\n",
        b"web failed 3 and more\n",
        b"../web failed 3\n",
        b"WEB failed 3\n",
        b"web\tfailed 3\n",
        b"w" * 64 + b" failed 3\n",
        b"\x1b[2Jweb failed 3\n",
        "wéb failed ٣\n".encode(),
    ],
)
def test_a_line_that_is_no_status_is_left_out(content: bytes) -> None:
    assert parse_statuses(content) == []


def test_no_app_counts_twice_and_no_file_gives_many() -> None:
    lines = b"".join(b"app-%d failed 3\n" % number for number in range(1000))
    assert len(parse_statuses(lines + lines)) == 100


def test_the_last_lines_of_a_long_log_are_its_end() -> None:
    """PID 1 lets the log of an app grow to 5 MiB."""

    class Engine:
        def members(self, _session: str) -> dict[str, Any]:
            return {"c1": {"Id": "1", "State": "running"}}

        def read_file(self, _identity: str, _path: str, _subject: str, most: int) -> bytes:
            return (b"epoch 1\n" * (5 << 17) + b"CUDA out of memory\n")[:most]

    assert Apps(Engine(), "s1", "agent1", "c1").last_lines("lab")[-1] == "CUDA out of memory"  # type: ignore[arg-type]
