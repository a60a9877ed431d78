# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""When a session may start at the earliest."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import request

from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request import Request
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.rules import check_not_before


@pytest.mark.parametrize(
    ("given_as", "normal"),
    [
        ("2026-12-24T18:00:00+01:00", "2026-12-24T17:00:00Z"),
        ("2026-12-24 18:00:00Z", "2026-12-24T18:00:00Z"),
        ("2026-12-24T18:00+00:00", "2026-12-24T18:00:00Z"),
        (datetime(2026, 12, 24, 18, tzinfo=UTC), "2026-12-24T18:00:00Z"),
        ("0206-12-24T18:00:00+01:00", "0206-12-24T17:00:00Z"),
        (3600, "3600"),
        (" 3600 ", "3600"),
        ("", ""),
    ],
)
def test_a_time_has_one_normal_form(given_as: object, normal: str) -> None:
    found = request(not_before=given_as)
    assert found.not_before == normal
    assert found.earliest(5e9) >= 5e9
    assert Request.from_json(found.to_json()).not_before == check_not_before("session_not_before", normal) == normal


@pytest.mark.parametrize(
    "wrong",
    ["tomorrow", "2026-12-24", "2026-12-24T18:00:00", "18:00", True, -1, 1.5, "99999999", "0001-01-01T00:00:00+23:00"],
)
def test_a_time_without_a_zone_and_other_text_is_refused(wrong: object) -> None:
    with pytest.raises(InputError, match=r"^session_not_before: "):
        request(not_before=wrong)


@given(st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(2400, 1, 1)))
def test_a_time_is_the_earliest_start_and_never_before_the_request(moment: datetime) -> None:
    seconds = moment.replace(tzinfo=UTC).timestamp()
    found = request(not_before=moment.replace(tzinfo=UTC).isoformat())
    assert found.earliest(0.0) == int(seconds)
    assert found.earliest(seconds + 10) == seconds + 10


def test_a_number_counts_from_the_request() -> None:
    assert request(not_before=3600).earliest(1000.0) == 4600.0
    assert request().earliest(1000.0) == 1000.0


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"after": ["train"]}, "session_after: 'train': must not be the session itself."),
        ({"after": ["no name"]}, "session_after: 'no name': must have 4 to 64"),
        ({"after": ["job-%d" % number for number in range(101)]}, "must have at most 100 names"),
        ({"pending_timeout": -1}, "session_pending_timeout: -1: must be a whole number from 0 to 31536000."),
    ],
)
def test_wrong_values_are_refused(variables: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        request(**variables)


def test_names_may_be_given_as_text_and_count_once() -> None:
    assert request(after="first, second, first").after == ("first", "second")


def test_the_start_is_no_part_of_what_a_session_is() -> None:
    later = request(after=["first"], not_before=60, pending_timeout=60)
    assert later.digest == request().digest
    assert later.differences(request()) == []
