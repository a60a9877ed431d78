# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError
from ansible_collections.cluster.compute.plugins.module_utils._shared.units import (
    parse_bytes,
    parse_cpus,
    show_bytes,
    show_cpus,
)

GIB = 1 << 30


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("64m", 64 << 20),
        ("16g", 16 * GIB),
        ("1.5GiB", GIB + GIB // 2),
        ("1 g", GIB),
        ("2t", 2 << 40),
        ("7kb", 7 << 10),
        ("12b", 12),
        (4096, 4096),
        ("4096", 4096),
        (" 1G ", GIB),
        ("0", 0),
        ("0.1k", 102),
        ("1048576t", 1 << 60),
        (1 << 60, 1 << 60),
    ],
)
def test_bytes_are_read_as_people_write_them(text: object, expected: int) -> None:
    assert parse_bytes(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "1x",
        "",
        "g",
        "-1g",
        "1,5g",
        "1 gb x",
        "1gg",
        "1bb",
        "5ib",
        "1e9",
        None,
        True,
        [1],
        "١g",
        "9" * 19,
        "nan",
        "1048577t",
        (1 << 60) + 1,
    ],
)
def test_other_bytes_are_refused(text: object) -> None:
    with pytest.raises(InputError, match="must be a number with an optional unit b, k, m, g or t"):
        parse_bytes(text)


def test_a_refused_amount_names_variable_value_and_rule() -> None:
    with pytest.raises(InputError) as refused:
        parse_bytes("1x", "session_memory")
    assert refused.value.message == (
        "session_memory: '1x': must be a number with an optional unit b, k, m, g or t, as in 512m or 16g, and at most 1048576t."
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4", 4000),
        (4, 4000),
        (0.5, 500),
        ("1.25", 1250),
        ("0.001", 1),
        ("1.2500", 1250),
        (" 2 ", 2000),
        (0, 0),
        (2.0, 2000),
    ],
)
def test_cpus_are_read_in_thousandths(text: object, expected: int) -> None:
    assert parse_cpus(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "two",
        "-1",
        -0.5,
        "0.0001",
        "1e3",
        "nan",
        "inf",
        "Infinity",
        "1e999999",
        None,
        False,
        "1_000",
        "٤",
        "9" * 10,
        [2],
    ],
)
def test_other_cpus_are_refused(text: object) -> None:
    with pytest.raises(InputError, match="must be a number with at most three decimals"):
        parse_cpus(text)


@pytest.mark.parametrize(
    ("amount", "expected"),
    [
        (0, "0b"),
        (1023, "1023b"),
        (1024, "1k"),
        (64 << 20, "64m"),
        (GIB, "1g"),
        (GIB + GIB // 2, "1.5g"),
        (2 * GIB - 1, "1.9g"),
        (GIB - 1, "1023.9m"),
        (10_000_000 << 40, "10000000t"),
    ],
)
def test_bytes_are_shown_short_and_never_as_more(amount: int, expected: str) -> None:
    assert show_bytes(amount) == expected


@pytest.mark.parametrize(
    ("millicpus", "expected"),
    [(0, "0"), (1, "0.001"), (500, "0.5"), (4000, "4"), (1000500, "1000.5"), (10**9, "1000000")],
)
def test_cpus_are_shown_exactly(millicpus: int, expected: str) -> None:
    assert show_cpus(millicpus) == expected


@given(st.integers(0, 10**11))
def test_cpus_shown_are_read_back(millicpus: int) -> None:
    assert parse_cpus(show_cpus(millicpus)) == millicpus


@given(st.integers(0, 10**18))
def test_bytes_shown_are_at_most_what_they_are(amount: int) -> None:
    back = parse_bytes(show_bytes(amount))
    assert back <= amount
    assert amount - back <= max(amount // 10, 0)
