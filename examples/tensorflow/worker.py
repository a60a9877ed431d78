#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Use TF_CONFIG as tf.distribute does, without TensorFlow: listen on the worker's address and connect to all others.

Every worker sends its index to every other worker and adds up the indices that it receives.
"""

import json
import os
import socket
import sys
import time

TIMEOUT = 60.0  # seconds until all workers must listen


def parse(text):
    """Return the addresses of all workers and the index of this worker. Raise ValueError if the task is not in the cluster."""
    config = json.loads(text)
    workers = [address.rsplit(":", 1) for address in config["cluster"]["worker"]]
    task = config["task"]
    if task["type"] != "worker" or not 0 <= task["index"] < len(workers):
        raise ValueError(f"TF_CONFIG names a task that its cluster does not have: {task}")
    return [(host, int(port)) for host, port in workers], task["index"]


def send(address, index):
    """Send the index to a worker as soon as it listens."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        try:
            with socket.create_connection(address, timeout=TIMEOUT) as connection:
                connection.sendall(b"%d\n" % index)
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def receive(server):
    """Receive the index of a worker."""
    connection, _address = server.accept()
    with connection, connection.makefile() as lines:
        return int(lines.readline())


def main():
    workers, index = parse(os.environ["TF_CONFIG"])
    with socket.create_server(workers[index], backlog=len(workers)) as server:
        server.settimeout(TIMEOUT)
        others = [address for other, address in enumerate(workers) if other != index]
        for address in others:
            send(address, index)
        total = index + sum(receive(server) for _other in others)
    host, port = workers[index]
    print(f"worker {index} of {len(workers)} at {host}:{port}: all-reduce {total}", flush=True)
    return total != len(workers) * (len(workers) - 1) // 2


if __name__ == "__main__":
    sys.exit(main())
