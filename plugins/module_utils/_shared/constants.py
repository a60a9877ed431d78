# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values that more than one package needs: paths, ports and the names of modes."""

from __future__ import annotations

# The version of the documents that docs/contracts.md describes.
SCHEMA = 1
# The largest amount of anything, such as bytes, in documents.
MOST_AMOUNT = 1 << 60

# The role of a relay, a container that belongs to a session but is not one of its members.
RELAY_ROLE = "relay"

# The SSH runtime: a volume of each agent, mounted read-only into every container. Its name ends with a digest of its content,
# its edition is a digest of the scripts in it.
RUNTIME_VOLUME_PREFIX = "cluster-compute-runtime-"
RUNTIME_PATH = "/opt/cluster-compute"
# PATH in containers, with the PATH of the image or the user between the folders of the runtime.
SEARCH_PATH = f"{RUNTIME_PATH}/unprivileged:%s:{RUNTIME_PATH}/bin"
REFERENCE_IMAGE = "cluster-compute/reference:1"

# Paths inside a container.
CONFIG_FOLDER = "/etc/cluster-compute"
# Docker's own folder for secrets: https://docs.docker.com/engine/swarm/secrets/
SECRETS_FOLDER = "/run/secrets"
MPI_HOSTFILE = "/etc/mpi/hostfile"
HYDRA_HOSTFILE = "/etc/mpi/hydra"
# https://www.deepspeed.ai/getting-started/#resource-configuration-multi-node
DEEPSPEED_HOSTFILE = "/job/hostfile"
# For parallel shells: pdsh, ClusterShell and GNU parallel.
HOSTNAMES_FILE = CONFIG_FOLDER + "/hostnames"
CLUSTERSHELL_FOLDER = CONFIG_FOLDER + "/clustershell"
PARALLEL_LOGINS = "/etc/parallel/sshloginfile"
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# Seconds between TERM and KILL at the end of a container, if its session says nothing else.
GRACE, LONGEST_GRACE = 10, 3600

# Values of session_on_failure and session_on_lost.
RESTART_ALL = "restart_all"
RELOCATE = "relocate"

SSH_PORT = 22
# Where an agent publishes a port: at all its addresses of IPv4, or of both families.
ALL_ADDRESSES, ALL_FAMILIES = "0.0.0.0", "::"
MASTER_PORT = 12345

# A session has at most so many containers: a bridge has 1,023 ports. https://github.com/moby/moby/issues/44973
LARGEST = 1000
SINGLE_NODE = "single-node"
MULTI_NODE = "multi-node"
# Values of session_network, of which the engine knows the second.
PRIVATE, HOST = "private", "host"

# A bridge of the kernel has so many ports, one for each container of its network: BR_MAX_PORTS in net/bridge/br_private.h.
BRIDGE_PORTS = 1023
# What VXLAN adds to every packet: https://www.rfc-editor.org/rfc/rfc7348
VXLAN_OVERHEAD = 50
# The data path port of a Swarm that was created without another: https://docs.docker.com/reference/cli/docker/swarm/init/
VXLAN_PORT = 4789

# The device nodes of InfiniBand and RoCE.
RDMA_FOLDER = "/dev/infiniband"
ROCE_V2 = "RoCE v2"

DOCKER_HOST = "unix:///var/run/docker.sock"

# The folder of the session store that all users of a head share.
STATE_DIR = "/var/lib/cluster-compute"
# The policy of the site, which only root may write.
POLICY_FILE = "/etc/cluster-compute/policy.json"
# The ID of a MIG device begins with it.
MIG_DEVICE = "MIG-"
# Values of session_torchrun.
NONE, STATIC, ELASTIC = TORCHRUN_MODES = ("none", "static", "elastic")
# The roles of every session.
MAIN, SUB = "main", "sub"
# The last character is a letter: a hostname is the name of a role and a number.
ROLE_NAME = "[a-z](?:[a-z0-9-]{0,14}[a-z])?"
# The directory of the controller with a directory for each session.
SESSION_DIRS = "~/.cluster-compute"
