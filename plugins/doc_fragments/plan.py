# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a session, and the options that reach it. Private to this collection."""

from __future__ import annotations


class ModuleDocFragment:
    """The plan; and where the controller connects to main1, or configures that connection."""

    DOCUMENTATION = r"""
options:
  plan:
    description:
      - The plan, as M(cluster.compute.session) returns it in check mode. Required, unless O(state) stops or removes what O(sessions)
        names.
      - C(schema) is the version of its format. C(session) is the session, with its C(id), C(name), C(owner), C(size), C(image),
        C(user) and scripts. C(network) is its network, with its C(name), C(driver), C(subnet), C(mtu) and C(labels).
      - C(containers) are the containers in rank order, each with its C(name), C(agent), C(address), C(resources), C(ports) and
        C(labels).
    type: dict
"""
    REACH = r"""
options:
  artifacts:
    description:
      - The directory on the controller that holds a directory for each session.
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
