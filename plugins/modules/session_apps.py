# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

DOCUMENTATION = r"""
module: session_apps
short_description: Start, restart and end apps in a running session
description:
  - PID 1 of a container runs its apps as the session's user, starts them again when they end, and keeps a log of each.
    This action changes the list of apps, and waits until the apps that it has started are ready. It adds apps to C(main1).
  - Each app has a token. It is in a file of its container that only the session's user reads, and, as a part of the app's URL, in the
    file C(apps) of the session's directory on the controller.
  - It runs once for all hosts of the play, on the controller that launched the session. All agents of the inventory must be hosts of
    the play.
  - Each option has a variable of the playbooks, such as C(session_apps_restart). An option has precedence.
extends_documentation_fragment:
  - cluster.compute.attributes.without_diff
  - cluster.compute.options.session_apps
attributes:
  idempotent:
    support: partial
    details: O(restart) starts apps again each time.
author: The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.session
"""

EXAMPLES = r"""
- name: Start TensorBoard
  cluster.compute.session_apps:
    name: train
    apps:
      - name: tensorboard
        port: 6006
        command: exec tensorboard --logdir /data/runs --host 0.0.0.0 --port 6006
    publish: true
  register: started

- name: Show how it is reached
  ansible.builtin.debug:
    msg: "{{ started.lines }}"
  run_once: true

- name: Start an app again, and end another one
  cluster.compute.session_apps:
    name: train
    restart: [jupyterlab]
    remove: [tensorboard]
"""

RETURN = r"""
apps:
  description: All apps that PID 1 runs.
  type: list
  elements: dict
  returned: success
  contains:
    name: {description: The app's name., type: str, sample: jupyterlab}
    state:
      description: V(starting), V(ready), V(restarting), V(failed), V(ended), or V(unknown) before its first start.
      type: str
      sample: ready
    exit_code: {description: The exit code of its last run; null before its end., type: int}
relays:
  description: The relays that run.
  type: list
  elements: dict
  returned: success
  contains:
    name: {description: The app's name., type: str, sample: tensorboard}
    host_ip: {description: The address of the agent that the relay listens at., type: str, sample: 127.0.0.1}
    port: {description: The port of the agent., type: int, sample: 30001}
lines:
  description: A line for each app, with its state and the command that reaches it from the controller.
  type: list
  elements: str
  returned: success
  sample: ["App tensorboard: ready"]
"""
