# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The variables that torchrun reads instead of its options, and their rules."""

from __future__ import annotations

from typing import Any

import pytest
from samples import SESSION, exactly, plan, request

from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError


def pet(rank: int, **variables: Any) -> dict[str, str]:
    """The variables of one container that only torchrun reads."""
    environment = plan(request(cluster_size=3, **variables)).containers[rank].environment
    return {name: text for name, text in environment.items() if name.startswith(("PET_", "TORCH"))}


def test_by_default_there_are_none() -> None:
    assert pet(1) == {}


def test_static() -> None:
    """The static rendezvous waits for the largest number. With one number, ``torchrun --standalone`` would wait for it, too."""
    assert pet(2, torchrun="static") == {
        "PET_NNODES": "1:3",
        "PET_NODE_RANK": "2",
        "PET_NPROC_PER_NODE": "1",
        "PET_MASTER_ADDR": "main1",
        "PET_MASTER_PORT": "12345",
    }


@pytest.mark.parametrize(("nodes", "wanted"), [("", "1:3"), ("2:3", "2:3")])
def test_elastic(nodes: str, wanted: str) -> None:
    assert pet(2, torchrun="elastic", torchrun_nodes=nodes, torchrun_restarts=5) == {
        "PET_NNODES": wanted,
        "PET_NPROC_PER_NODE": "1",
        "PET_RDZV_BACKEND": "c10d",
        "PET_RDZV_ENDPOINT": "main1:12345",
        "PET_RDZV_ID": SESSION,
        "PET_MAX_RESTARTS": "5",
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
    }


@pytest.mark.parametrize(("gpus", "processes"), [(0, "1"), (0.5, "1"), (2, "2")])
@pytest.mark.parametrize("mode", ["static", "elastic"])
def test_one_process_for_each_gpu(mode: str, gpus: float, processes: str) -> None:
    assert pet(0, torchrun=mode, gpus=gpus)["PET_NPROC_PER_NODE"] == processes


@pytest.mark.parametrize("nodes", ["3", "0:3", "3:2", "1:", ":3", "1:3:5", "a:b", 3, "1:3\n", "1-3"])
def test_nodes_are_a_range(nodes: Any) -> None:
    message = "must be MIN:MAX, as in 1:3, with MIN at least 1 and at most MAX"
    with pytest.raises(InputError, match=message):
        request(cluster_size=3, torchrun="elastic", torchrun_nodes=nodes)


@pytest.mark.parametrize(
    ("mode", "nodes", "message"),
    [
        ("static", "1:3", "session_torchrun_nodes: '1:3': needs session_torchrun elastic."),
        (
            "elastic",
            "1:2",
            "session_torchrun_nodes: '1:2': must end with session_cluster_size, which is 3: torchrun runs in every container.",
        ),
    ],
)
def test_nodes_fit_the_session(mode: str, nodes: str, message: str) -> None:
    with pytest.raises(InputError, match=exactly(message)):
        request(cluster_size=3, torchrun=mode, torchrun_nodes=nodes)


def test_another_mode_is_another_session() -> None:
    assert request(torchrun="none").digest == request().digest == request(torchrun_restarts=3).digest
    assert request(torchrun="static").digest != request().digest
    assert request().differences(request(torchrun="static")) == ["torchrun_mode"]
