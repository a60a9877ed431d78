# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of plain values."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest
from samples import exactly

from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError, InputError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request import REQUEST_VARIABLES
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.variable import Variable
from ansible_collections.cluster.compute.plugins.module_utils._shared.value_rules import (
    check_plain,
    check_public_keys,
    within,
)


@pytest.mark.parametrize(("value", "count"), [(1, 1), ("100", 100)])
def test_a_count(value: object, count: int) -> None:
    assert within(1, 100)("session_count", value) == count


@pytest.mark.parametrize("value", [0, -1, 101, "many", None, 1.5])
def test_other_counts_are_refused(value: object) -> None:
    with pytest.raises(InputError, match=r"^session_count: .*must be a whole number from 1 to 100\.$"):
        within(1, 100)("session_count", value)


HUGE, SURROGATE = 10**400, "lone \ud800"


@pytest.mark.parametrize("variable", REQUEST_VARIABLES, ids=lambda variable: variable.name)
@pytest.mark.parametrize(
    "value",
    [
        HUGE,
        -HUGE,
        10**5000,
        float("inf"),
        float("nan"),
        SURROGATE,
        [HUGE],
        {"uid": HUGE, "A": HUGE},
        {"A": [[SURROGATE]]},
        {SURROGATE: 1},
        "x" * (1 << 21),
        [[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]],
    ],
    ids=range(12),
)
def test_values_that_cannot_be_computed_with_are_refused_in_one_sentence(variable: Variable, value: object) -> None:
    with pytest.raises(InputError) as caught:
        variable.check(variable.full_name, value)
    message = caught.value.message
    assert message.startswith("session_")
    assert message.endswith(".")
    assert len(message) < 600
    message.encode()


def test_a_value_that_contains_itself_is_refused() -> None:
    endless: list[object] = []
    endless += [endless, endless]
    with pytest.raises(InputError, match=exactly("session_agents: 'a nested value': must have at most 100000 values.")):
        check_plain("session_agents", endless)


def key(kind: str, *parts: bytes) -> str:
    whole = b"".join(len(part).to_bytes(4, "big") + part for part in (kind.encode(), *parts))
    return f"{kind} {base64.b64encode(whole).decode()}"


GOOD = key("ssh-ed25519", b"k" * 32)


@pytest.mark.parametrize("kind", [("ed25519",), ("rsa", "-b", "2048"), ("ecdsa", "-b", "256"), ("ecdsa", "-b", "521")])
def test_what_ssh_keygen_writes_is_a_key(kind: tuple[str, ...], tmp_path: Path) -> None:
    command = ["ssh-keygen", "-q", "-N", "", "-C", "alice@laptop", "-f", str(tmp_path / "id"), "-t", *kind]
    subprocess.run(command, check=True)
    line = (tmp_path / "id.pub").read_text()
    assert check_public_keys("session_authorized_keys", line) == (line.strip(),)


def test_a_list_keeps_each_key_once() -> None:
    other = key("sk-ssh-ed25519@openssh.com", b"k" * 32, b"ssh:") + " Jörg, laptop"
    assert check_public_keys("session_authorized_keys", [GOOD, other, f" {GOOD}\n"]) == (GOOD, other)
    assert check_public_keys("session_authorized_keys", []) == ()


@pytest.mark.parametrize(
    "line",
    [
        "",
        7,
        "ssh-ed25519",
        f'command="id" {GOOD}',
        f"no-pty,{GOOD}",
        f"cert-authority {GOOD}",
        f"# {GOOD}",
        f"{GOOD} alice\n{GOOD} mallory",
        f"{GOOD} alice\rx",
        f"{GOOD} alice\0x",
        f"{GOOD} \u202ealice",
        f"{GOOD} {'x' * 5000}",
        f"{GOOD[:-8]}",
        f"{GOOD}AAAA",
        GOOD.replace("ssh-ed25519", "ssh-ed25519 "),
        GOOD.replace("ssh-ed25519", "ssh-rsa"),
        "ssh-ed25519 AAAA\u00e9",
        key("ssh-dss", b"k" * 32, b"g", b"q", b"y"),
        key("ssh-rsa", b"\1\0\1", b"k" * 128),
        key("ssh-ed25519", b"k" * 32, b"more"),
    ],
)
def test_anything_else_is_refused(line: object) -> None:
    with pytest.raises(ComputeError, match=r"^session_authorized_keys: .*: must be a public key on one line"):
        check_public_keys("session_authorized_keys", [line])


def test_a_private_key_is_refused_and_not_shown() -> None:
    text = "-----BEGIN OPENSSH PRIVATE KEY-----\nsecret\n-----END OPENSSH PRIVATE KEY-----\n"
    for value in (text, [text]):
        with pytest.raises(ComputeError, match="must be the public key") as caught:
            check_public_keys("session_authorized_keys", value)
        assert "secret" not in caught.value.message


def test_more_keys_than_anyone_has_are_refused() -> None:
    for value in ([GOOD] * 101, {"key": GOOD}):
        with pytest.raises(ComputeError, match="must be a list of at most 100 public keys"):
            check_public_keys("session_authorized_keys", value)
