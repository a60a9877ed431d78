# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The SSH server of main1 on a stub engine: it accepts every login and answers the proof for all others."""

from __future__ import annotations

import io
import socket
import tarfile
import threading

import paramiko

HOST_KEY = "etc/cluster-compute/ssh_host_ed25519_key"


def host_key(archive: bytes) -> paramiko.PKey:
    """The host key among the files that a container is given."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        member = next(one for one in tar.getmembers() if one.name.lstrip("./") == HOST_KEY)
        file = tar.extractfile(member)
        assert file is not None
        return paramiko.Ed25519Key.from_private_key(io.StringIO(file.read().decode()))


class ProofServer(paramiko.ServerInterface):
    """The SSH server of main1: it answers the script that proves the other containers, for all of them at once."""

    def __init__(self, port: int, key: paramiko.PKey) -> None:
        self._key = key
        self._socket = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._serve, daemon=True).start()

    def stop(self) -> None:
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _address = self._socket.accept()
            except OSError:
                return
            transport = paramiko.Transport(connection)
            transport.add_server_key(self._key)
            transport.start_server(event=threading.Event(), server=self)

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        return paramiko.AUTH_SUCCESSFUL

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        """The command ends with MARK SECONDS WORKERS GROUP…, where a group is HOST or HOST:WORKERS:HOST,HOST."""
        mark, _seconds, _workers, *groups = command.decode().rpartition(" prove' ")[2].split()
        hosts = [name for group in groups for name in (group.partition(":")[0], *_members(group))]
        answer = "".join(f"\n{mark} yes {name}\n" for name in hosts)
        threading.Thread(target=self._reply, args=(channel, f"{mark} begun\n{answer}"), daemon=True).start()
        return True

    @staticmethod
    def _reply(channel: paramiko.Channel, text: str) -> None:
        while channel.recv(1 << 14):
            pass  # the script
        channel.sendall(text.encode())
        channel.send_exit_status(0)
        channel.close()


def _members(group: str) -> list[str]:
    names = group.split(":")
    return names[2].split(",") if len(names) > 2 else []
