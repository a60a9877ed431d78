# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names for the user's own ssh: one file for all sessions, and what remote modes of editors do with it."""

from __future__ import annotations

import socket
import subprocess
import threading
from contextlib import closing
from pathlib import Path

import pytest
from controller import Controller, Done, Session, run
from servers import free_port

NAMES = ("even", "left")


@pytest.fixture(scope="module")
def config(controller: Controller, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A ``~/.ssh/config`` with the line of the docs, and two sessions."""
    for name in NAMES:
        controller.launched(name, session_cluster_size=2)
    path = tmp_path_factory.mktemp("ssh") / "config"
    path.write_text(
        f"Include {controller.artifacts}/ssh_config\n\nHost *\n    StrictHostKeyChecking yes\n    BatchMode yes\n"
    )
    return str(path)


def ssh(config: str, host: str, command: str, *options: str, said: str | None = None) -> Done:
    return run(["ssh", "-F", config, *options, host, command], said=said)


def test_two_sessions_side_by_side(config: str) -> None:
    hosts = [f"{name}.{host}" for name in NAMES for host in ("main1", "sub1")]
    answers = [ssh(config, host, "echo $BACKENDAI_SESSION_NAME.$(hostname)").check().text.strip() for host in hosts]
    assert answers == hosts


def test_a_repair_and_an_end_keep_the_file_right(controller: Controller, config: str) -> None:
    controller.launched("gone", session_cluster_size=1)
    assert ssh(config, "gone.main1", "hostname").check().text.strip() == "main1"
    (controller.artifacts / "ssh_config").unlink()
    controller.client.kill(Session(controller, "left").containers()["main1"]["Id"])
    controller.launched("left", session_cluster_size=2)
    assert ssh(config, "left.sub1", "hostname").check().text.strip() == "sub1"
    controller.terminate("gone").check()
    assert "gone" not in (controller.artifacts / "ssh_config").read_text()
    assert ssh(config, "gone.main1", "true").code == 255


def test_sftp_of_an_editor(config: str, tmp_path: Path) -> None:
    (tmp_path / "server.tar").write_bytes(b"x" * 100_000)
    batch = f"mkdir .server\nput {tmp_path}/server.tar .server/\nget .server/server.tar {tmp_path}/back\n"
    run(["sftp", "-F", config, "-b", "-", "even.sub1"], said=batch).check()
    assert (tmp_path / "back").read_bytes() == b"x" * 100_000


def test_a_script_for_the_shell_arrives_by_standard_input(config: str) -> None:
    """As Visual Studio Code sends its installer: no terminal, a login shell, a script."""
    done = ssh(
        config, "even.sub1", "bash --login -s", "-T", said="uname -s; ldd --version | head -1; echo $HOME\n"
    ).check()
    assert done.text.splitlines()[0] == "Linux"
    assert "GLIBC" in done.text or "GNU libc" in done.text
    assert done.text.splitlines()[-1] == "/home/work"


SERVER = 'python3 -c \'import socket; s = socket.create_server(("127.0.0.1", 7070)); c, _ = s.accept(); c.sendall(b"inside")\''


def test_a_server_outlives_the_connection_and_is_reached_by_forwarding(config: str) -> None:
    ssh(config, "even.sub1", f"setsid nohup {SERVER} >/dev/null 2>&1 </dev/null & echo started").check()
    port, proxy = free_port(), free_port()
    # Visual Studio Code forwards dynamically.
    forwards = ["-L", f"{port}:127.0.0.1:7070", "-D", str(proxy), "-o", "ExitOnForwardFailure=yes"]
    command = ["ssh", "-F", config, "-N", *forwards, "even.sub1"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as tunnel:
        try:
            assert received(port) == b"inside"
        finally:
            tunnel.terminate()


def received(port: int) -> bytes:
    """What the forwarded server sends; ssh needs a moment until it listens."""
    for _attempt in range(200):
        try:
            with closing(socket.create_connection(("127.0.0.1", port), timeout=10)) as connection:
                connection.settimeout(10)
                return connection.recv(100)
        except ConnectionRefusedError:
            threading.Event().wait(0.1)
    raise AssertionError("no tunnel")


def test_a_port_of_the_controller_is_reached_from_a_container(config: str) -> None:
    """JetBrains and debuggers forward this way."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
        answer = threading.Thread(target=lambda: server.accept()[0].sendall(b"outside\n"))
        answer.start()
        program = 'import socket; print(socket.create_connection(("127.0.0.1", 7171)).recv(99).decode())'
        done = ssh(config, "even.sub1", f"python3 -c '{program}'", "-R", f"7171:127.0.0.1:{port}").check()
        answer.join(10)
    assert done.text.split() == ["outside"]
