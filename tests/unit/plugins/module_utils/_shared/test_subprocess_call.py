# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Calls that may never return."""

from __future__ import annotations

import doctest
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._shared import subprocess_call
from ansible_collections.cluster.compute.plugins.module_utils._shared.subprocess_call import (
    SilentError,
    call_with_timeout,
    existing,
)


def never() -> None:
    threading.Event().wait()


def raise_error() -> None:
    raise PermissionError(13, "Permission denied")


def test_examples() -> None:
    assert doctest.testmod(subprocess_call).failed == 0


@pytest.mark.parametrize("value", [None, True, "x" * 100000, {"a": [1, 2]}])
def test_the_value_of_a_call_in_time(value: Any) -> None:
    assert call_with_timeout(lambda: value) == value


def test_an_error_of_the_system_is_the_error_of_the_call() -> None:
    with pytest.raises(PermissionError, match="Permission denied"):
        call_with_timeout(raise_error)


def test_a_call_that_does_not_return_is_left() -> None:
    with pytest.raises(SilentError):
        call_with_timeout(never, 0.1)


def test_a_call_has_no_stream_of_its_parent(tmp_path: Path) -> None:
    """A reader of the parent's output sees its end, also while a call waits."""
    with (tmp_path / "file").open("w") as file:
        inherited = os.dup(file.fileno())
        os.set_inheritable(inherited, True)
        links = call_with_timeout(lambda: [os.readlink(f"/proc/self/fd/{name}") for name in list_open()])
        os.close(inherited)
    assert set(links[:3]) == {"/dev/null"}
    assert not [link for link in links if str(tmp_path) in link]


def list_open() -> list[int]:
    return [number for number in range(256) if os.path.exists(f"/proc/self/fd/{number}")]


def test_a_path_that_only_a_cache_knows_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda path: never() if path == str(tmp_path) else None)
    # The others answer within the same time, also on a busy machine.
    assert existing([str(tmp_path), "/", "/nowhere/at/all"], 5) == {
        str(tmp_path): None,
        "/": True,
        "/nowhere/at/all": False,
    }
