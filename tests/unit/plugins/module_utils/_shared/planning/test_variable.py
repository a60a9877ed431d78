# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Answers of a form: lines of text in place of lists and dictionaries."""

from __future__ import annotations

from typing import Any

import pytest
from samples import exactly, request

from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.variable import from_text

PUBLIC = {"name": "jupyterlab", "public": True}


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("session_apps", 'terminal\r\n\n{"name": "jupyterlab", "public": true}', ["terminal", PUBLIC]),
        ("session_apps", "", []),
        ("session_apps", [PUBLIC], [PUBLIC]),
        ("session_mounts", " /data:/data:ro \n/out:/out\n", ["/data:/data:ro", "/out:/out"]),
        ("session_environment", "A= 1\nB=", {"A": " 1", "B": ""}),
        ("session_environment", {"A": "1"}, {"A": "1"}),
        ("session_command", "a\nb", "a\nb"),
    ],
)
def test_each_line_is_an_entry(variable: str, value: Any, expected: Any) -> None:
    assert from_text(variable, value) == expected


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("session_environment", "A=1\nB", "session_environment: 'B': must be NAME=value, one in each line."),
        ("session_apps", "{name: x}", "session_apps: '{name: x}': must be JSON, because it begins with {: .*"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(variable: str, value: str, message: str) -> None:
    with pytest.raises(InputError, match=message if message.endswith("*") else exactly(message)):
        from_text(variable, value)


@pytest.mark.parametrize(
    ("text", "source", "target", "mode"),
    [("/a:/b:ro", "/a", "/b", "ro"), ("/a:/b:rw", "/a", "/b", "rw"), ("cache:/b", "cache", "/b", "rw")],
)
def test_a_data_folder_may_be_written_as_docker_writes_it(text: str, source: str, target: str, mode: str) -> None:
    [mount] = request(mounts=[text]).mounts
    assert (mount.source, mount.target, mount.mode) == (source, target, mode)


@pytest.mark.parametrize("text", ["/a", "/a:/b:z", "nas:/export:/data", "/a:b"])
def test_a_data_folder_that_is_written_in_another_way_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="session_mounts: "):
        request(mounts=[text])
