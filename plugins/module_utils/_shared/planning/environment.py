# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The environment variables of a container: docs/architecture.md §6 has the table.

Containers that compute together have ranks, and the cluster of TensorFlow. A ``torchrun`` without options trains over the session
only on request: it reads the default of each of its options from a variable ``PET_…``, and with a PET_NNODES
that is no range, ``torchrun --standalone`` waits for other containers. https://docs.pytorch.org/docs/stable/elastic/run.html
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Dict, Mapping, Sequence, Tuple

from ..constants import CLUSTERSHELL_FOLDER, HOSTNAMES_FILE, HYDRA_HOSTFILE, MAIN, MPI_HOSTFILE
from ..documents.plan import Container, Network, Role, Session
from ..documents.topology import members, replicas


def common_environment(session: Session, network: Network, containers: Sequence[Container]) -> Dict[str, str]:
    """The variables that all containers of a session have. Their texts name all ``containers``: they are made once.

    On the network of its hosts, the addresses take the place of a subnet, which may contain other interfaces.
    """
    subnet = ",".join(f"{one.address}/32" for one in containers) if network.is_of_host else network.subnet
    return {
        "BACKENDAI_CLUSTER_SIZE": str(session.size),
        "BACKENDAI_CLUSTER_HOSTS": ",".join(member.hostname for member in containers),
        "BACKENDAI_CLUSTER_REPLICAS": replicas([member.role for member in containers]),
        "BACKENDAI_CLUSTER_MODE": session.mode,
        "BACKENDAI_SESSION_ID": session.id,
        "BACKENDAI_SESSION_NAME": session.name,
        # MPICH and its family: https://github.com/pmodels/mpich/blob/main/doc/wiki/how_to/Using_the_Hydra_Process_Manager.md
        "HYDRA_HOST_FILE": HYDRA_HOSTFILE,
        # MPICH fails where the engine's seccomp profile denies process_vm_readv.
        "MPIR_CVAR_CH4_CMA_ENABLE": "0",
        # pdsh, whose default is rsh, contacts all containers; clush -a and its groups likewise.
        "PDSH_RCMD_TYPE": "ssh",
        "WCOLL": HOSTNAMES_FILE,
        "CLUSTERSHELL_CFGDIR": CLUSTERSHELL_FOLDER,
        # Open MPI 4: https://www.open-mpi.org/faq/?category=tcp#tcp-selection
        "OMPI_MCA_btl_tcp_if_include": network.fabric or subnet,
        "OMPI_MCA_oob_tcp_if_include": subnet,
        "OMPI_MCA_orte_default_hostfile": MPI_HOSTFILE,
        # The engine's seccomp profile denies process_vm_readv: ranks of one container exchange through shared memory
        # instead. Open MPI 5 detects that, Open MPI 4 warns at every large message.
        "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
        # Open MPI 5 starts its processes through PRRTE: https://docs.open-mpi.org/en/v5.0.x/launching-apps/
        "PRTE_MCA_prte_if_include": subnet,
        "PRTE_MCA_prte_default_hostfile": MPI_HOSTFILE,
    }


