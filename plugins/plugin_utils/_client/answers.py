# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Turn the answers of containers to a command into lines for people, and into one message if it failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Sequence, Tuple

from ...module_utils._shared.codec import Json, subset
from ...module_utils._shared.documents.session_json import SessionDocument
from ...module_utils._shared.errors import InputError, shorten_list, visible_lines

GROUPED = "grouped"
# What ssh and timeout(1) use, too.
UNREACHABLE = 255
LATE = 124
# Names in a sentence.
_MOST = 8


@dataclass(frozen=True)
class Answer:
    """The answer of one container.

    ``content`` is the end of the output, ``left_out`` counts the bytes before it. ``problem`` says why there is no exit code of the
    command; it is empty if there is one.
    """

    hostname: str
    code: int
    content: bytes = b""
    left_out: int = 0
    problem: str = ""

    @property
    def lines(self) -> List[str]:
        omitted = ["(%d bytes before this are left out)" % self.left_out] if self.left_out else []
        return omitted + visible_lines(self.content)

    @property
    def outcome(self) -> str:
        return self.problem or "exit code %d" % self.code

    def to_json(self) -> Json:
        return {**subset(self, "hostname", "lines", "left_out", "problem"), "exit_code": self.code}


def report_answers(answers: Sequence[Answer], form: str) -> List[str]:
    """The output of all containers: each line after the container's name, or a block for each container."""
    lines: List[str] = []
    for answer in answers:
        if form == GROUPED:
            lines += [f"── {answer.hostname} ({answer.outcome})", *answer.lines]
        else:
            lines += [f"{answer.hostname}: {line}" for line in answer.lines]
    return lines


def failure(answers: Sequence[Answer], what: str) -> str:
    """One sentence with the containers that failed; empty if none has."""
    failed = [answer for answer in answers if answer.code or answer.problem]
    if not failed:
        return ""
    named = [f"{answer.hostname} ({answer.outcome})" for answer in failed]
    return "%s failed in %d of %d containers: %s." % (what, len(failed), len(answers), shorten_list(named, _MOST))


def worst(answers: Sequence[Answer]) -> int:
    return max((answer.code for answer in answers), default=0)


def chosen(document: SessionDocument, wanted: Sequence[str], variable: str) -> Tuple[str, ...]:
    """The hostnames of ``session.json`` that are wanted, in rank order; all of them if none is named."""
    known = [container.hostname for container in document.containers]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        rule = f"session {document.session.name} has no such container, only {shorten_list(known, _MOST)}"
        raise InputError(variable, ", ".join(unknown), rule)
    return tuple(name for name in known if not wanted or name in wanted)


def counted(names: Sequence[str]) -> str:
    """The containers in a few words, as ``3 containers (main1, sub1, sub2)``."""
    return "%d container%s (%s)" % (len(names), "" if len(names) == 1 else "s", shorten_list(names, _MOST))


def most_bytes(count: int) -> int:
    """The bytes that are kept of each container's output: less where many write.

    >>> most_bytes(1), most_bytes(1000)
    (1048576, 16777)
    """
    return max(8 << 10, min(1 << 20, (16 << 20) // max(1, count)))
