# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan and its parts: the session with its apps, its network, its containers and their resources.

Amounts are integers (thousandths of a CPU, bytes), so that sums never drift. docs/contracts.md shows each document.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field, replace
from typing import Any, List, Mapping, Optional, Sequence, Tuple

from ..codec import NOT_IN_DIGEST, Document, Json, completed, decoded, shortened
from ..constants import GRACE, HOST, MASTER_PORT, MIG_DEVICE, PRIVATE, RESTART_ALL, SCHEMA, SSH_PORT

# The command that stands for ENTRYPOINT and CMD of the image.
IMAGE_COMMAND = "image"
# In the path of an app, the place of its token.
TOKEN = "{token}"


@dataclass(frozen=True)
class App(Document):
    """An app: its port is published on the agent of ``main1``, on loopback unless it is public.

    PID 1 runs ``command``; without a command only the port is published. ``ready`` is a path that answers, or a TCP port that
    is listened at, as soon as the app is ready. ``path`` is that of the URL for a browser.
    """

    name: str
    port: int
    preferred_port: int = 0
    public: bool = False
    command: str = ""
    ready: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    path: str = "/"

    def access(self, address: str, port: int, token: str) -> str:
        """The URL for a browser, followed by the token if the URL lacks it: the page may ask for it. Secret.

        >>> App("lab", 8888, path="/lab?token={token}").access("127.0.0.1", 30001, "abc")
        'http://127.0.0.1:30001/lab?token=abc'
        >>> App("code", 8443, path="/login").access("127.0.0.1", 30001, "abc")
        'http://127.0.0.1:30001/login abc'
        """
        host = f"[{address}]" if ":" in address else address
        path = self.path.replace(TOKEN, token) if TOKEN in self.path else f"{self.path} {token}"
        return "http://%s:%d%s" % (host, port, path)


@dataclass(frozen=True)
class Gpu(Document):
    """A GPU with its number of shares, below one for a MIG device; or what a container has of it: 1.0 is all. ``memory`` limits it."""

    id: str
    shares: float = 1.0
    memory: int = 0

    @property
    def limit(self) -> str:
        """Return what limits a part to its size; empty if nothing does."""
        return "" if not self.memory else "MIG" if self.id.startswith(MIG_DEVICE) else "MPS"


