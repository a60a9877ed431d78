#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tf.distribute does with TF_CONFIG, without TensorFlow: a server on this worker's address, all others by theirs.

Every worker sends its index to every other and adds up what it gets.
"""

import json
import os
import socket
import sys
import time

PATIENCE = 60.0  # seconds for all workers to come up


def parse(text):
    """The addresses of all workers and this one's index; complaints are those of TFConfigClusterResolver's users."""
    config = json.loads(text)
    workers = [address.rsplit(":", 1) for address in config["cluster"]["worker"]]
    task = config["task"]
    if task["type"] != "worker" or not 0 <= task["index"] < len(workers):
        raise ValueError(f"TF_CONFIG names a task that its cluster does not have: {task}")
    return [(host, int(port)) for host, port in workers], task["index"]


def send(address, index):
    """Tell one worker our index, as soon as it listens."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with socket.create_connection(address, timeout=PATIENCE) as connection:
                connection.sendall(b"%d\n" % index)
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def receive(server):
    """One worker's index."""
    connection, _address = server.accept()
    with connection, connection.makefile() as lines:
        return int(lines.readline())


def main():
    workers, index = parse(os.environ["TF_CONFIG"])
    with socket.create_server(workers[index], backlog=len(workers)) as server:
        server.settimeout(PATIENCE)
        others = [address for other, address in enumerate(workers) if other != index]
        for address in others:
            send(address, index)
        total = index + sum(receive(server) for _other in others)
    host, port = workers[index]
    print(f"worker {index} of {len(workers)} at {host}:{port}: all-reduce {total}", flush=True)
    return total != len(workers) * (len(workers) - 1) // 2


if __name__ == "__main__":
    sys.exit(main())
