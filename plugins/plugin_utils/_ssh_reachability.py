# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the controller into ``main1``, and from there to every other container: by strict SSH, within a deadline."""
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
# The part of the deadline that is left for the last answer to come back.
RESERVE = 2

# Runs in any image: it needs nothing but the runtime. One line for each host: "yes HOST", or "no HOST REASON".
SCRIPT = """
limit=$1; late=$(( $({bin}/busybox date +%s) + $2 )); shift 2
ask() {{
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
    ask "$host" &
    count=$((count + 1))
    [ $((count % limit)) -ne 0 ] || wait
done
wait
""".format(bin=RUNTIME_PATH + "/bin", config=CLIENT_CONFIG)


@dataclass(frozen=True)
class SshEndpoint:
    """Where ``main1`` is entered, as whom, and which host key it must show."""

    host: str
    port: int
    user: str
    key_file: str
    host_key: str
    name: str = "main1"

    def __str__(self) -> str:
        return "%s at %s, port %d" % (self.name, self.host, self.port)


def reach(door: SshEndpoint, others: Sequence[str], timeout: int) -> List[str]:
    """Everybody who answered: all of them, or an error that names the pair and the reason."""
    paramiko = load_paramiko()
    deadline = time.monotonic() + timeout
    with closing(paramiko.Transport(_connected(door, deadline))) as transport:
        _enter(paramiko, transport, door, deadline)
        answers = _ask(transport, others, deadline) if others else {}
    for name in others:
        reason = answers.get(name, "no answer within %d seconds" % timeout)
        if reason:
            raise ComputeError("%s does not answer %s by ssh: %s." % (name, door.name, reason.rstrip(".")), name)
    return [door.name, *others]


def load_paramiko() -> Any:
    """paramiko, silent: what it would say on stderr is in the errors anyhow."""
    try:
        import paramiko
    except ImportError as error:
        raise LibraryError("paramiko", traceback.format_exc()) from error
    logging.getLogger("paramiko").addHandler(logging.NullHandler())
    return paramiko


def _connected(door: SshEndpoint, deadline: float) -> socket.socket:
    """A connection on which a server speaks: the engine's proxy accepts before a container listens, and hangs up."""
    while True:
        reason = "it hangs up"
        try:
            connection = socket.create_connection((door.host, door.port), timeout=_left(deadline))
            if connection.recv(4, socket.MSG_PEEK):
                return connection
            connection.close()
        except OSError as error:
            reason = error.strerror or str(error)
        if time.monotonic() + PAUSE >= deadline:
            raise ComputeError(
                "%s does not answer by ssh: %s; session_logs.yml shows what it wrote." % (door, reason), door.name
            )
        time.sleep(PAUSE)


def _enter(paramiko: Any, transport: Any, door: SshEndpoint, deadline: float) -> None:
    transport.get_security_options().key_types = ["ssh-ed25519"]
    transport.banner_timeout = transport.auth_timeout = _left(deadline)
    try:
        transport.start_client(timeout=_left(deadline))
        if transport.get_remote_server_key().get_base64() != door.host_key.split()[1]:
            raise ComputeError("%s shows a host key that is not its own: who listens there?" % door, door.name)
        transport.auth_publickey(door.user, paramiko.Ed25519Key.from_private_key_file(door.key_file))
    except (paramiko.SSHException, EOFError, OSError) as error:
        reason = str(error).rstrip(".") or type(error).__name__
        raise ComputeError("%s refuses %s by ssh: %s." % (door, door.user, reason), door.name) from error


def _ask(transport: Any, others: Sequence[str], deadline: float) -> Dict[str, str]:
    """One command on ``main1`` for all: what each of the others lacks, which is nothing where it answered."""
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
            answers[name] = "" if word == "yes" else reason.strip() or "it gives another name"
            channel.settimeout(_left(deadline))
    except (OSError, EOFError):
        pass  # time is up, or main1 is gone: whoever is missing in the answers is named
    return answers


def _left(deadline: float) -> float:
    return max(0.1, deadline - time.monotonic())
