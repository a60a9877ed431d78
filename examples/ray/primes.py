#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Count prime numbers on the workers of a Ray cluster."""

import os
import socket
import time

import ray

LIMIT, PARTS = 40000, 16
PATIENCE = 300  # seconds for the workers to join


@ray.remote(num_cpus=1, scheduling_strategy="SPREAD")
def count(part):
    """The primes of one part of the numbers, and where they were counted."""
    numbers = range(max(2, part * LIMIT // PARTS), (part + 1) * LIMIT // PARTS)
    found = sum(all(number % divisor for divisor in range(2, int(number**0.5) + 1)) for number in numbers)
    return found, socket.gethostname()


if __name__ == "__main__":
    ray.init()
    workers = int(os.environ["BACKENDAI_CLUSTER_SIZE"]) - 1
    end = time.monotonic() + PATIENCE
    while ray.cluster_resources().get("CPU", 0) < workers and time.monotonic() < end:
        time.sleep(1)
    results = ray.get([count.remote(part) for part in range(PARTS)])
    hosts = sorted({host for _found, host in results})
    print(f"{sum(found for found, _host in results)} primes below {LIMIT}, counted by {', '.join(hosts)}", flush=True)
    ray.shutdown()
