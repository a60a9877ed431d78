# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A named volume is a different directory on each agent: a session on several agents is refused unless that is meant."""

from __future__ import annotations

from typing import Any

import pytest
from samples import agent, context, exactly, request

from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.decision import Decision
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError

VOLUME = {"source": "cache", "target": "/cache"}


def launched(store: Store, mount: dict[str, Any], cpus: float = 2) -> Decision:
    """A session of two containers, of which an agent holds one if they take two CPUs each."""
    asked = request(cluster_size=2, cluster_mode="multi-node", cpus=cpus, mounts=[mount])
    return launch(store, asked, context(agent("a", cpus=2), agent("b", cpus=2)))


def test_a_volume_on_several_agents_is_refused(store: Store) -> None:
    message = (
        "session_mounts: 'cache': is a different directory on each agent of the session (a, b): add 'local: true' if that is "
        "meant, or options."
    )
    with pytest.raises(InputError, match=exactly(message)):
        launched(store, VOLUME)


@pytest.mark.parametrize(
    "mount",
    [
        {**VOLUME, "local": True},
        {**VOLUME, "options": {"type": "nfs", "device": ":/export"}},
        {"source": "nas:/export", "target": "/cache", "type": "nfs"},
        {"source": "/data", "target": "/data"},
    ],
)
def test_a_local_or_shared_folder_is_allowed(store: Store, mount: dict[str, Any]) -> None:
    decision = launched(store, mount)
    assert decision.plan
    assert decision.plan.agents == ["a", "b"]


def test_a_volume_on_one_agent_is_allowed(store: Store) -> None:
    assert launched(store, VOLUME, cpus=1).outcome == "placed"


@pytest.mark.parametrize("mount", [{"source": "/data", "target": "/d"}, {**VOLUME, "options": {"o": "ro"}}])
def test_only_a_volume_without_options_is_local(mount: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="must be a volume without options to be local"):
        request(mounts=[{**mount, "local": True}])


def test_a_digest_does_not_change_with_it() -> None:
    assert request(mounts=[VOLUME]).digest == request(mounts=[{**VOLUME, "local": True}]).digest
