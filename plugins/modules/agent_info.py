# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

DOCUMENTATION = r"""
module: agent_info
short_description: Report the resources of an agent and the containers of sessions on it
description:
  - Returns everything that the scheduler needs to know about an agent, from its engine and its kernel.
  - An engine that does not answer is a report with C(reachable=false) and a reason; the module does not fail.
options:
  name: {description: The agent's name in the inventory., type: str, required: true}
  image: {description: An image to look for on the engine., type: str, default: ""}
  paths: {description: Directories and files to look for on the host., type: list, elements: str, default: []}
  measure:
    description: Whether to measure what each running container and each GPU uses now. This takes at least half a second.
    type: bool
    default: false
  apps_of:
    description: The names of the sessions whose apps are looked at. Without it, the apps of all sessions are.
    type: list
    elements: str
  group: {description: The resource groups of the agent., type: list, elements: str, default: [default]}
  schedulable: {description: Whether new sessions may be placed on the agent., type: bool, default: true}
  reserved_cpus: {description: "CPUs that are reserved for the host, such as V(1) or V(0.5).", type: str, default: "0"}
  reserved_memory: {description: "Memory that is reserved for the host, such as V(2g).", type: str, default: "0"}
  cpus: {description: "The number of CPUs of the agent, in place of the engine's own count.", type: str}
  memory: {description: "The memory of the agent, such as V(64g), in place of the engine's own amount.", type: str}
  gpus:
    description:
      - The GPUs of the agent, in place of the GPUs that its kernel shows. Each has an C(id) and, if several sessions
        can share it, a number of C(shares).
    type: list
    elements: dict
  gpu_sharing:
    description: What limits a part of a GPU to its size. V(mps) is NVIDIA's MPS. With V(mig), parts are MIG devices.
    type: str
    choices: [none, mps, mig]
    default: none
  mps_directory: {description: The directory of the sockets of the MPS daemon., type: str, default: /run/nvidia-mps}
  fabric: {description: The network interface of the agent for C(session_fabric)., type: str, default: ""}
  publish:
    description:
      - The address of the agent on which ports are published. V(::) is all addresses.
      - Empty is all addresses of IPv4, and those of IPv6 too if the controller reaches the agent by IPv6.
    type: str
    default: 127.0.0.1
  address: {description: The address at which the controller reaches the agent., type: str, default: 127.0.0.1}
extends_documentation_fragment:
  - cluster.compute.engine
  - cluster.compute.attributes.info
author: The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.session
"""

EXAMPLES = r"""
- name: Get the report of each agent
  cluster.compute.agent_info:
    name: "{{ inventory_hostname }}"
    image: cluster-compute/reference:1
    reserved_cpus: "1"
    reserved_memory: 2g
  register: report
"""