def own_environment(session: Session, network: Network, container: Container) -> Dict[str, str]:
    """The variables of one container.

    Some make the usual libraries use the session's network, by the name of its interface. With a fabric, what MPI programs exchange
    goes through it, and the launcher stays in the private network.
    The engine names the interface of the first network eth0, and that of C(docker_gwbridge), which an overlay brings, eth1.
    The name keeps NCCL, Gloo and UCX off the gateway, through which no other container answers.
    """
    interface = network.fabric_interface if network.fabric else container.interface
    return {
        "BACKENDAI_CLUSTER_HOST": container.hostname,
        "BACKENDAI_CLUSTER_IDX": str(container.index),
        "BACKENDAI_CLUSTER_ROLE": container.role,
        "BACKENDAI_CLUSTER_LOCAL_RANK": str(container.rank),
        "BACKENDAI_KERNEL_ID": container.id,
        **ranks_of(session, container, network.master_port),
        **tf_config(session, container, network.master_port),
        "OMP_NUM_THREADS": str(max(1, container.resources.millicpus // 1000)),
        # https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html ("=" asks for the exact name)
        "NCCL_SOCKET_IFNAME": "=" + interface,
        # https://pytorch.org/docs/stable/distributed.html#choosing-the-network-interface-to-use
        "GLOO_SOCKET_IFNAME": interface,
        "TP_SOCKET_IFNAME": interface,
        # https://openucx.readthedocs.io/en/master/running.html
        "UCX_NET_DEVICES": interface,
    }


CHIEF, PS, WORKER, EVALUATOR = "chief", "ps", "worker", "evaluator"


def computing_ranks(session: Session) -> Mapping[str, int]:
    """The rank of each container that computes, by its hostname. Without roles, all of them compute."""
    return _ranks(session.size, tuple((role.name, role.size, role.compute) for role in session.roles))


@lru_cache(maxsize=4)
def _ranks(size: int, roles: Tuple[Tuple[str, int, bool], ...]) -> Mapping[str, int]:
    everyone = members(size, [Role(name, count) for name, count, _computes in roles])
    idle = {name for name, _count, computes in roles if not computes}
    computing = [member.hostname for member in everyone if member.role not in idle]
    return {hostname: rank for rank, hostname in enumerate(computing)}


def ranks_of(session: Session, container: Container, port: int) -> Dict[str, str]:
    """The place of a container among those that compute. The others have no rank: with one, they would join the training."""
    ranks = computing_ranks(session)
    master = {"MASTER_ADDR": next(iter(ranks)), "MASTER_PORT": str(port)}
    if container.hostname not in ranks:
        return master
    rank = str(ranks[container.hostname])
    return {
        "WORLD_SIZE": str(len(ranks)),
        "WORLD_RANK": rank,
        "RANK": rank,
        "LOCAL_RANK": str(container.local_rank),
        **master,
        # Read by Lightning, and by launchers that start one process for each container.
        "NODE_RANK": rank,
    }


def tf_config(session: Session, container: Container, port: int) -> Dict[str, str]:
    """The variable TF_CONFIG: https://www.tensorflow.org/guide/distributed_training#TF_CONFIG

    With a role C(ps), C(worker) or C(evaluator), C(main1) is the chief, and containers of other roles have no part. Otherwise all that
    compute are workers.
    """
    sizes = {role.name: role.size for role in session.roles}
    if not {PS, WORKER, EVALUATOR} & set(sizes):
        ranks = computing_ranks(session)
        if container.hostname not in ranks:
            return {}
        return _variable('{"worker": %s}' % _addresses(tuple(ranks), port), WORKER, ranks[container.hostname])
    # Without parameter servers, the chief computes, too.
    has_chief = PS in sizes or "main1" in computing_ranks(session)
    tasks = {**({MAIN: CHIEF} if has_chief else {}), PS: PS, WORKER: WORKER}
    # An evaluator is no part of the cluster that the others connect to.
    kind = {**tasks, EVALUATOR: EVALUATOR}.get(container.role)
    if kind is None:
        return {}
    hostnames = {
        task: tuple("%s%d" % (role, index + 1) for index in range(sizes.get(role, 0))) for role, task in tasks.items()
    }
    parts = ['"%s": %s' % (task, _addresses(found, port)) for task, found in hostnames.items() if found]
    return _variable("{%s}" % ", ".join(parts), kind, container.index - 1)


def _variable(cluster: str, kind: str, index: int) -> Dict[str, str]:
    return {"TF_CONFIG": '{"cluster": %s, "task": {"type": "%s", "index": %d}}' % (cluster, kind, index)}


@lru_cache(maxsize=8)
def _addresses(hostnames: Tuple[str, ...], port: int) -> str:
    """The list that all containers have: making it for each of a thousand takes a second."""
    return json.dumps(["%s:%d" % (hostname, port) for hostname in hostnames])
