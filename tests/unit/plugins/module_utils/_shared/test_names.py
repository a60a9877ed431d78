# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError
from ansible_collections.cluster.compute.plugins.module_utils._shared.names import (
    check_owner,
    check_session_name,
    check_variable_name,
    container_names,
    network_name,
    owner_from_login,
    random_name,
)

VARIABLE_RULE = "must have letters, digits and '_' only, and must not start with a digit."
NAME_RULE = "must have 4 to 64 letters, digits, '-', '_' or '.', and must start and end with a letter or digit."


@pytest.mark.parametrize("name", ["abcd", "a--b", "train.v1_2-x", "1234", "A" * 64])
def test_a_good_session_name_is_kept(name: str) -> None:
    assert check_session_name("session_name", name) == name


def test_a_name_that_yaml_reads_as_a_number_must_be_in_quotes() -> None:
    """YAML reads 012345 as the number 5349."""
    with pytest.raises(InputError, match=r"^session_name: 5349: must be in quotes: YAML reads some names as numbers"):
        check_session_name("session_name", 0o12345)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("abc", "'abc'"),
        ("a" * 65, "'%s'" % ("a" * 65)),
        ("my train", "'my train'"),
        ("my/train", "'my/train'"),
        ("-train", "'-train'"),
        ("train-", "'train-'"),
        (".train", "'.train'"),
        ("train\n", "'train\\n'"),
        ("tr\nain", "'tr\\nain'"),
        ("traïn", "'traïn'"),
        ("", "''"),
        (12.5, "12.5"),
        (True, "True"),
        (None, "None"),
        ("../../etc", "'../../etc'"),
    ],
)
def test_a_bad_session_name_is_refused(name: object, shown: str) -> None:
    with pytest.raises(InputError) as refused:
        check_session_name("session_name", name)
    assert refused.value.message == "session_name: %s: %s" % (shown, NAME_RULE)


@pytest.mark.parametrize("owner", ["a", "alice", "a-b_c", "9", "x" * 32])
def test_a_good_owner_is_kept(owner: str) -> None:
    assert check_owner("session_owner", owner) == owner


@pytest.mark.parametrize("owner", ["", "a.b", "-a", "a_", "x" * 33, "a b", "a\n", 7, None])
def test_a_bad_owner_is_refused(owner: object) -> None:
    with pytest.raises(InputError, match=r"^session_owner: .*must have 1 to 32 letters"):
        check_owner("session_owner", owner)


def test_the_word_for_all_owners_is_no_owner() -> None:
    with pytest.raises(InputError, match=r"^session_owner: 'all': is reserved: it stands for all owners"):
        check_owner("session_owner", "all")


@pytest.mark.parametrize(
    ("login", "owner"),
    [
        ("alice", "alice"),
        ("alice.b", "alice-b"),
        ("DOM\\al", "DOM-al"),
        ("_apt", "apt"),
        ("é", "user"),
        ("x" * 40, "x" * 32),
    ],
)
def test_a_login_becomes_an_owner(login: str, owner: str) -> None:
    assert owner_from_login(login) == owner


@given(st.text(max_size=80))
def test_every_login_becomes_a_good_owner(login: str) -> None:
    assert check_owner("session_owner", owner_from_login(login))


@pytest.mark.parametrize("name", ["A", "_x", "OMP_NUM_THREADS", "backendai_x", "a1"])
def test_a_good_variable_name_is_kept(name: str) -> None:
    assert check_variable_name(name) == name


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "A=B",
            "session_environment: 'A=B': " + VARIABLE_RULE,
        ),
        (
            "A\nB",
            "session_environment: 'A\\nB': " + VARIABLE_RULE,
        ),
        (
            "BACKENDAI_X",
            "session_environment: 'BACKENDAI_X': must not start with BACKENDAI_: the session sets these variables.",
        ),
    ],
)
def test_a_bad_variable_name_is_refused(name: object, message: str) -> None:
    with pytest.raises(InputError) as refused:
        check_variable_name(name)
    assert refused.value.message == message


@pytest.mark.parametrize("name", ["", "1A", "A-B", "A B", "A\0", 5, None, "BACKENDAI_", "Ä"])
def test_other_variable_names_are_refused(name: object) -> None:
    with pytest.raises(InputError, match=r"^session_environment: "):
        check_variable_name(name)


def test_random_names_are_names_and_differ() -> None:
    names = {random_name(random.Random(seed)) for seed in range(200)}
    assert all(check_session_name("session_name", name) == name for name in names)
    assert len(names) > 150
    assert random_name(random.Random(5)) == random_name(random.Random(5))


_NAME = st.from_regex(r"[a-z0-9](?:[a-z0-9._-]{2,8})[a-z0-9]", fullmatch=True)
_OWNER = st.from_regex(r"[a-z0-9](?:[a-z0-9_-]{0,6}[a-z0-9])?", fullmatch=True)


@given(_OWNER, _NAME, st.integers(1, 99), _OWNER, _NAME, st.integers(1, 99))
def test_container_names_never_meet(owner: str, name: str, index: int, other: str, theirs: str, number: int) -> None:
    mine, yours = (owner, name, "sub%d" % index), (other, theirs, "sub%d" % number)
    names = [set(container_names(*each, "3614fdf3-0e04-4a4b")) for each in (mine, yours)]
    assert bool(names[0] & names[1]) == (mine == yours)


def test_engine_names() -> None:
    names = container_names("alice", "train.v1", "sub3", "3614fdf3-0e04-4a4b")
    assert names == ("alice.train.v1.sub3", "alice.train.v1.sub3.3614fdf3")
    assert network_name("alice", "train", "3614fdf3-0e04-4a4b") == "alice-train-3614fdf3"
    assert len(network_name("o" * 32, "s" * 64, "3614fdf3-0e04-4a4b")) <= 63
