# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``session_secrets``: what is refused, and that no error quotes a value."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Secret
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request import Request
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request_checks import check_request
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.secret_rules import (
    LONGEST,
    check_secrets,
)

VALUE = "hunter2-hunter2"


def asked(**variables: Any) -> Request:
    return check_request({"name": "train", "owner": "alice", **variables})


def test_a_request_keeps_everything_but_the_values() -> None:
    entries = [
        {"name": "token", "value": VALUE, "environment": "HF_TOKEN"},
        {"name": "key.json", "file": "~/key.json"},
    ]
    request = asked(secrets=entries)
    assert request.secrets == (Secret("token", "HF_TOKEN"), Secret("key.json"))
    assert VALUE not in str(request.to_json())
    assert Request.from_json(request.to_json()) == request
    assert request.digest != asked().digest


def test_a_request_without_secrets_has_the_digest_of_earlier_releases() -> None:
    assert asked(secrets=[]).digest == asked().digest


@pytest.mark.parametrize(
    ("secrets", "rule"),
    [
        (VALUE, "must be a list"),
        ({"name": VALUE}, "must be a list"),
        ([VALUE], "entry 1 must be a dictionary"),
        ([{"name": "a", "value": VALUE, "valeu": VALUE}], "entry 1 must be a dictionary that has only"),
        ([{"value": VALUE}], "entry 1 must have a name"),
        ([{"name": ".complete", "value": VALUE}], "entry 1 must have a name"),
        ([{"name": "a/b", "value": VALUE}], "entry 1 must have a name"),
        ([{"name": "a"}], "session_secrets: a: (hidden): must have either a value or a file"),
        ([{"name": "a", "value": VALUE, "file": "/f"}], "must have either a value or a file"),
        ([{"name": "a", "value": {"x": VALUE}}], "must have a string as its value"),
        ([{"name": "a", "value": 12345}], "must have a string as its value"),
        ([{"name": "a", "value": ""}], "must have 1 to 65536 bytes"),
        ([{"name": "a", "value": VALUE * (LONGEST // 15 + 1)}], "must have 1 to 65536 bytes"),
        ([{"name": "a", "value": VALUE + "\udc80"}], "short Unicode texts"),
        ([{"name": "a", "value": VALUE * 100000}], "short Unicode texts"),
        ([{"name": "a", "value": "x\n" + VALUE, "environment": "A"}], "must be one line"),
        ([{"name": "a", "file": VALUE}], "must have an absolute path"),
        ([{"name": "a", "value": VALUE, "environment": "A-B"}], "letters, digits and '_' only"),
        ([{"name": "a", "value": VALUE, "environment": "PATH"}], "must not be a variable that the session sets"),
        ([{"name": "a", "value": VALUE, "environment": [VALUE]}], "must have the name of a variable"),
        ([{"name": "a", "value": VALUE}] * 2, "must be the name of one secret only"),
        (
            [{"name": name, "value": VALUE, "environment": "A"} for name in "ab"],
            "must be the environment of one secret",
        ),
        ([{"name": "a%d" % number, "value": VALUE} for number in range(65)], "at most 64 secrets"),
    ],
)
def test_a_wrong_entry_is_refused_without_its_value(secrets: Any, rule: str) -> None:
    with pytest.raises(InputError) as refused:
        asked(secrets=secrets)
    assert rule in refused.value.message
    assert VALUE not in refused.value.message
    assert "session_secrets" in refused.value.message or "session_environment" in refused.value.message


def test_the_end_of_the_last_line_does_not_count_as_a_second_line() -> None:
    assert check_secrets("session_secrets", [{"name": "a", "value": "x\n", "environment": "A"}])


@pytest.mark.parametrize("target", ["/run/secrets", "/run/secrets/more"])
def test_a_data_folder_does_not_hide_secrets(target: str) -> None:
    mounts = [{"source": "/data", "target": target}]
    assert asked(mounts=mounts)
    with pytest.raises(InputError, match="is the directory of session_secrets"):
        asked(mounts=mounts, secrets=[{"name": "a", "value": VALUE}])


def test_a_variable_has_one_source() -> None:
    with pytest.raises(InputError, match="must not be in session_environment, too"):
        asked(environment={"A": "x"}, secrets=[{"name": "a", "value": VALUE, "environment": "A"}])
