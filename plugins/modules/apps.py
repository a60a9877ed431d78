#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: apps
short_description: Start, restart and end apps in a running session, or wait for them
description:
  - PID 1 of C(main1) runs the apps of a session as the session's user, starts them again when they end, and keeps a log of each.
    This module changes the list that PID 1 reads, and waits until the apps are ready.
  - Each app has a token, which is derived from the secret of the session on the controller. It is in a file of C(main1) that
    only the session's user reads, and, as a part of the app's URL, in the file C(apps) of the session's folder on the controller.
options:
  state:
    description:
      - V(ready) waits for O(apps), which a launch has installed.
      - V(present) adds O(apps), or replaces apps of the same name, starts those of O(restart) again, ends those of O(remove), and
        waits until what it has started is ready.
    type: str
    choices: [ready, present]
    default: ready
  session:
    description:
      - The session's ID.
    type: str
    required: true
  agent:
    description:
      - The name of the agent that holds C(main1).
    type: str
    required: true
  apps:
    description:
      - The apps, each with C(name), C(port), C(command), C(ready), C(environment) and C(path).
    type: list
    elements: dict
    default: []
  restart:
    description:
      - Names of apps to start again, for V(state=present).
    type: list
    elements: str
    default: []
  remove:
    description:
      - Names of apps to end, for V(state=present).
    type: list
    elements: str
    default: []
  publish:
    description:
      - Names of those of O(apps) whose ports a relay publishes, for V(state=present). A relay is a small container of the session
        on this agent. It ends with C(main1), and every end of the session removes it.
    type: list
    elements: str
    default: []
  ports:
    description:
      - The ports of the agent that relays may publish, as FIRST-LAST.
    type: str
    default: 30000-31000
  user:
    description:
      - The C(uid) and C(gid) of the session's user, for V(state=present).
    type: dict
    default: {}
  deadline:
    description:
      - Seconds within which the apps must be ready.
    type: int
    default: 120
  tokens:
    description:
      - The tokens of the apps, for V(state=present).
    type: str
extends_documentation_fragment:
  - cluster.compute.attributes
  - cluster.compute.attributes.action
  - cluster.compute.attributes.actiongroup_compute
  - cluster.compute.engine
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: partial
    details:
      - O(restart) starts apps again each time.
author:
  - The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.batch
  - module: cluster.compute.logs_info
"""

EXAMPLES = r"""
- name: Wait for the apps of a launch
  cluster.compute.apps:
    state: ready
    session: "{{ scheduled.plan.session.id }}"
    agent: "{{ inventory_hostname }}"
    apps: "{{ scheduled.plan.session.apps }}"

- name: Start an app again
  cluster.compute.apps:
    state: present
    session: "{{ document.session.id }}"
    agent: "{{ document.containers[0].agent }}"
    restart: [jupyterlab]
"""

RETURN = r"""
apps:
  description: With V(state=present) all apps that PID 1 runs, otherwise O(apps).
  type: list
  elements: dict
  returned: success
  contains:
    name:
      description: The app's name.
      type: str
      returned: always
      sample: jupyterlab
    state:
      description: V(starting), V(ready), V(restarting), V(failed), V(ended), or V(unknown) before its first start.
      type: str
      returned: always
      sample: ready
    exit_code:
      description: The exit code of its last run; null before its end.
      type: int
      returned: always
relays:
  description: The relays that run.
  type: list
  elements: dict
  returned: with O(state=present)
  contains:
    name:
      description: The app's name.
      type: str
      returned: always
      sample: tensorboard
    host_ip:
      description: The address of the agent that the relay listens at.
      type: str
      returned: always
      sample: 127.0.0.1
    port:
      description: The port of the agent.
      type: int
      returned: always
      sample: 30001
duration:
  description: Seconds that the call took.
  type: float
  returned: success
  sample: 3.1
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.apps import App
from ..module_utils._core.documents import Json
from ..module_utils._core.errors import InputError
from ..module_utils._core.model import User
from ..module_utils._docker.apps import Apps
from ..module_utils._docker.client import Engine
from ..module_utils._docker.data_folders import check_mounts_answer
from ..module_utils._docker.relays import Relays
from ..module_utils._module import at_least, engine_options, run
from ..module_utils._planning.addresses import parse_port_range
from ..module_utils._ssh.app_files import running
from ..module_utils._ssh.app_installer import AppInstaller, parse_tokens

ARGUMENT_SPEC = {
    "state": {"type": "str", "choices": ["ready", "present"], "default": "ready"},
    "session": {"type": "str", "required": True},
    "agent": {"type": "str", "required": True},
    "apps": {"type": "list", "elements": "dict", "default": []},
    "restart": {"type": "list", "elements": "str", "default": []},
    "remove": {"type": "list", "elements": "str", "default": []},
    "publish": {"type": "list", "elements": "str", "default": []},
    "ports": {"type": "str", "default": "30000-31000"},
    "user": {"type": "dict", "default": {}},
    "deadline": {"type": "int", "default": 120},
    "tokens": {"type": "str", "no_log": True},
    **engine_options(),
}

RULES = {"supports_check_mode": True}


def work(params: Json, check_mode: bool) -> Json:
    at_least(params, timeout=1, deadline=1)
    apps = running([App.from_json(app) for app in params["apps"]])
    engine = Engine(params["docker_host"], params["timeout"], params["agent"])
    observed = Apps(engine, params["session"], params["agent"])
    check_mounts_answer([observed.main()], params["agent"])
    started = [app.name for app in apps]
    if params["state"] == "ready":
        return {"changed": False, "apps": [one.to_json() for one in observed.wait(started, params["deadline"])]}
    if not params["tokens"]:
        raise InputError("tokens", None, "is missing; use cluster.compute.session_apps, which sets it")
    installer = AppInstaller(observed, User.from_json(params["user"]), check_mode)
    changed = installer.change(apps, parse_tokens(params["tokens"]), params["restart"], params["remove"])
    if not check_mode:
        observed.wait([*started, *params["restart"]], params["deadline"])
    relays = Relays(engine, observed.main(), parse_port_range(params["ports"]), check_mode)
    changed = relays.change([app for app in apps if app.name in params["publish"]], params["remove"]) or changed
    return {
        "changed": changed,
        "apps": [observed.status(name).to_json() for name in installer.listed()],
        "relays": relays.published(),
    }


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