RETURN = r"""
connected:
  description: V(false) if Ansible itself cannot reach the host.
  returned: when the host cannot be reached
  type: bool
  sample: false
lacks:
  description:
    - What the host lacks that a launch can supply first.
    - V(agent) stands for the engine, the SSH runtime of this release or the reference image, V(environment) for the image of an
      environment.
  returned: always
  type: list
  elements: str
  sample: []
agent:
  description:
    - The report.
    - That of a host on which the module cannot run has only C(name), C(group), C(reachable), C(reason) and C(may_return).
  returned: success
  type: dict
  contains:
    name: {description: The agent's name., type: str}
    reachable: {description: Whether the engine answered., type: bool}
    reason: {description: Why it did not answer., type: str}
    may_return:
      description:
        - V(false) if the agent cannot be used and waiting changes nothing, for example without the Docker SDK for Python, or without
          the permission to use the engine.
      type: bool
    architecture: {description: "The host's architecture, as the kernel calls it.", type: str, sample: x86_64}
    capacity:
      description: What sessions can allocate.
      type: dict
      contains:
        millicpus: {description: Thousandths of a CPU., type: int}
        memory: {description: Bytes., type: int}
        gpus:
          description: The GPUs, each with C(id), C(shares), below one for a MIG device, and C(memory) in bytes if parts are limited.
          type: list
          elements: dict
        cpu_ids: {description: The CPUs to which containers can be pinned., type: list, elements: int}
    engine:
      description: The engine.
      type: dict
      contains:
        version: {description: The version of the engine., type: str}
        api: {description: The version of its API., type: str}
        identity: {description: "The ID of the network C(bridge), which no two engines share; empty if it is not known.", type: str}
        rootless: {description: Whether the engine runs without root., type: bool}
        swarm: {description: "Its Swarm membership, as C(docs/contracts.md) describes it.", type: dict}
    limits:
      description: The limits that a container can get; -1 means unlimited, 0 not known.
      type: dict
      contains:
        nofile: {description: Open files., type: int, sample: 1048576}
        memlock: {description: Bytes that can be locked in memory., type: int, sample: -1}
    kernel:
      description: Limits of the kernel and of the engine that bound the number of containers. What cannot be read is left out.
      type: dict
      sample: {neighbours: 1024, processes: 4194304, inotify: 128, files: 1048576}
    overlay_guard:
      description:
        - Whether an agent of a Swarm has the rules that keep containers from sending frames into overlay networks.
        - A user who is not root sees the record of the last look at the rules, which systemd renews each minute.
      type: dict
      contains:
        state:
          description: Whether the rules are there, V(present) or V(missing). Empty without a Swarm, or where the user cannot see it.
          type: str
        port: {description: "The UDP port of the rules, or 0.", type: int, sample: 4789}
    paths: {description: Which of O(paths) exist., type: dict}
    image:
      description: The image O(image).
      type: dict
      contains:
        reference: {description: The reference of the image., type: str}
        present: {description: Whether the image exists., type: bool}
        id: {description: The ID of the image., type: str}
        architecture: {description: The architecture of the image., type: str}
    runtime:
      description: The SSH runtime.
      type: dict
      contains:
        volume: {description: The name of the volume., type: str}
        present: {description: Whether the volume exists., type: bool}
    mtu: {description: The MTU of the network between the agents., type: int, sample: 1500}
    routes: {description: The networks that the host has a route to., type: list, elements: str}
    needed_addresses:
      description: The gateways and name servers of the host, and the address that the controller connects from.
      type: list
      elements: str
    networks: {description: The engine's networks., type: list, elements: dict}
    ports: {description: The TCP ports that are in use on the host., type: list, elements: int}
    names: {description: The names of the engine's containers that belong to no session., type: list, elements: str}
    containers:
      description:
        - The containers of sessions, by session and rank.
        - With O(measure=true), each has C(measured) with C(millicpus), C(memory) in bytes and C(gpus), or null if it could not be
          measured.
      type: list
      elements: dict
    gpu_use:
      description: What each GPU of the host does; empty without O(measure=true).
      type: list
      elements: dict
      contains:
        id: {description: The UUID of the device., type: str}
        percent: {description: Its utilization in percent., type: int}
        memory: {description: Bytes of its memory that are in use., type: int}
        capacity: {description: Bytes of its memory., type: int}
    gpu_health:
      description: The health of each NVIDIA GPU; empty on a host without C(nvidia-smi). No session is placed on a red GPU.
      type: list
      elements: dict
      contains:
        id: {description: The UUID of the device., type: str}
        state: {description: "C(green), C(yellow) or C(red).", type: str}
        reasons: {description: What is wrong with it., type: list, elements: str, sample: [it must be reset]}
    gpu_sharing:
      description: C(kind) is what limits parts of GPUs, and C(reason) why sessions get none of them, or empty.
      type: dict
    fabric:
      description: C(interface) is the network interface for the fabric, and C(reason) why sessions cannot use it, or empty.
      type: dict
    host_network:
      description: C(address) of the agent for other hosts, C(interface) with this address, and C(reason) why sessions cannot use it.
      type: dict
    rdma_ports:
      description: The ports of the host's RDMA devices.
      type: list
      elements: dict
      contains:
        name: {description: "Device and port, as UCX and NCCL name them.", type: str, sample: mlx5_0:1}
        link_layer: {description: "C(InfiniBand), or C(Ethernet) for RoCE.", type: str}
        active: {description: Whether its link is up., type: bool}
        fabric: {description: Whether it is a port of the interface for the fabric., type: bool}
        host: {description: Whether it has a RoCE v2 GID for the address of an interface of the host., type: bool}
    ignored_containers:
      description: Containers that claim to belong to a session, and that every command ignores because a label cannot be read.
      type: list
      elements: dict
      contains:
        engine_name: {description: The container's name in the engine., type: str, sample: alice.train.main1}
        label: {description: The first label that cannot be read., type: str, sample: cluster.compute.container.resources}
    silent_folders:
      description: Folders of this host that containers of sessions mount and that do not answer, as those of a lost file server.
      type: list
      elements: str
duration: {description: Seconds that the call took., type: float, returned: always}
"""
