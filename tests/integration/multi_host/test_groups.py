# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Resource groups over three agents: an agent in two groups, and a group that no agent has."""

from __future__ import annotations

import json

from agents_lab import Agents

GROUPS = {
    "agent_resource_group": "{{ {'agent1': 'cpu', 'agent2': ['cpu', 'gpu'], 'agent3': ['gpu', 'default']}[inventory_hostname] }}"
}


def holders(agents: Agents, session: str) -> set[str]:
    """The agents that hold something of a session."""
    return {agent for agent, held in agents.held().items() if any(f".{session}" in line for line in held)}


def test_a_session_runs_within_its_resource_group(agents: Agents) -> None:
    """Two containers of one CPU fill an agent of two."""
    both = {"session_cluster_size": 4, "session_cluster_mode": "multi-node", "session_cpus": 1, **GROUPS}
    agents.launch("within-cpu", session_resource_group="cpu", **both).check()
    assert holders(agents, "within-cpu") == {"agent1", "agent2"}
    waits = agents.launch("within-gpu", session_resource_group="gpu", **both).check()
    assert "Session within-gpu is PENDING: " in waits.text
    # The end makes a pass over the queue.
    agents.play("terminate", session_name="within-cpu", **GROUPS).check()
    assert holders(agents, "within-gpu") == {"agent2", "agent3"}
    waits = agents.launch("within-cpu", session_resource_group="cpu", **both).check()
    assert "Session within-cpu is PENDING: " in waits.text
    agents.play("terminate", session_name="within-*", session_many=True).check()
    refused = agents.launch("nowhere", session_resource_group="tpu", **GROUPS)
    assert refused.message == (
        "session_resource_group: 'tpu': must be a resource group of an agent of this play, which are cpu, gpu, default."
    )
    assert json.dumps(agents.held()).count("within-") == 0
