# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Any request is accepted, or refused with one message: the check on the controller raises nothing else and always ends.

The requests are pseudorandom. HOSTILE_REQUESTS sets their number, HOSTILE_SEED the first of them: a failure names its seed.
"""

from __future__ import annotations

import datetime
import json
import os
import random
from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import (
    ComputeError,
    InputError,
    escape_control,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request import REQUEST_VARIABLES, Request
from ansible_collections.cluster.compute.plugins.plugin_utils._settings.settings import (
    check_variables,
    read_by,
    with_preset,
)
from ansible_collections.cluster.compute.plugins.plugin_utils._variables.request_variables import make_requests

COUNT = int(os.environ.get("HOSTILE_REQUESTS", "20000"))
SEED = int(os.environ.get("HOSTILE_SEED", "0"))
SHARES = 20
# fmt: off
NAMES = [variable.full_name for variable in read_by("main") if variable.full_name not in ("session_name", "session_owner")]
KNOWN = [name for variable in REQUEST_VARIABLES for name in variable.options] + ["A", "PATH", "BACKENDAI_X", "uid", "source"]

NUMBERS = [0, -1, 1, 2, 10**400, -(10**400), 10**5000, 2**63, 2**31, 1e308, float("inf"), float("nan"), -0.0, 1e-320, True, False]
TEXTS = [
    "", " ", "a", "main", "none", "all", "-", "--", "0", "-1", "1e9", "1e999", "0x10", "0777", "1_000", "٣", "²", "½", "𝟗", "1" * 5000,
    "1k", "1.5g", "9" * 18 + "t", "0.0000000001", "true", "Yes", "null", "~", "*", "a*", "[", "[a-", "../..", "/", "//", "/a/../b",
    "/data", "/proc/self", "server:/x", "1:2", "2:1", "30000-31000", "1024-99999", "10.0.0.0/8", "10.201.0.0/16", "::1/64", "8.8.8.8/8",
    "a\0b", "a\nb", "a\r", "\x1b[31m", "\x9b", "\u202e", "\ufeff", "\ud800", "\U0010ffff", "é" * 70000, "x" * (1 << 17), "x" * (1 << 21),
    "{{ lookup('pipe', 'id') }}", "{% for a in b %}", "<% rank %>", "<% rank", "<% 1/0 %>", "<% 9**(9**9) %>", "<% 'x' * 10**10 %>",
    "<% [0] * 10**10 %>", "<% '%9999999999d' % 1 %>", "<% hosts * 10**9 %>", "<% x.__class__ %>", "<% ''.__class__.__mro__ %>",
    "<% range(10**9)|list %>", "<% '\\n' %>", "<%% for a in range(9) %%>x<%% endfor %%>", "<% self %>", "<% hosts.append(1) %>",
    "<% 'x'|center(10**10) %>", "<% '{:>9999999999}'.format(1) %>", "<% " + "(" * 500 + ")" * 500 + " %>", "<% '\\ud800' %>",
    "<% lipsum(10**6) %>", "<% ('x' * 60000)|replace('x', 'x' * 60000) %>", "<% 'x'|indent(10**10, true) %>",
    "a:b@sha256:" + "0" * 64, "A/B", "registry:99999999999/a", "a" * 513, "sha256:" + "0" * 64,
]
STRANGE = [None, b"bytes", datetime.date(2026, 1, 1), datetime.datetime(2026, 1, 1, 1, 1), {1, 2}, (), object, complex(1, 1)]
# fmt: on
Maker = Callable[[random.Random, int], Any]


class Tagged(str):
    """As Ansible's own text, a subclass."""


def scalar(rng: random.Random, _depth: int) -> Any:
    kind = rng.random()
    if kind < 0.5:
        text = rng.choice(TEXTS)
        return Tagged(text) if kind < 0.05 else text
    if kind < 0.6:
        return "".join(
            chr(rng.choice((rng.randrange(128), rng.randrange(0x110000)))) for _letter in range(rng.randrange(12))
        )
    return rng.choice(NUMBERS) if kind < 0.9 else rng.choice(STRANGE)


def sequence(rng: random.Random, depth: int) -> Any:
    made = [hostile(rng, depth + 1) for _item in range(rng.randrange(4))]
    if rng.random() < 0.03:
        made.append(made)
    return tuple(made) if rng.random() < 0.1 else made


def mapping(rng: random.Random, depth: int) -> Any:
    names: list[Any] = [
        rng.choice(KNOWN) if rng.random() < 0.8 else scalar(rng, depth) for _item in range(rng.randrange(5))
    ]
    made: dict[Any, Any] = {name: hostile(rng, depth + 1) for name in names if not isinstance(name, set)}
    if rng.random() < 0.03:
        made["A"] = made
    return made


def hostile(rng: random.Random, depth: int = 0) -> Any:
    makers: list[Maker] = [scalar, scalar, scalar, sequence, mapping]
    return (scalar if depth > 4 else rng.choice(makers))(rng, depth)


def request(seed: int) -> dict[str, Any]:
    """A valid request with some hostile variables. A quarter of the requests have a hostile name or owner."""
    rng = random.Random(seed)
    values = {name: hostile(rng) for name in rng.sample(NAMES, rng.choice((1, 1, 1, 2, 3)))}
    values.update(session_name="train", session_owner="alice")
    if rng.random() < 0.25:
        values[rng.choice(("session_name", "session_owner"))] = hostile(rng)
    return values


def checked(values: dict[str, Any]) -> list[Request]:
    """As the first task of a launch checks it."""
    settings = check_variables("main", values)
    values = with_preset(values, settings.preset, settings.presets)
    return make_requests(values, min(settings.count, 2))


def assert_one_sentence(error: ComputeError) -> None:
    message = error.message
    assert escape_control(message) == message, repr(message)
    assert "\n" not in message, repr(message)
    assert message.endswith("."), message
    assert len(message) < 1000, message
    message.encode()


@pytest.mark.parametrize("share", range(SHARES))
def test_a_hostile_request_is_accepted_or_refused_in_one_sentence(share: int) -> None:
    accepted = refused = 0
    for seed in range(SEED + share, SEED + COUNT, SHARES):
        try:
            for made in checked(request(seed)):
                document = json.loads(json.dumps(made.to_json(), allow_nan=False))
                assert Request.from_json(document) == made, f"HOSTILE_SEED={seed}"
            accepted += 1
        except InputError as error:
            refused += 1
            assert_one_sentence(error)
        except Exception as error:
            raise AssertionError(f"HOSTILE_SEED={seed} HOSTILE_REQUESTS=1: {type(error).__name__}") from error
    assert (accepted > 0, refused > accepted) == (True, True)
