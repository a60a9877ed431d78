#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A ring and an all-reduce over all ranks, both verified. This is plain mpi4py, independent of sessions.

Usage: mpirun ring.py
"""

import sys
from array import array

from mpi4py import MPI

COUNT = 1_000_000


def ring(world):
    """Every rank adds its number to the sum from its left neighbour and passes it on; rank 0 gets the total."""
    rank, size = world.Get_rank(), world.Get_size()
    sum_so_far = world.recv(source=rank - 1) if rank else 0
    world.send(sum_so_far + rank, dest=(rank + 1) % size)
    return world.bcast(world.recv(source=size - 1) if rank == 0 else None)


def allreduce(world):
    """Return the number of wrong elements in the summed vector."""
    rank, size = world.Get_rank(), world.Get_size()
    vector = array("d", (rank + i for i in range(COUNT)))
    world.Allreduce(MPI.IN_PLACE, vector, op=MPI.SUM)
    return sum(value != size * (size - 1) / 2 + size * i for i, value in enumerate(vector))


def main():
    world = MPI.COMM_WORLD
    rank, size = world.Get_rank(), world.Get_size()
    total, wrong = ring(world), allreduce(world)
    host = MPI.Get_processor_name()
    print(f"rank {rank} of {size} on {host}: ring {total}, all-reduce of {COUNT}: {wrong} wrong", flush=True)
    return total != size * (size - 1) // 2 or wrong != 0


if __name__ == "__main__":
    sys.exit(main())
