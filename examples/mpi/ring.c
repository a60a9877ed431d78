/* Copyright: (c) 2026, the cluster.compute authors
 * GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A ring and an all-reduce over all ranks, both verified. This is plain MPI, independent of sessions.
 *
 *   mpirun ring [DOUBLES]      DOUBLES: length of the all-reduced vector (default 1000000)
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* Every rank adds its number to the sum from its left neighbour and passes it on; rank 0 gets the total. */
static int ring(int rank, int size)
{
    int left = (rank + size - 1) % size, right = (rank + 1) % size, sum = 0;

    if (rank > 0)
        MPI_Recv(&sum, 1, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    sum += rank;
    MPI_Send(&sum, 1, MPI_INT, right, 0, MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Recv(&sum, 1, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Bcast(&sum, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return sum;
}

/* Return the number of wrong elements in the summed vector. */
static int allreduce(int rank, int size, int count)
{
    double *vector = malloc(sizeof *vector * count);
    int wrong = 0;

    for (int i = 0; i < count; i++)
        vector[i] = rank + i;
    MPI_Allreduce(MPI_IN_PLACE, vector, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++)
        wrong += vector[i] != size * (size - 1) / 2.0 + (double)size * i;
    free(vector);
    return wrong;
}

int main(int argc, char **argv)
{
    int rank, size, length, count = argc > 1 ? atoi(argv[1]) : 1000000;
    char host[MPI_MAX_PROCESSOR_NAME];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(host, &length);

    int sum = ring(rank, size), wrong = allreduce(rank, size, count);
    printf("rank %d of %d on %s: ring %d, all-reduce of %d: %d wrong\n", rank, size, host, sum, count, wrong);
    MPI_Finalize();
    return sum != size * (size - 1) / 2 || wrong != 0;
}
