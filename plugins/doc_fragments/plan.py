# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options that reach a session. Private to this collection."""

from __future__ import annotations


class ModuleDocFragment:
    """Where the controller connects to main1, or configures that connection."""

    REACH = r"""
options:
  artifacts:
    description:
      - The folder on the controller that holds a folder for each session.
      - If not set, C(~/.cluster-compute).
    type: path
  address:
    description:
      - The address at which the controller reaches the agent of C(main1).
      - If not set, the address that the SSH port is published on, or V(127.0.0.1) if it is published on every address.
      - The connection takes the jump hosts (C(ProxyJump), C(ProxyCommand)) that the inventory's SSH arguments or the user's
        SSH configuration name for that agent.
    type: str
"""
