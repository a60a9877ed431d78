# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Log in to ``main1`` from the controller, and to all other containers from there: with strict SSH and a deadline."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import logging
import socket
import time
import traceback
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Dict, List, Sequence

from ansible_collections.cluster.compute.plugins.module_utils._core.constants import RUNTIME_PATH
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import ComputeError, LibraryError
from ansible_collections.cluster.compute.plugins.module_utils._ssh.config_files import CLIENT_CONFIG

PARALLEL = 16
PAUSE = 0.1
# Seconds of the deadline that remain for the last answer to arrive.
RESERVE = 2

# Runs in any image, because it uses only the runtime. Prints a line for each host: "yes HOST" or "no HOST REASON".
SCRIPT = """
limit=$1; late=$(( $({bin}/busybox date +%s) + $2 )); shift 2
try() {{
    while :; do
        answer=$({bin}/ssh -n -F {config} -o BatchMode=yes -o ConnectTimeout=5 -o ConnectionAttempts=1 "$1" \\
            'echo "reached:$BACKENDAI_CLUSTER_HOST;"' 2>&1)
        case $answer in
        *"reached:$1;"*) echo "yes $1"; return ;;
        *refused*|*"timed out"*|*"No route"*|*unreachable*|*reset*|*"closed by"*)
            [ "$({bin}/busybox date +%s)" -ge "$late" ] || {{ {bin}/busybox sleep 0.2; continue; }} ;;
        esac
        echo "no $1 $(echo "$answer" | {bin}/busybox tail -n 1)"
        return
    done
}}
count=0
for host in "$@"; do
    try "$host" &
    count=$((count + 1))
    [ $((count % limit)) -ne 0 ] || wait
done
wait
""".format(bin=RUNTIME_PATH + "/bin", config=CLIENT_CONFIG)


@dataclass(frozen=True)
class SshEndpoint:
    """The SSH server of ``main1``: address, user, key, and the host key that it must present."""

    host: str
    port: int
    user: str
    key_file: str
    host_key: str
    name: str = "main1"

    def __str__(self) -> str:
        return "%s at %s, port %d" % (self.name, self.host, self.port)


def reach(endpoint: SshEndpoint, others: Sequence[str], timeout: int) -> List[str]:
    """Log in to all hosts and return their names; a ComputeError names the first host that does not answer, and why."""
    paramiko = load_paramiko()
    deadline = time.monotonic() + timeout
    with closing(paramiko.Transport(_connected(endpoint, deadline))) as transport:
        _log_in(paramiko, transport, endpoint, deadline)
        answers = _connect_from_main(transport, others, deadline) if others else {}
    for name in others:
        reason = answers.get(name, "no answer within %d seconds" % timeout)
        if reason:
            raise ComputeError(
                "%s does not accept ssh connections from %s: %s." % (name, endpoint.name, reason.rstrip(".")), name
            )
    return [endpoint.name, *others]


def load_paramiko() -> Any:
    """paramiko without its log on stderr: the errors contain the same."""
    try:
        import paramiko
    except ImportError as error:
        raise LibraryError("paramiko", traceback.format_exc()) from error
    logging.getLogger("paramiko").addHandler(logging.NullHandler())
    return paramiko


def _connected(endpoint: SshEndpoint, deadline: float) -> socket.socket:
    """A connection to a server that answers. The engine's proxy accepts and closes connections before sshd listens."""
    while True:
        reason = "connection closed by the server"
        try:
            connection = socket.create_connection((endpoint.host, endpoint.port), timeout=_left(deadline))
            if connection.recv(4, socket.MSG_PEEK):
                return connection
            connection.close()
        except OSError as error:
            reason = error.strerror or str(error)
        if time.monotonic() + PAUSE >= deadline:
            raise ComputeError(
                "%s does not accept ssh connections: %s; session_logs.yml shows its log." % (endpoint, reason),
                endpoint.name,
            )
        time.sleep(PAUSE)


def _log_in(paramiko: Any, transport: Any, endpoint: SshEndpoint, deadline: float) -> None:
    transport.get_security_options().key_types = ["ssh-ed25519"]
    transport.banner_timeout = transport.auth_timeout = _left(deadline)
    try:
        transport.start_client(timeout=_left(deadline))
        if transport.get_remote_server_key().get_base64() != endpoint.host_key.split()[1]:
            raise ComputeError(
                "%s presents an unexpected host key; check which program listens on that port." % endpoint,
                endpoint.name,
            )
        transport.auth_publickey(endpoint.user, paramiko.Ed25519Key.from_private_key_file(endpoint.key_file))
    except (paramiko.SSHException, EOFError, OSError) as error:
        reason = str(error).rstrip(".") or type(error).__name__
        raise ComputeError(
            "%s refuses the ssh login of %s: %s." % (endpoint, endpoint.user, reason), endpoint.name
        ) from error


def _connect_from_main(transport: Any, others: Sequence[str], deadline: float) -> Dict[str, str]:
    """Connect to all others with a single command on ``main1``; returns the reason of each failure, empty on success."""
    left = max(1, int(_left(deadline)) - RESERVE)
    answers: Dict[str, str] = {}
    try:
        channel = transport.open_session(timeout=_left(deadline))
        channel.exec_command("%s/bin/sh -s %d %d %s" % (RUNTIME_PATH, PARALLEL, left, " ".join(others)))
        channel.settimeout(_left(deadline))
        channel.sendall(SCRIPT.encode())
        channel.shutdown_write()
        for line in channel.makefile("r"):
            word, name, reason = (line.split(None, 2) + ["", ""])[:3]
            answers[name] = "" if word == "yes" else reason.strip() or "another container answered"
            channel.settimeout(_left(deadline))
    except (OSError, EOFError):
        pass  # the deadline has passed or main1 has ended; the caller names the missing hosts
    return answers


def _left(deadline: float) -> float:
    return max(0.1, deadline - time.monotonic())
