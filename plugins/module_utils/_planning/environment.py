# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The environment variables of a container: docs/architecture.md §6 has the table."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Dict, Sequence

from .._core.constants import CLUSTERSHELL_FOLDER, HOSTNAMES_FILE, HYDRA_HOSTFILE, MPI_HOSTFILE
from .._core.model import Container, Network, Session
from .._core.topology import replicas
from .computing import ranks_of, tf_config


def standard_environment(
    session: Session, network: Network, containers: Sequence[Container], container: Container
) -> Dict[str, str]:
    """The variables that the session sets for one container. ``containers`` are all of the session, in rank order."""
    return {
        "BACKENDAI_CLUSTER_SIZE": str(session.size),
        "BACKENDAI_CLUSTER_HOSTS": ",".join(member.hostname for member in containers),
        "BACKENDAI_CLUSTER_REPLICAS": replicas([member.role for member in containers]),
        "BACKENDAI_CLUSTER_HOST": container.hostname,
        "BACKENDAI_CLUSTER_IDX": str(container.index),
        "BACKENDAI_CLUSTER_ROLE": container.role,
        "BACKENDAI_CLUSTER_LOCAL_RANK": str(container.rank),
        "BACKENDAI_CLUSTER_MODE": session.mode,
        "BACKENDAI_KERNEL_ID": container.id,
        "BACKENDAI_SESSION_ID": session.id,
        "BACKENDAI_SESSION_NAME": session.name,
        **ranks_of(session, containers, container, network.master_port),
        **tf_config(session, container, network.master_port),
        "OMP_NUM_THREADS": str(max(1, container.resources.millicpus // 1000)),
        # MPICH and its family: https://github.com/pmodels/mpich/blob/main/doc/wiki/how_to/Using_the_Hydra_Process_Manager.md
        "HYDRA_HOST_FILE": HYDRA_HOSTFILE,
        # MPICH fails where the engine's seccomp profile denies process_vm_readv.
        "MPIR_CVAR_CH4_CMA_ENABLE": "0",
        # pdsh, whose default is rsh, contacts all containers; clush -a and its groups likewise.
        "PDSH_RCMD_TYPE": "ssh",
        "WCOLL": HOSTNAMES_FILE,
        "CLUSTERSHELL_CFGDIR": CLUSTERSHELL_FOLDER,
        **_interfaces(network, container, ",".join(f"{one.address}/32" for one in containers)),
    }


def _interfaces(network: Network, container: Container, addresses: str) -> Dict[str, str]:
    """Variables that make the usual libraries use the session's network, by the name of its interface or by its subnet.

    On the network of its hosts, ``addresses`` take the place of a subnet, which may contain other interfaces.

    With a fabric, what MPI programs exchange goes through it, and the launcher stays in the private network.
    The engine names the interface of the first network eth0, and that of C(docker_gwbridge), which an overlay brings, eth1.
    The name keeps NCCL, Gloo and UCX off the gateway, through which no other container answers.
    """
    name = network.fabric_interface if network.fabric else container.interface
    own = addresses if network.is_of_host else network.subnet
    return {
        # https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html ("=" asks for the exact name)
        "NCCL_SOCKET_IFNAME": "=" + name,
        # https://pytorch.org/docs/stable/distributed.html#choosing-the-network-interface-to-use
        "GLOO_SOCKET_IFNAME": name,
        "TP_SOCKET_IFNAME": name,
        # https://openucx.readthedocs.io/en/master/running.html
        "UCX_NET_DEVICES": name,
        # Open MPI 4: https://www.open-mpi.org/faq/?category=tcp#tcp-selection
        "OMPI_MCA_btl_tcp_if_include": network.fabric or own,
        "OMPI_MCA_oob_tcp_if_include": own,
        "OMPI_MCA_orte_default_hostfile": MPI_HOSTFILE,
        # The engine's seccomp profile denies process_vm_readv: ranks of one container exchange through shared memory
        # instead. Open MPI 5 detects that, Open MPI 4 warns at every large message.
        "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
        # Open MPI 5 starts its processes through PRRTE: https://docs.open-mpi.org/en/v5.0.x/launching-apps/
        "PRTE_MCA_prte_if_include": own,
        "PRTE_MCA_prte_default_hostfile": MPI_HOSTFILE,
    }
