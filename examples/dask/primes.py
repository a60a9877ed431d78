#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Count prime numbers on the workers of a Dask cluster."""

import os
import socket

from dask.distributed import Client

LIMIT, PARTS = 40000, 16


def count(part):
    """The primes of one part of the numbers."""
    numbers = range(max(2, part * LIMIT // PARTS), (part + 1) * LIMIT // PARTS)
    return sum(all(number % divisor for divisor in range(2, int(number**0.5) + 1)) for number in numbers)


if __name__ == "__main__":
    client = Client()
    client.wait_for_workers(int(os.environ["BACKENDAI_CLUSTER_SIZE"]) - 1, timeout=300)
    hosts = sorted(client.run(socket.gethostname).values())
    total = sum(client.gather(client.map(count, range(PARTS))))
    print(f"{total} primes below {LIMIT}, counted by {', '.join(hosts)}", flush=True)
    client.close()
