# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors are sentences that a user can read, whatever was given."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.container_view import (
    ContainerView,
    limit_reached,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import (
    EngineError,
    InputError,
    LibraryError,
    escape_control,
    visible_lines,
)


def test_an_error_of_input_names_variable_value_and_rule() -> None:
    error = InputError("session_cpus", "many", "must be a number")
    assert (error.message, error.where) == ("session_cpus: 'many': must be a number.", "session_cpus")


def test_a_name_that_the_user_chose_is_shortened_like_a_value() -> None:
    error = InputError("session_presets." + "1" * 5000, "2" * 5000, "must be a dictionary")
    assert error.message == "session_presets.%s…: '%s…: must be a dictionary." % ("1" * 103, "2" * 78)


def test_a_missing_library_names_the_python_and_the_command() -> None:
    message = LibraryError("docker").message
    assert message.startswith(
        f"The Python {sys.executable} lacks the library docker; run {sys.executable} -m pip install docker, or "
    )


def test_a_container_without_its_secrets_says_so() -> None:
    container = ContainerView("sub1", "node1", "exited", exit_code=82)
    text = "sub1 on node1 ended: no secrets came after its start; run cluster_session.yml again to repair the session"
    assert container.end == text
    assert limit_reached([replace(container, hostname="main1")]) == ""


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("gr\xf6\xdfe \u5bb9\u5668", "gr\xf6\xdfe \u5bb9\u5668"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[1;1H", r"\x1b[2J\x1b[1;1H"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x9b2J", r"\x9b2J"),
        ("50 %\r100 %\r\n", "50 %\n100 %\n"),
        ("a\x00b\x08c", r"a\x00b\x08c"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("lone \ud800", r"lone \ud800"),
    ],
)
def test_control_characters_are_visible(written: str, shown: str) -> None:
    assert escape_control(written) == shown


def test_an_error_shows_them() -> None:
    assert EngineError("sub1: its last lines: \x1b]52;c;x\x07.").message == r"sub1: its last lines: \x1b]52;c;x\x07."
    assert str(InputError("a", ["\x9b"], "must be b")) == r"a: ['\x9b']: must be b."


def test_lines_of_a_program_and_bytes_that_are_no_text() -> None:
    assert visible_lines(b"one\r\ntwo\n10 %\r20 %\n\xff\nend") == ["one", "two", "10 %", "20 %", r"\xff", "end"]
    assert visible_lines(b"") == []
    assert visible_lines(b"\n") == [""]
