# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a batch command ended, from a file that root of the container may have written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.batch import UNREADABLE, parse_exit
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.client import Engine, UnreachableError
from ansible_collections.cluster.compute.plugins.module_utils._agent.report import with_batch
from ansible_collections.cluster.compute.plugins.module_utils._shared import label
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.container_view import BatchStatus
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import (
    BatchState,
    ObservedContainer,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import EngineError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.batch_result import (
    BatchResult,
    batch_result,
)


class Refusing(Engine):
    """An engine that reads no file."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def read_file(self, *_arguments: object, **_options: object) -> bytes | None:
        raise self.error


ENTRY = ObservedContainer("c1", "c1", engine_id="e1", hostname="main1", labels={label.BATCH: "true"})


def test_a_file_that_cannot_be_read_hides_nothing_of_its_agent() -> None:
    """Root of a container can replace the file by a loop of links; the state of the command is then unknown."""
    assert with_batch(Refusing(EngineError("too many links")), ENTRY).batch == BatchState(reason="too many links")
    with pytest.raises(UnreachableError):
        with_batch(Refusing(UnreachableError("gone")), ENTRY)
    assert with_batch(Refusing(EngineError("unasked")), replace(ENTRY, labels={label.BATCH: ""})).batch is None


@pytest.mark.parametrize(
    ("text", "code", "memory"),
    [(None, None, False), (b"0\n", 0, False), (b"3\n", 3, False), (b"137 oom\n", 137, True), (b"1 oom\n", 1, True)],
)
def test_what_pid_1_writes(text: bytes | None, code: int | None, memory: bool) -> None:
    assert parse_exit(text) == BatchState(code, memory)


@pytest.mark.parametrize(
    "text", [b"", b"\n", b"x\n", b"-1\n", b"1e9\n", b"0", b"0 0\n", b"\xff\xfe\n", b"0\n" + b"9" * 62, "٣\n".encode()]
)
def test_what_is_no_exit_code_is_a_failure(text: bytes) -> None:
    ended = parse_exit(text)
    assert ended.exit_code == UNREADABLE
    reason = "the command has ended, but the file with the exit code does not hold a number"
    assert batch_result([BatchStatus(**vars(ended))], "keep") == BatchResult("FAILURE", reason)
