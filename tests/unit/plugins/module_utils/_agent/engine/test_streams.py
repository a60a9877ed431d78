# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers in pieces: read as a file, without their frames, and cut to their last lines."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.streams import (
    LONGEST_ANSWER,
    MIB,
    Answers,
    CutError,
    Pieces,
    last,
    reading,
    unframed,
    until,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.waiting import deadline_in


def endless() -> Iterator[bytes]:
    while True:
        yield b"0123456789"


def frame(text: bytes, stream: int = 1) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(text).to_bytes(4, "big") + text


def test_no_more_is_taken_than_is_read() -> None:
    pieces = Pieces(endless())
    assert pieces.read(3) == b"012"
    assert pieces.read(9) == b"345678901"
    assert pieces.read(0) == b""


def test_the_end_is_shorter() -> None:
    pieces = Pieces([b"ab", b"", b"c"])
    assert [pieces.read(2), pieces.read(2), pieces.read(2)] == [b"ab", b"c", b""]


@pytest.mark.parametrize("size", [1, 3, 100])
def test_frames_however_they_are_cut(size: int) -> None:
    whole = frame(b"one\n") + frame(b"") + frame(b"two\n", 2)
    pieces = [whole[start : start + size] for start in range(0, len(whole), size)]
    assert b"".join(unframed(pieces)) == b"one\ntwo\n"


@pytest.mark.parametrize("rest", [1, 5, 8, 11])
def test_a_stream_that_ends_inside_of_a_frame_is_not_whole(rest: int) -> None:
    with pytest.raises(CutError):
        list(unframed([frame(b"one\n"), frame(b"two\n")[:rest]]))


def test_a_short_log_is_whole() -> None:
    assert last([b"one\n", b"two\n"], 8) == b"one\ntwo\n"
    assert last([], 8) == b""


@pytest.mark.parametrize("piece", [1, 7, 4096, 3 * MIB])
def test_of_a_long_log_the_last_lines_are_kept(piece: int) -> None:
    whole = b"".join(b"line %d\n" % number for number in range(300000))
    pieces = (whole[start : start + piece] for start in range(0, len(whole), piece))
    head, _end, rest = last(pieces, MIB).partition(b"\n")
    assert head == b"(only the last 1 MiB of this log)"
    assert whole.endswith(b"\n" + rest)
    assert MIB - 20 < len(rest) <= MIB


def test_a_line_that_is_too_long_is_cut() -> None:
    assert last([b"x" * MIB, b"y" * MIB], MIB) == b"(only the last 1 MiB of this log)\n" + b"y" * MIB


def test_a_stream_without_an_end_is_read_until_the_deadline() -> None:
    assert last(until(endless(), deadline_in(0.05)), 4096).startswith(b"(only the last 4 KiB of this log)\n")


def test_output_that_arrives_with_the_headers_of_the_answer_is_read() -> None:
    """The SDK has read the headers through a buffer."""
    near, far = socket.socketpair()
    far.sendall(b"HTTP/1.1 101 UPGRADED\r\n\r\n" + frame(b"text"))
    far.close()
    buffered = near.makefile("rb")
    while buffered.readline().strip():
        pass
    answer = SimpleNamespace(_response=SimpleNamespace(raw=SimpleNamespace(_fp=SimpleNamespace(fp=buffered))))
    assert b"".join(unframed(iter(lambda: reading(answer, near)(4096), b""))) == b"text"
    near.close()


def test_an_answer_is_waited_for_and_has_a_longest_size() -> None:
    """Its words may arrive in pieces, and after others."""
    answers = Answers([b"other\n", b"it has ", b"arr", b"ived\n", b"rest"])
    assert answers.has(b"has arrived", deadline_in(60))
    assert not answers.has(b"more", deadline_in(60))
    with pytest.raises(TimeoutError):
        Answers([b"x" * LONGEST_ANSWER, b"y", b"has arrived"]).has(b"has arrived", deadline_in(60))
    with pytest.raises(TimeoutError):
        Answers(endless()).has(b"has arrived", deadline_in(0))
