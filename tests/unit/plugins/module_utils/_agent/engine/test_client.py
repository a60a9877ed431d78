# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Engines that are reached by SSH, in a process that has loaded the Docker SDK without paramiko for another engine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# An SSH server of this process, whose key the user does not know at first and which lets the user in by no key.
PROGRAM = """
import os, socket, sys, threading
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.client import Engine

def ask(host):
    try:
        Engine(host, 30, "node2").info()
    except ComputeError as error:
        print(error.message)

def serve():
    while True:
        transport = paramiko.Transport(listener.accept()[0])
        transport.add_server_key(key)
        transport.start_server(server=paramiko.ServerInterface())
        served.append(transport)

ask("unix:///no/such.sock")
assert "paramiko" not in sys.modules
if sys.argv[1] == "without":
    sys.modules["paramiko"] = None
    ask("ssh://alice@127.0.0.1:1")
    sys.exit()
ask("ssh://alice@127.0.0.1:1")
import paramiko
listener, served, key = socket.create_server(("127.0.0.1", 0)), [], paramiko.ECDSAKey.generate()
threading.Thread(target=serve, daemon=True).start()
ask("ssh://alice@127.0.0.1:%d" % listener.getsockname()[1])
os.mkdir(".ssh")
with open(".ssh/known_hosts", "w") as known:
    known.write("[127.0.0.1]:%d %s %s" % (listener.getsockname()[1], key.get_name(), key.get_base64()))
ask("ssh://alice@127.0.0.1:%d" % listener.getsockname()[1])
"""
# Agents that are engines of this machine are connected to in threads: one begins while another hides paramiko.
THREADS = """
import builtins, threading
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.client import load_sdk

imported, loaded = builtins.__import__, []
other = threading.Thread(target=lambda: loaded.append(load_sdk("ssh://node2")))

def import_beside_the_other(name, importer=None, *arguments):
    found = imported(name, importer, *arguments)
    if name == "docker" and importer is load_sdk.__globals__ and other.ident is None:
        other.start()
        other.join(0.3)
    return found

builtins.__import__ = import_beside_the_other
load_sdk("unix:///no/such.sock")
other.join()
assert loaded
"""


def asked(home: Path, paramiko: str) -> list[str]:
    environment = {**os.environ, "HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("SSH_AUTH_SOCK", None)
    command = [sys.executable, "-c", PROGRAM, paramiko]
    done = subprocess.run(command, cwd=home, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()[1:]


def test_an_engine_is_asked_by_ssh_after_one_at_a_socket(tmp_path: Path) -> None:
    absent, unknown, refused = asked(tmp_path, "with")
    advice = "make sure that ssh logs in there without a question."
    for message in (absent, unknown, refused):
        assert message.startswith("The engine of node2 does not answer at ssh://alice@127.0.0.1:")
        assert message.endswith("; " + advice)
    assert "Unable to connect to port 1 on 127.0.0.1; " in absent
    assert "not found in known_hosts; " in unknown
    assert ": No authentication methods available; " in refused


def test_a_library_that_ssh_needs_is_named(tmp_path: Path) -> None:
    [message] = asked(tmp_path, "without")
    assert f"The Python {sys.executable} lacks the library paramiko; run " in message


def test_threads_may_load_the_sdk_at_the_same_time() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", THREADS], env=environment, check=True)
