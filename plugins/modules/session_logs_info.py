# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

DOCUMENTATION = r"""
module: session_logs_info
short_description: Read the logs of a session
description:
  - Reads the logs of all containers of a session from its agents, and adds those that the head has kept.
  - With O(follow=true), it writes the last lines of each container to the output, and then new lines every two seconds.
    It ends when no container runs any more, or after a day. An agent that does not answer for ten minutes is no longer asked.
  - It runs once for all hosts of the play, on the controller, over connections of its own. All agents of the inventory must be hosts
    of the play.
  - Each option has a variable of the playbooks, such as C(session_logs_tail). An option has precedence.
extends_documentation_fragment:
  - cluster.compute.attributes.without_diff
  - cluster.compute.options.session_logs_info
author: The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.session_info
"""

EXAMPLES = r"""
- name: Read the last lines of each log
  cluster.compute.session_logs_info:
    name: train
    tail: 20
  register: logs

- name: Show them
  ansible.builtin.debug:
    msg: "{{ logs.lines }}"
  run_once: true
"""

RETURN = r"""
lines:
  description: The logs for people, each line after the name of its container, C(main1) first; empty with O(follow=true).
  type: list
  elements: str
  returned: success
logs:
  description: The logs of the containers, the kept ones first.
  type: list
  elements: dict
  returned: without O(follow)
  contains:
    hostname: {description: The hostname of the container., type: str}
    state: {description: The state of the container., type: str}
    text: {description: What the container has written., type: str}
"""
