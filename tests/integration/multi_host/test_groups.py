# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Resource groups over three agents: an agent in two groups, and a group that no agent has."""

from __future__ import annotations

import json

from agents_lab import Agents
from lost_hosts import running

GROUPS = {
    "agent_resource_group": "{{ {'agent1': 'cpu', 'agent2': ['cpu', 'gpu'], 'agent3': ['gpu', 'default']}[inventory_hostname] }}"
}


def test_a_session_runs_within_its_resource_group(agents: Agents) -> None:
    """A container of two CPUs fills an agent."""
    both = {"session_cluster_size": 2, "session_cluster_mode": "multi-node", "session_cpus": 2, **GROUPS}
    agents.launch("within-cpu", session_resource_group="cpu", **both).check()
    assert {*running(agents, "within-cpu").values()} == {"agent1", "agent2"}
    second = agents.launch("within-gpu", session_resource_group="gpu", **both).check()
    assert "Session within-gpu is PENDING: " in second.text
    # The end of a session launches what waits, within its own group.
    agents.play("terminate", session_name="within-cpu", **GROUPS).check()
    assert {*running(agents, "within-gpu").values()} == {"agent2", "agent3"}
    waits = agents.launch("within-cpu", "--check", session_resource_group="cpu", **both).check()
    assert "Session within-cpu would wait: " in waits.text
    agents.terminate("within-gpu").check()
    refused = agents.launch("nowhere", session_resource_group="tpu", **GROUPS)
    assert refused.message == (
        "session_resource_group: 'tpu': must be a resource group of an agent of this play, which are cpu, gpu, default."
    )
    assert json.dumps(agents.held()).count("within-") == 0
