# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A request as the variables that ask for it."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from samples import PUBLIC_KEY, request

from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request_checks import check_request
from ansible_collections.cluster.compute.plugins.plugin_utils._variables.request_export import variables_of

WRITTEN: dict[str, Any] = {
    "cluster_size": 2,
    "cluster_mode": "multi-node",
    "cpus": 0.5,
    "memory": "1536m",
    "gpus": 2,
    "environment": {"A": "x <% rank %>"},
    "mounts": [
        "/srv/data:/data:ro",
        {"source": "cache", "target": "/cache", "local": True},
        {"source": "fs:/x", "target": "/x", "type": "nfs", "options": {"o": "ro"}},
    ],
    "apps": [
        {"name": "board", "port": 6006, "command": "exec board", "environment": {"B": "1"}},
        {"name": "api", "port": 80},
    ],
    "roles": [
        {"name": "main", "compute": False, "gpus": 0},
        {
            "name": "worker",
            "after": ["main"],
            "ready": 8080,
            "cpus": 0.5,
            "environment": {"A": "b"},
            "apps": [{"name": "dash", "port": 8787, "command": "exec dash"}],
        },
    ],
    "user": {"uid": 1234},
    "authorized_keys": [PUBLIC_KEY],
    "command": "line 1\nline 2\n",
    "after": ["prep"],
    "not_before": "2026-12-24T18:00:00+01:00",
    "lifetime": 60,
    "torchrun": "elastic",
}


def asked(variables: dict[str, Any]) -> dict[str, Any]:
    """The variables without their prefix."""
    return {name.removeprefix("session_"): value for name, value in variables.items()}


@given(st.sets(st.sampled_from(sorted(WRITTEN))), st.integers(6 << 20, 1 << 42))
def test_the_variables_of_a_request_ask_for_the_same_session(names: set[str], memory: int) -> None:
    made = request(**{"memory": str(max(memory, 64 << 20)), **{name: WRITTEN[name] for name in names}})
    assert check_request(asked(variables_of(made))) == made


def test_only_what_differs_from_the_defaults_is_written() -> None:
    assert variables_of(request(memory="2g", cpus=1)) == {
        "session_name": "train",
        "session_owner": "alice",
        "session_image": "reference",
        "session_memory": "2g",
    }


def test_secrets_have_no_value() -> None:
    made = request(secrets=[{"name": "token", "value": "hidden", "environment": "TOKEN"}])
    assert variables_of(made)["session_secrets"] == [{"name": "token", "environment": "TOKEN"}]
