# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan, and how its session is reached. Private to this collection."""

from __future__ import annotations


class ModuleDocFragment:
    """The option of every module that cannot do without a plan."""

    DOCUMENTATION = r"""
options:
  plan:
    description:
      - The plan, as M(cluster.compute.schedule) returns it.
    type: dict
    required: true
"""

    # For modules that go, or show the way, from the controller to main1.
    REACH = r"""
options:
  artifacts:
    description:
      - The folder on the controller that holds a folder for each session.
      - If not set, C(~/.cluster-compute).
    type: path
  address:
    description:
      - Where the controller reaches the agent of C(main1).
      - If not set, the address that the SSH port is published on, or V(127.0.0.1) where that is every address.
    type: str
"""
