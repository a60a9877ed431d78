# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hostile input for the readers of what others write: changed documents, changed bytes, and the bounds of each reader.

An input is a few random bytes, and each choice takes some of them. After a failure, Hypothesis looks for the fewest changes that
fail; to draw every input itself, it would take more time than most readers. SEED gives another run, and FUZZ the number of times
that each test has its number of inputs.
"""

from __future__ import annotations

import functools
import json
import os
import random
import resource
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import escape_control

Value = TypeVar("Value")
SEED = int(os.environ.get("SEED", "1"))
TIMES = int(os.environ.get("FUZZ", "1"))
# What a reader may take for one input: seconds of CPU time, and bytes beside those that the process has.
LONGEST, MOST_MEMORY = 10, 1 << 30
# The size of an input's choices.
_FEWEST, _MOST = 12, 40

DEEP: Any = []
for _level in range(450):
    DEEP = [DEEP]
# fmt: off
TEXTS = (
    "", " ", "a", "main1", "sub1", "sub99999", "-oProxyCommand=id", "x\n    ProxyCommand id", "\x1b]0;x\x07", "\x9b2J", "\x7f", "\u202e", "\ud800", "a\0b", "\r",
    "{{ 1 }}", "<% 1 %>", "!unsafe x", "../../x", "/", "//", "*", "٣", "²", "1" * 5000, "-1", "1e999", "0x1", "1_0", "nan", "Infinity", "0-9999", "9999-0",
    "10.0.0.0/8", "10.0.0.1/32", "10.0.0.1", "::1", "::/0", "fe80::1%eth0", "0.0.0.0/0", "3614fdf3-0e04-4a4b-9d5c-1f7c0a8e6b11", "null", "[]", "{}",
    "[[\"a\", 3]]", "é" * 300, "x" * 5000,
)
NUMBERS = (0, 1, -1, 2, 22, 65536, 2**31, 2**63, 10**30, 10**400, 0.0, -0.0, 0.1, 1e308, 1e-320, float("inf"), float("nan"), True, False)
SHAPES: tuple[Any, ...] = (None, [], {}, [[]], [None], {"": None}, {"id": 1}, [{}], ["a"], [["a", 1]], {"a": {"b": {}}}, DEEP)
# fmt: on


class Choices:
    """Choices that the bytes of Hypothesis make. Without bytes, each is the first."""

    def __init__(self, content: bytes) -> None:
        self._content, self._next = content, 0

    def __repr__(self) -> str:
        return "Choices(%r)" % self._content

    def below(self, count: int) -> int:
        taken = self._content[self._next : self._next + 2]
        self._next += 2
        return int.from_bytes(taken, "big") % count

    def of(self, values: Sequence[Value]) -> Value:
        return values[self.below(len(values))]

    def value(self) -> Any:
        """A value of JSON that few readers expect."""
        return self.of((self.of(TEXTS), self.of(NUMBERS), self.of(SHAPES)))


def fuzzed(count: int, most: int = _MOST) -> Callable[[Callable[[Choices], None]], Callable[[], None]]:
    """A test with so many inputs of up to ``most`` bytes, each within its bounds."""

    def decorated(test: Callable[[Choices], None]) -> Callable[[], None]:
        @seed(SEED)
        @settings(
            max_examples=count * TIMES,
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        @given(content=st.binary(min_size=_FEWEST, max_size=most))
        def smaller(content: bytes) -> None:
            read(content)

        def read(content: bytes) -> None:
            with _time():
                test(Choices(content))

        @functools.wraps(test, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
        def run() -> None:
            draw = random.Random(SEED)
            with _memory():
                try:
                    for _input in range(count * TIMES):
                        read(draw.randbytes(draw.randint(_FEWEST, most)))
                except Exception:
                    smaller()
                    raise

        del run.__wrapped__  # type: ignore[attr-defined]  # pytest would take the parameter for a fixture
        return run

    return decorated


@contextmanager
def _time() -> Iterator[None]:
    """Raises an error when the process has used its CPU time: no other work of the machine counts."""

    def late(_number: int, _frame: object) -> None:
        raise AssertionError("no end after %d s of CPU time" % LONGEST)

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextmanager
def _memory() -> Iterator[None]:
    """More memory than this is a MemoryError."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + MOST_MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def changed(document: Any, choices: Choices) -> Any:
    """A copy of a document of JSON with one to three changes; seldom another document."""
    made = json.loads(json.dumps([document]))
    for _change in range(1 + choices.below(3)):
        places = _places(made)
        _change_one(*choices.of(places), choices, places)
    return made[0]


def changed_parts(document: dict[str, Any], choices: Choices) -> dict[str, Any]:
    """As C(changed), and still a dictionary."""
    made = changed(document, choices)
    return made if isinstance(made, dict) else {**document, "": made}


def _places(document: Any) -> list[tuple[Any, Any]]:
    """Each part of a document: what it is in, and its key there. Deep values that a change has added are one part."""
    found, waiting = [], [(document, 0)]
    while waiting:
        inside, depth = waiting.pop()
        for name, part in inside.items() if type(inside) is dict else enumerate(inside):
            found.append((inside, name))
            if type(part) in (dict, list) and depth < 8:
                waiting.append((part, depth + 1))
    return found


def _change_one(inside: Any, name: Any, choices: Choices, places: Sequence[tuple[Any, Any]]) -> None:
    kind, old = choices.below(8), inside[name]
    if kind == 0 and isinstance(inside, dict):
        del inside[name]
    elif kind == 1 and isinstance(inside, dict):
        inside[choices.of(TEXTS)] = old
    elif kind == 1 and len(inside) < 9:
        inside.append(old)
    elif kind == 2:
        other, key = choices.of(places)
        is_there = key in other if isinstance(other, dict) else key < len(other)
        inside[name] = json.loads(json.dumps(other[key])) if is_there else None
    elif kind in (3, 4) and isinstance(old, str):
        at = choices.below(len(old) + 1)
        inside[name] = old[:at] + choices.of(TEXTS) + old[at + choices.below(2) :]
    else:
        # A copy: the next change may be inside of it.
        inside[name] = json.loads(json.dumps(choices.value()))


def changed_bytes(content: bytes, choices: Choices) -> bytes:
    """Bytes with one to four changes: others, more, fewer, or the same again."""
    made = bytearray(content)
    for _change in range(1 + choices.below(4)):
        at, kind = choices.below(len(made) + 1), choices.below(6)
        if kind == 0:
            del made[at:]
        elif kind == 1:
            del made[at : at + 1 + choices.below(9)]
        elif kind == 2:
            made[at:at] = choices.of(TEXTS).encode("utf-8", "surrogatepass")
        elif kind == 3:
            made[at:at] = made[: choices.below(600)]
        elif kind == 4:
            made[at : at + 1] = bytes([choices.below(256)])
        else:
            made[at:at] = choices.of((b"\0", b"\xff\xfe", b"\n", b" ", b"-", b"9" * 400, b"\xed\xa0\x80"))
    return bytes(made)


def assert_visible(document: Any, without: Sequence[str] = ()) -> None:
    """No text of a document has control characters, names included; ``without`` are the names of parts that are not looked at."""
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += [*value, *(part for name, part in value.items() if name not in without)]
        elif isinstance(value, (list, tuple)):
            waiting += value
        elif isinstance(value, str):
            assert escape_control(value) == value, repr(value[:200])


def assert_one_message(message: str) -> None:
    """A message of the collection: one visible line of bounded length."""
    assert "\n" not in message, repr(message[:200])
    assert escape_control(message) == message, repr(message[:200])
    assert len(message) < 2000, message[:200]
    message.encode()
