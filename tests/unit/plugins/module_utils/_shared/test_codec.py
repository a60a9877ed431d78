# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Dataclasses and their documents: types, defaults, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import (
    Mount,
    Network,
    Plan,
    Resources,
    User,
)

NETWORK = {"name": "n", "driver": "bridge", "subnet": "10.0.0.0/29", "gateway": "10.0.0.1", "ip_range": "10.0.0.4/30"}


def test_values_have_the_types_of_their_fields() -> None:
    read = Resources.from_json({"millicpus": 500, "gpus": [{"id": "GPU-1", "shares": 1}], "cpuset": "0-1"})
    assert json.dumps(read.to_json()) == (
        '{"millicpus": 500, "memory": 0, "shm": 0, "gpus": [{"id": "GPU-1", "shares": 1.0, "memory": 0}], "cpuset": "0-1", '
        '"fabric": false}'
    )
    assert hash(read) == hash(Resources.from_json(read.to_json()))


def test_a_value_that_is_missing_or_null_is_the_default_and_other_keys_do_not_count() -> None:
    assert User.from_json({"name": None, "uid": 7, "shell": "/bin/sh"}) == User(uid=7)
    assert Mount.from_json({"source": "/a", "target": "/b", "options": None}) == Mount("/a", "/b")
    assert Network.from_json(NETWORK).mtu is None
    assert Network.from_json({**NETWORK, "mtu": 1450}).mtu == 1450


@pytest.mark.parametrize(
    "document",
    [
        {"memory": "much"},
        {"memory": [1]},
        {"memory": float("inf")},
        {"gpus": ["GPU-1"]},
        {"gpus": [{"shares": 1.0}]},
        {"gpus": 7},
        ["memory"],
        "memory",
        None,
    ],
)
def test_a_document_without_these_types_is_refused(document: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        Resources.from_json(document)


@pytest.mark.parametrize("key", ["session", "network", "containers"])
def test_a_plan_without_a_part_is_refused(key: str) -> None:
    document = {"session": {}, "network": NETWORK, "containers": []}
    del document[key]
    with pytest.raises((TypeError, LookupError)):
        Plan.from_json(document)
