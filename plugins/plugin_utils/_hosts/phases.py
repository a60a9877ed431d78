# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The phases of a launch, an end, a pass and a check: what people read of them, and where their seconds are recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Dict

if TYPE_CHECKING:
    from ...module_utils._shared.documents.plan import Plan


@dataclass(frozen=True)
class Phase:
    """``message`` is its line of the progress, with %(what)s for the containers. ``doing`` is its part of the explanation, with
    %(here)s for those of the slowest agent and %(all)s for all. ``timing`` is its name in the timings of C(session.json).
    """

    message: str
    doing: str
    timing: str = ""


PHASES: Dict[str, Phase] = {
    "check": Phase("Checking the request", "checking the request"),
    "inform": Phase("Collecting agent reports", "collecting the reports of the agents", "inform"),
    "place": Phase("Placing the session", "placing the session", "schedule"),
    "folders": Phase("Checking the data directories", "checking the data directories"),
    "pull": Phase("Pulling the image", "pulling the image"),
    "copy": Phase("Copying the image", "copying the image"),
    "commit": Phase("Making the image", "making the image"),
    "network": Phase("Creating the network", "creating the network", "network"),
    "create": Phase("Creating %(what)s", "creating %(here)s", "create"),
    "stop": Phase("Stopping %(what)s", "stopping %(here)s"),
    "start": Phase("Starting %(what)s", "starting %(here)s", "start"),
    "follow": Phase("Updating the running containers", "updating the running containers"),
    "verify": Phase("Verifying SSH to %(what)s", "verifying SSH to %(all)s", "verify"),
    "confirm": Phase("Logging in", "logging in"),
    "apps": Phase("Starting the apps", "waiting for the apps"),
    "record": Phase("Recording the session", "recording the session"),
    "limits": Phase("Applying the limits", "applying the limits of the session"),
    "command": Phase("Running the command", "running the command"),
    "end": Phase("Ending the session", "ending the session"),
    "remove": Phase("Removing containers", "removing containers"),
    "undo": Phase("Removing what this attempt created", "removing what this attempt created"),
    "fence": Phase("Removing lost agents from the Swarm", "removing lost agents from the Swarm"),
    "clean": Phase("Cleaning agents that are back", "cleaning agents that are back"),
    "examine": Phase("Examining the agents", "examining the agents"),
    "ports": Phase("Testing the ports", "testing the ports"),
    "overlay": Phase("Testing an overlay network", "testing an overlay network"),
    "upkeep": Phase("Keeping the store in order", "keeping the store in order"),
}
# They need no line: each is one request to the head.
SILENT = frozenset(("record", "upkeep"))


def containers_of(plan: Plan) -> str:
    """The containers of a plan in a few words, as ``16 containers on 3 agents``."""
    counted, agents = counted_containers(len(plan.containers)), len(plan.agents)
    return counted if agents == 1 else "%s on %d agents" % (counted, agents)


def counted_containers(number: int) -> str:
    """
    >>> counted_containers(1)
    '1 container'
    """
    return "%d container%s" % (number, "" if number == 1 else "s")
