#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sum a number of every process with JAX. Under mpirun, JAX finds the processes itself; else the session's variables name them."""

import os

import jax
import jax.numpy
import numpy
from jax.sharding import NamedSharding, PartitionSpec

if "OMPI_COMM_WORLD_RANK" in os.environ:
    jax.distributed.initialize()
else:
    coordinator = os.environ["MASTER_ADDR"] + ":" + os.environ["MASTER_PORT"]
    jax.distributed.initialize(coordinator, int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"]))

rank, size = jax.process_index(), jax.process_count()
everywhere = NamedSharding(jax.make_mesh((jax.device_count(),), ("devices",)), PartitionSpec("devices"))
mine = numpy.full(jax.local_device_count(), rank + 1.0)
total = jax.jit(jax.numpy.sum)(jax.make_array_from_process_local_data(everywhere, mine))
print(f"jax: process {rank} of {size}, {jax.device_count()} devices, sum {total.item():.0f}", flush=True)