@dataclass(frozen=True)
class Resources(Document):
    """A container's resources. ``cpuset`` is empty unless its CPUs are pinned; ``fabric``: its session has the agent's fabric."""

    millicpus: int = 0
    memory: int = 0
    shm: int = 0
    gpus: Tuple[Gpu, ...] = ()
    cpuset: str = ""
    fabric: bool = False

    @property
    def devices(self) -> Tuple[str, ...]:
        """The IDs of its GPUs, each once."""
        return tuple(dict.fromkeys(gpu.id for gpu in self.gpus))

    @property
    def mps(self) -> Optional[Gpu]:
        """The part of a GPU that MPS limits, if this is one: a container has no other GPU then."""
        return next((gpu for gpu in self.gpus if gpu.limit == "MPS"), None)

    @property
    def slots(self) -> int:
        """The processes of an MPI program: one for each GPU, else for each whole CPU."""
        return len(self.devices) or max(1, self.millicpus // 1000)


@dataclass(frozen=True)
class Port(Document):
    """A port of ``main1`` published on its agent."""

    name: str
    container_port: int
    host_ip: str
    host_port: int


@dataclass(frozen=True)
class Mount(Document):
    """A data folder: the same in every container. ``options`` are a named volume's driver options (NFS …).

    A volume that is ``local`` may be a different folder on each agent.
    """

    source: str
    target: str
    type: str = "bind"
    mode: str = "rw"
    options: Mapping[str, str] = field(default_factory=dict)
    local: bool = field(default=False, metadata=NOT_IN_DIGEST)


@dataclass(frozen=True)
class User(Document):
    """The account inside every container."""

    name: str = "work"
    uid: int = 1000
    gid: int = 1000
    home: str = "/home/work"


@dataclass(frozen=True)
class Secret(Document):
    """A secret without its value, which only the controller has, as it has the path of its file.

    ``environment`` names the variable that has the value, too; empty for none.
    """

    name: str
    environment: str = ""


@dataclass(frozen=True)
class Role(Document):
    """A role with all that its containers have; what the user did not give is the session's.

    ``environment`` has only the role's own variables. ``ready`` is a port, a port and a path, or a command. This role starts
    when the roles in ``after`` are ready. Its ``apps`` run in its first container.
    """

    name: str = ""
    size: int = 1
    image: str = ""
    millicpus: int = 0
    memory: int = 0
    shm: int = 0
    gpus: float = 0.0
    pinned: bool = False
    group: str = ""
    per_agent: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    ready: str = ""
    after: Tuple[str, ...] = ()
    compute: bool = True
    apps: Tuple[App, ...] = ()


@dataclass(frozen=True)
class Session(Document):
    """The session of a plan. It repeats the settings of the request, whose defaults are in C(declaration).

    ``mode`` is the mode that placement chose, and ``request`` the digest of the request. ``lifetime`` counts from ``began``, the
    time of the placement. Every container has the ``mounts``, and ``main1`` has the ``apps``. With ``own_volumes``, a volume without
    options must have been created by a session of this owner. ``permitted_folders`` are directories that the site's policy permits
    and that hold the mounts: no link is followed below them.
    """

    id: str
    name: str
    owner: str
    group: str
    launch: str
    mode: str
    size: int
    image: str
    request: str
    grace: int = GRACE
    lifetime: int = field(default=0, metadata=NOT_IN_DIGEST)
    idle_timeout: int = field(default=0, metadata=NOT_IN_DIGEST)
    pids: int = 32768
    log_size: int = 100 << 20
    log_files: int = 3
    disk: int = 0
    no_new_privileges: bool = False
    read_only_root: bool = False
    rdma: bool = False
    fabric: bool = False
    network: str = PRIVATE
    bootstrap: str = ""
    authorized_keys: Tuple[str, ...] = ()
    command: str = ""
    command_timeout: int = 0
    terminate_when_done: bool = False
    on_failure: str = "keep"
    restarts: int = 3
    on_lost: str = "keep"
    lost_after: int = 300
    user: User = field(default_factory=User)
    began: float = 0.0
    mounts: Tuple[Mount, ...] = ()
    apps: Tuple[App, ...] = ()
    secrets: Tuple[Secret, ...] = ()
    own_volumes: bool = field(default=False, metadata=NOT_IN_DIGEST)
    permitted_folders: Tuple[str, ...] = ()
    roles: Tuple[Role, ...] = ()

    @property
    def sizes(self) -> Tuple[int, ...]:
        """The size of each role; without roles, of the session."""
        return tuple(role.size for role in self.roles) or (self.size,)

    @property
    def limits(self) -> str:
        r"""The file that PID 1 reads; empty without a limit.

        >>> Session("", "", "", "", "", "", 1, "", "", lifetime=60, began=1000.5, idle_timeout=20).limits
        'lifetime 60 1000\\nidle 20\\n'
        >>> Session("", "", "", "", "", "", 1, "", "", command="true", terminate_when_done=True).limits
        'command 1\\n'
        """
        lifetime = "lifetime %d %d\n" % (self.lifetime, self.began) if self.lifetime else ""
        idle = "idle %d\n" % self.idle_timeout if self.idle_timeout else ""
        return lifetime + idle + ("command %d\n" % self._ends_with_command if self._ends_with_command else "")

    @property
    def _ends_with_command(self) -> int:
        """Return whether PID 1 ends the session after its command: 0 never, 1 always, 2 after a failure, 3 after a success.

        A failure with C(restart_all) is left to a pass: if a container has died, all restart.
        """
        if not self.command:
            return 0
        if self.terminate_when_done:
            return 3 if self.on_failure == RESTART_ALL else 1
        return 2 if self.on_failure == "terminate" else 0

    def role(self, name: str) -> Role | None:
        """The role of this name; None in a session without roles."""
        return next((role for role in self.roles if role.name == name), None)

    def image_of(self, container: Container) -> str:
        role = self.role(container.role)
        return role.image if role else self.image

    def command_of(self, container: Container) -> str:
        """Return what PID 1 runs once: on ``main1`` the batch command, elsewhere the command of the role."""
        role = self.role(container.role)
        return self.command if container.rank == 0 else role.command if role else ""

    def computes(self, container: Container) -> bool:
        """Return whether a container has a rank, and a place in the hostfiles."""
        role = self.role(container.role)
        return role is None or role.compute


@dataclass(frozen=True)
class Network(Document):
    """The session's private network, or with the driver C(host) that of its agents: ``subnet`` is the smallest with their addresses.
    ``fabric`` is the subnet of its second network, if it has one. Containers listen at ``ssh_port`` and ``master_port``.
    """

    name: str
    driver: str
    subnet: str
    gateway: str
    ip_range: str
    mtu: Optional[int] = None
    encrypted: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    fabric: str = ""
    ssh_port: int = SSH_PORT
    master_port: int = MASTER_PORT

    @property
    def is_of_host(self) -> bool:
        return self.driver == HOST

    @property
    def fabric_name(self) -> str:
        """The engine's name of the network on the fabric.

        The engine sends what leaves a container through the first of its networks in the order of their names that has a gateway.
        On an agent alone that is the private network, beside an overlay C(docker_gwbridge).
        """
        return f"fabric-{self.name}" if self.driver == "overlay" else f"{self.name}-fabric"

    @property
    def fabric_interface(self) -> str:
        """The name of the interface on the fabric in every container: on an overlay, C(docker_gwbridge) has had eth1 before."""
        return "eth2" if self.driver == "overlay" else "eth1"

    def names_of(self, hostname: str, address: str) -> Tuple[Tuple[str, str], ...]:
        """The names of a container with their addresses: its hostname in the private network, then its name on the fabric."""
        on_fabric = ((f"{hostname}-fabric", self.on_fabric(address)),) if self.fabric else ()
        return ((hostname, address), *on_fabric)

    def on_fabric(self, address: str) -> str:
        """The address of a container on the fabric, which has the same place in its subnet as its address has in the private one."""
        own, fabric = (ipaddress.IPv4Network(subnet).network_address for subnet in (self.subnet, self.fabric))
        return str(fabric + (int(ipaddress.IPv4Address(address)) - int(own)))


@dataclass(frozen=True)
class Container(Document):
    """A member of a session, with everything that an agent needs to create it. ``interface`` has its address."""

    id: str
    name: str
    hostname: str
    role: str
    index: int
    rank: int
    local_rank: int
    agent: str
    address: str
    resources: Resources
    ports: Tuple[Port, ...] = ()
    interface: str = "eth0"
    environment: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan(Document):
    """The one document: the session, its network and every container, in rank order.

    The part of one agent has only that agent's containers, and the hostname and address of all containers as ``peers``.
    """

    session: Session
    network: Network
    containers: Tuple[Container, ...]
    peers: Tuple[Tuple[str, str], ...] = ()

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Plan:
        return decoded(cls, {**data, "containers": completed(data)})

    def to_json(self) -> Json:
        document = super().to_json()
        if not self.peers:
            del document["peers"]
        return {"schema": SCHEMA, **document}

    def to_short_json(self) -> Json:
        """The same document with the texts that the containers share in one place, for our own steps and the store."""
        return shortened(self.to_json())

    def to_parameter(self) -> Json:
        return self.to_short_json()

    def part(self, agent: str) -> Plan:
        """The plan for one agent: what grows with the session is the list of its hostnames and addresses."""
        return replace(self, containers=tuple(self.on(agent)), peers=self.addresses)

    @property
    def addresses(self) -> Tuple[Tuple[str, str], ...]:
        """The hostname and address of every container, in rank order."""
        return self.peers or tuple((container.hostname, container.address) for container in self.containers)

    @property
    def names(self) -> Tuple[Tuple[str, str], ...]:
        """All names of every container, with their addresses."""
        return tuple(pair for place in self.addresses for pair in self.network.names_of(*place))

    @property
    def agents(self) -> List[str]:
        """The agents that hold a container, in the order of their first rank."""
        return list(dict.fromkeys(container.agent for container in self.containers))

    @property
    def main(self) -> Container:
        return self.containers[0]

    @property
    def images(self) -> Mapping[str, Tuple[str, ...]]:
        """The images of the containers, each with the agents that need it."""
        pairs = [(self.session.image_of(container), container.agent) for container in self.containers]
        return {image: tuple(dict.fromkeys(agent for other, agent in pairs if other == image)) for image in dict(pairs)}

    def of_roles(self, roles: Sequence[str]) -> Plan:
        """The containers of these roles, which know the addresses of all."""
        some = tuple(container for container in self.containers if container.role in roles)
        return replace(self, containers=some, peers=self.addresses)

    def on(self, agent: str) -> List[Container]:
        """The containers of one agent, in rank order."""
        return [container for container in self.containers if container.agent == agent]
