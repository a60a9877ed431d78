# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Resource groups over three agents: an agent in two groups, and a group that no agent has."""

from __future__ import annotations

import json

from agents_lab import NAMES, Agents

GROUPS = {
    "agent_resource_group": "{{ {'agent1': 'cpu', 'agent2': ['cpu', 'gpu'], 'agent3': ['gpu', 'default']}[inventory_hostname] }}"
}


def test_a_session_runs_within_its_resource_group(agents: Agents) -> None:
    """Two containers of one CPU fill an agent of two."""
    both = {"session_cluster_size": 4, "session_cluster_mode": "multi-node", "session_cpus": 1, **GROUPS}
    for group, expected in (("cpu", {"agent1", "agent2"}), ("gpu", {"agent2", "agent3"})):
        agents.launch(f"within-{group}", session_resource_group=group, **both).check()
        held = {name for name in NAMES if any(".within-" in line for line in agents.held()[name])}
        assert held == expected
        waits = agents.launch("beside", session_resource_group="gpu" if group == "cpu" else "cpu", **both).check()
        assert "Session beside is PENDING: " in waits.text
        agents.terminate("beside").check()
        agents.terminate(f"within-{group}").check()
    refused = agents.launch("nowhere", session_resource_group="tpu", **GROUPS)
    assert refused.message == (
        "session_resource_group: 'tpu': must be a resource group of an agent of this play, which are cpu, gpu, default."
    )
    assert json.dumps(agents.held()).count("within-") == 0
