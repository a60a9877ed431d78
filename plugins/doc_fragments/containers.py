# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of the module C(containers). Private to this collection."""

from __future__ import annotations


class ModuleDocFragment:
    """What is done with the containers of a session, on which agents, and within which time."""

    DOCUMENTATION = r"""
options:
  state:
    description:
      - V(created) creates the containers, so that files can be installed in them before their first start. A stopped container
        is kept with its files. A container that an earlier launch created and never started is created again.
      - V(started) starts the containers that do not run, and checks a moment later that they still run.
      - V(stopped) stops the containers that run. Their files stay. Every program in them receives SIGTERM, in all containers
        at once, and SIGKILL if it still runs after the grace of its session.
      - V(limited) writes the session's lifetime and idle timeout into the containers that run, where they differ.
      - V(absent) stops the containers that run, and removes all of them, with their anonymous volumes and the volumes that the
        session defines. A volume that another container mounts is kept, and is removed with the last session that mounts it.
    type: str
    choices: [created, started, limited, stopped, absent]
    default: started
  agent:
    description:
      - The name of this host in the plan.
    type: str
    required: true
  plan:
    description:
      - The plan, as M(cluster.compute.session) returns it in check mode. Required, unless O(sessions) is set for O(state=stopped) or
        O(state=absent).
      - C(schema) is the version of its format. C(session) is the session, with its C(id), C(name), C(owner), C(size), C(image),
        C(user) and scripts. C(network) is its network, with its C(name), C(driver), C(subnet), C(mtu) and C(labels).
      - C(containers) are the containers in rank order, each with its C(name), C(agent), C(address), C(resources), C(ports) and
        C(labels).
    type: dict
  sessions:
    description:
      - The UUIDs of the sessions whose containers are stopped or removed, for O(state=stopped) and O(state=absent).
    type: list
    elements: str
  launch:
    description:
      - The UUID of a launch. If set, O(state=absent) removes only the containers of this launch.
    type: str
    default: ""
  parallelism:
    description:
      - The number of parallel requests to the engine. If not set, 8.
    type: int
  deadline:
    description:
      - Seconds, after the programs have ended, during which a removal is repeated if the engine refuses it.
    type: int
    default: 60
  logs:
    description:
      - The logs to read for O(state=absent), after the programs have ended and before the containers are removed.
        RV(logs) has them.
    type: dict
    suboptions:
      session:
        description: The UUID of the session whose logs are read.
        type: str
        required: true
      tail:
        description: The number of last lines of each log. If not set, all lines.
        type: int
      total:
        description: The number of bytes of all these logs together. Each log has at least 4096.
        type: int
        default: 67108864
      deadline:
        description: Seconds for reading the logs.
        type: int
        default: 60
  stop_timeout:
    description:
      - Seconds between SIGTERM and SIGKILL, for O(state=stopped). If not set, the grace of each session.
      - The programs have at most the grace of their session.
    type: int
  bootstrap_timeout:
    description:
      - Seconds that the session's bootstrap script may take in each container, for O(state=started).
    type: int
    default: 300
  install_ssh:
    description:
      - Whether the containers that have never been started get what M(cluster.compute.ssh) installs. For O(state=started), PID 1 of
        each container unpacks it before it does anything else. For O(state=created), the engine unpacks it, which takes longer.
    type: bool
    default: false
  network:
    description:
      - Whether O(state=created) first does what M(cluster.compute.network) does with C(state=present), and O(state=absent) at last
        what it does with C(state=absent) for the networks that are on this engine alone.
    type: bool
    default: false
  runtime_volume:
    description:
      - The volume that holds the SSH runtime.
      - If empty, the newest complete volume with the scripts of this release.
    type: str
    default: ''
notes:
  - Containers have the restart policy C(no). A container that ends stays stopped, so that its exit code and an out-of-memory
    kill are reported. Another launch of the session starts it again with its name, address and files.
  - The limits for open files and locked memory are as high as the host allows.
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details: Shows the state of each container, but not its environment.
  idempotent:
    support: full
seealso:
  - module: cluster.compute.network
  - module: cluster.compute.session
"""
