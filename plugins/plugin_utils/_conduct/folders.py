# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Prove that the agents of a session see the same data folders, before anything is started."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from ...module_utils._core.model import Plan
from ...module_utils._planning.deployment import Deployment
from .play import Play


def prove_folders(play: Play, plan: Plan, work: Deployment) -> None:
    """Mark the folders on the agent of ``main1``, and look for the marks on the others. Raises StepError if one is not seen."""
    common = {"folders": list(work.shared_folders), "token": plan.session.launch}
    common["permitted"] = list(plan.session.permitted_folders)
    user = {"uid": plan.session.user.uid, "gid": plan.session.user.gid}
    others = [agent for agent in work.agents if agent != work.main_agent]
    with play.phase("folders"):
        try:
            options = {**common, **user, "writable": list(work.writable_folders)}
            marks = play.on(work.main_agent, "folders.mark", options)["marks"]
            wanted = {"marks": marks, "token": plan.session.launch}
            play.on_each(others, "folders.find", lambda _agent: wanted)
        finally:
            play.tried(work.main_agent, "folders.unmark", common)
