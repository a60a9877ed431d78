#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: reference_image_plan
short_description: Decide which agent builds the reference image and which agents receive a copy
description:
  - Decides on the controller, from what each host of the play registered about the reference image.
options:
  images:
    description:
      - The variable in which the hosts of the play registered the entry of the reference image.
    type: str
    required: true
  answers:
    description:
      - Further such results, from agents that are not in the play. Results without an image are ignored.
    type: list
    elements: dict
    default: []
  head:
    description:
      - The agent that builds the image if no agent has it.
    type: str
    required: true
extends_documentation_fragment:
  - cluster.compute.attributes.info
  - cluster.compute.attributes.action
  - cluster.compute.attributes.actiongroup_compute
attributes:
  check_mode:
    support: full
  diff_mode:
    support: N/A
  idempotent:
    support: full
author:
  - The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.agent_settings
"""

EXAMPLES = r"""
- name: Decide where the reference image comes from
  cluster.compute.reference_image_plan:
    images: image_here
    head: agent1
  register: planned
"""

RETURN = r"""
plan:
  description: The plan.
  returned: success
  type: dict
  contains:
    builder:
      description: The agent that has the image or builds it.
      returned: always
      type: str
    sources:
      description: The entry of the builder's image.
      returned: always
      type: list
      elements: dict
    takers:
      description: The agents that receive a copy.
      returned: always
      type: list
      elements: str
"""
