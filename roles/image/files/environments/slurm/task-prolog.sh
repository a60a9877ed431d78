#!/bin/sh
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Slurm's TaskProlog: prints changes of the environment before each task. Slurm gives a task the variables of the shell that has
# submitted the job. Those that describe the container of that shell are wrong in another container, and launchers would prefer those
# that describe the whole session to the allocation. What a job script sets itself stays, so its steps have the mark CLUSTER_COMPUTE_IN_BATCH.
unset_all() {
    for name in "$@"; do
        echo "unset $name"
    done
}

echo "export BACKENDAI_CLUSTER_HOST=$SLURMD_NODENAME"
[ -z "$CLUSTER_COMPUTE_IN_BATCH" ] || exit 0
unset_all RANK WORLD_RANK LOCAL_RANK NODE_RANK TF_CONFIG PET_NODE_RANK BACKENDAI_KERNEL_ID BACKENDAI_CLUSTER_IDX \
    BACKENDAI_CLUSTER_LOCAL_RANK BACKENDAI_CLUSTER_ROLE
case $SLURM_STEP_ID in
    '' | 4294967291) ;; # the script of a batch job
    *) exit 0 ;;
esac
unset_all WORLD_SIZE MASTER_ADDR MASTER_PORT PET_NNODES PET_NPROC_PER_NODE PET_MASTER_ADDR PET_MASTER_PORT PET_MAX_RESTARTS \
    PET_RDZV_BACKEND PET_RDZV_ENDPOINT PET_RDZV_ID PET_RDZV_CONF HYDRA_HOST_FILE OMPI_MCA_orte_default_hostfile \
    PRTE_MCA_prte_default_hostfile
echo "export CLUSTER_COMPUTE_IN_BATCH=yes"
