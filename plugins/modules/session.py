# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: session
short_description: Launch, repair or end cluster sessions
description:
  - Launches the sessions that the variables of the role P(cluster.compute.session#role) describe, on the hosts of the play. A session
    that runs is compared with the request, and what it lacks is brought back.
  - Every container of a launch runs and answers by SSH, or nothing of the launch is left.
  - With O(state=absent), ends the session of the variable C(session_name), or all sessions that match it as a pattern.
  - It takes the variables of the role from the task, so they are not listed as options. It runs once for all hosts of the play, on
    the controller.
options:
  state:
    description:
      - V(present) launches or repairs sessions. A session that does not fit waits in the queue.
      - V(absent) ends sessions. What waits is then launched if it fits.
    type: str
    choices: [present, absent]
    default: present
  prepared:
    description:
      - With V(false), nothing is launched if agents must be provisioned or checked, or an image must be built first. RV(unprepared) is
        V(true) then.
    type: bool
    default: true
  avoid:
    description:
      - The agents that get no container of a new session, each with the reason.
    type: dict
    default: {}
extends_documentation_fragment:
  - cluster.compute.attributes
  - cluster.compute.attributes.action
  - cluster.compute.attributes.actiongroup_compute
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details: The whole plan of a launch is the difference.
  idempotent:
    support: full
author:
  - The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.session_queue
  - module: cluster.compute.session_info
"""

EXAMPLES = r"""
- name: Launch a session with four containers
  hosts: agents
  gather_facts: false
  tasks:
    - name: Launch it
      cluster.compute.session:
      vars:
        session_name: train
        session_cluster_size: 4

- name: End all sessions of a sweep
  hosts: agents
  gather_facts: false
  tasks:
    - name: End them
      cluster.compute.session:
        state: absent
      vars:
        session_name: sweep-*
        session_many: true
"""

RETURN = r"""
names:
  description: The names of the sessions.
  type: list
  elements: str
  returned: with O(state=present)
sessions:
  description: The sessions in the store, each with C(id), C(name), C(owner), C(state) and C(reason).
  type: list
  elements: dict
  returned: success
plan:
  description:
    - The plan of the session, which M(cluster.compute.network), M(cluster.compute.containers) and M(cluster.compute.ssh) carry out.
    - It is neither recorded nor reserved. A session that runs has the plan that it was launched with.
  type: dict
  returned: in check mode, if there is one session and it does not wait
unprepared:
  description: Whether something is to be prepared first.
  type: bool
  returned: with O(state=present)
image:
  description: The image of the sessions.
  type: str
  returned: when RV(unprepared)
paths:
  description: Directories of the agents that the sessions mount.
  type: list
  elements: str
  returned: when RV(unprepared)
environment:
  description: The environment that builds the image; empty if the collection has none.
  type: str
  returned: when RV(unprepared)
preflight:
  description: Whether the agents are to be checked first.
  type: bool
  returned: when RV(unprepared)
last_check:
  description:
    - The result of the last check of these agents, if there is a preflight and the result is not too old; otherwise null.
    - C(unfit) has the reason for each agent that failed it, C(unguarded) are the agents whose containers reach overlay
      networks of other sessions, and C(age) is how long ago it was made, such as C(12 min).
  type: dict
  returned: when RV(unprepared)
lines:
  description: The report for people, as lines. The callback P(cluster.compute.progress#callback) has shown them already.
  type: list
  elements: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule

ARGUMENT_SPEC = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "prepared": {"type": "bool", "default": True},
    "avoid": {"type": "dict", "default": {}},
}


def main() -> None:
    """The action plugin does the work; this file documents it."""
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    module.fail_json(msg="cluster.compute.session runs on the controller: call it in a task, by its full name.")


if __name__ == "__main__":
    main()
