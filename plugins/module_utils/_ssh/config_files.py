# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The text of every file that SSH needs, inside the containers and on the controller."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import ipaddress
import re
import shlex
from typing import Dict, List, Mapping, Sequence

from ansible_collections.cluster.compute.plugins.module_utils._core.constants import (
    CONFIG_FOLDER,
    DEFAULT_PATH,
    RUNTIME_PATH,
)
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import ComputeError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Container, Plan, Port

HOST_KEY = CONFIG_FOLDER + "/ssh_host_ed25519_key"
HOST_CERTIFICATE = HOST_KEY + "-cert.pub"
CLUSTER_KEY = CONFIG_FOLDER + "/id_cluster"
AUTHORIZED_KEYS = CONFIG_FOLDER + "/authorized_keys"
CLIENT_CONFIG = CONFIG_FOLDER + "/ssh_config"
KNOWN_HOSTS = "/etc/ssh/ssh_known_hosts"

# What sshd itself sets at a login: an image's value (HOME=/root …) would be wrong there.
_LOGIN_NAMES = ("HOME", "USER", "LOGNAME", "SHELL", "MAIL", "TERM")
_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


def login_environment(entries: Sequence[str], container: Container) -> Dict[str, str]:
    """The environment of a login: what the created container itself was given (``NAME=value`` entries).

    A line break cannot be told to sshd: an image's variable that holds one is left out.
    """
    given = dict(entry.split("=", 1) for entry in entries if "=" in entry)
    given.setdefault("PATH", "%s:%s/bin" % (DEFAULT_PATH, RUNTIME_PATH))
    given.setdefault("HOSTNAME", container.hostname)
    return {name: value for name, value in given.items() if _carried(name, value, container)}


def _carried(name: str, value: str, container: Container) -> bool:
    if name in _LOGIN_NAMES and name not in container.environment:
        return False
    return bool(name) and not set("\r\n\0") & set(name + value)


def set_env(environment: Mapping[str, str]) -> str:
    """sshd's one ``SetEnv`` line. Inside double quotes only ``"`` and a backslash are special to it.

    >>> set_env({"A": 'say "hi"', "B": "#1"})
    'SetEnv "A=say \\\\"hi\\\\"" "B=#1"'
    """
    return " ".join(["SetEnv"] + [_quoted("%s=%s" % item) for item in sorted(environment.items())])


def sshd_config(environment: Mapping[str, str], user: str) -> str:
    """The server's configuration. Its log is the container's, which belongs to the user's program: errors only."""
    return _lines(
        "Port 22",
        "HostKey " + HOST_KEY,
        "HostCertificate " + HOST_CERTIFICATE,
        "AuthorizedKeysFile " + AUTHORIZED_KEYS,
        "AllowUsers " + user,
        "PermitRootLogin no",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "UsePAM no",
        "UseDNS no",
        "PidFile none",
        "LogLevel ERROR",
        "PrintMotd no",
        "PrintLastLog no",
        "X11Forwarding no",
        "PermitUserEnvironment no",
        "AcceptEnv LANG LC_*",
        # mpirun and parallel shells reach a container from many places at the same moment.
        "MaxStartups 1000",
        "MaxSessions 1000",
        "Subsystem sftp %s/libexec/sftp-server" % RUNTIME_PATH,
        # Only the first SetEnv directive takes effect: one line carries everything.
        set_env(environment),
    )


def client_config(plan: Plan) -> str:
    """What makes ``ssh sub1`` work in a container: for exactly this session's names and addresses."""
    hosts = [one.hostname for one in plan.containers] + [one.address for one in plan.containers]
    return _lines(
        "Host " + " ".join(hosts),
        "    User " + plan.session.user.name,
        "    IdentityFile " + CLUSTER_KEY,
        "    IdentitiesOnly yes",
        "    StrictHostKeyChecking yes",
        "    GlobalKnownHostsFile " + KNOWN_HOSTS,
        # A home shared by several sessions may know another main1.
        "    UserKnownHostsFile /dev/null",
        "    PreferredAuthentications publickey",
        "    ConnectionAttempts 5",
        "    ConnectTimeout 10",
        "    ServerAliveInterval 30",
        "    ServerAliveCountMax 6",
        "    LogLevel ERROR",
    )


def included_config(text: str) -> str:
    """The image's own client configuration with ours read first: of two values, ssh takes the first."""
    include = "Include %s\n" % CLIENT_CONFIG
    return text if text.startswith(include) else include + text


def authority_line(plan: Plan, authority: str) -> str:
    """The one line that vouches for every container of the session, also for one that comes later."""
    roles = ["%s*" % role for role in dict.fromkeys(one.role for one in plan.containers)]
    return "@cert-authority %s %s" % (",".join(roles + _address_patterns(plan.network.subnet)), authority)


def known_hosts(text: str, line: str) -> str:
    """The image's own known hosts, with our line first and once."""
    return _lines(line, *[other for other in text.split("\n") if other not in ("", line)])


def pinned_lines(plan: Plan, host_keys: Mapping[str, str]) -> str:
    """Every host by name and address, for tools that know no certificate authority."""
    return _lines(*["%s,%s %s" % (one.hostname, one.address, host_keys[one.hostname]) for one in plan.containers])


def hostfile(plan: Plan) -> str:
    """The hostfile of Open MPI and PRRTE in rank order: as many slots as a container has GPUs, else whole CPUs."""
    return _lines(*["%s slots=%d" % (one.hostname, one.resources.slots) for one in plan.containers])


def hydra_hostfile(text: str) -> str:
    """The same hostfile for Hydra, the launcher of MPICH and its family.

    >>> hydra_hostfile("main1 slots=2\\nsub1 slots=2\\n")
    'main1:2\\nsub1:2\\n'
    """
    return text.replace(" slots=", ":")


def deepspeed_hostfile(text: str, has_gpus: bool) -> str:
    """The same hostfile for DeepSpeed: without GPUs, one process in each container, as torchrun has it.

    >>> deepspeed_hostfile("main1 slots=16\\n", False), deepspeed_hostfile("main1 slots=2\\n", True)
    ('main1 slots=1\\n', 'main1 slots=2\\n')
    """
    return text if has_gpus else re.sub("slots=[0-9]+", "slots=1", text)


def login_profile(path: str, size: int) -> str:
    """For /etc/profile.d: /etc/profile of many images sets another PATH, and a login would lose that of the container.

    In a session of several containers, a terminal also shows what a torchrun without options does.
    """
    hint = "torchrun: without options it trains in this container alone; session_torchrun makes it use all %d" % size
    lines = [
        'if [ -z "${PET_NNODES-}" ] && command -v torchrun >/dev/null 2>&1; then',
        "    case $- in *i*) echo '%s' ;; esac" % hint,
        "fi",
    ]
    return _lines("PATH=" + shlex.quote(path), "export PATH", *(lines if size > 1 else []))


def home_profile(user: str) -> str:
    """A ``.profile`` for a home that has none: ``work@sub1:~$`` in bash and BusyBox, something like it elsewhere.

    These two read a backslash in a prompt, and have ``help`` built in; BusyBox does not always tell its name.
    """
    return _lines(
        'if [ -n "${BASH_VERSION-}" ] && [ -r "$HOME/.bashrc" ]; then . "$HOME/.bashrc"; fi',
        "case $- in",
        "*i*)",
        "    PS1='%s@'\"$HOSTNAME\"':$PWD$ '" % user,
        "    if type help >/dev/null 2>&1; then PS1='\\u@\\h:\\w\\$ '; fi",
        "    ;;",
        "esac",
    )


def ssh_port(plan: Plan) -> Port:
    """The published SSH port of ``main1``."""
    for port in plan.main.ports:
        if port.name == "ssh":
            return port
    raise ComputeError("Session %s publishes no SSH port of %s." % (plan.session.name, plan.main.hostname))


def default_address(plan: Plan) -> str:
    """Where the controller finds the SSH port of ``main1`` when nobody says otherwise."""
    host = ssh_port(plan).host_ip
    return _LOOPBACK.get(host, host)


def controller_config(plan: Plan, address: str, folder: str) -> str:
    """``ssh -F FOLDER/ssh_config main1``, and every other container by way of it."""
    main, others = plan.main.hostname, [one.hostname for one in plan.containers[1:]]
    port = ssh_port(plan).host_port
    lines = ["Host " + main, "    HostName " + address, "    Port %d" % port, "    HostKeyAlias " + main]
    if others:
        lines += ["Host " + " ".join(others), "    " + _jump(main, folder)]
    lines += [
        "Host " + " ".join([main] + others),
        "    User " + plan.session.user.name,
        "    IdentityFile " + _path(folder, "id_container"),
        "    IdentitiesOnly yes",
        "    StrictHostKeyChecking yes",
        "    UserKnownHostsFile " + _path(folder, "known_hosts"),
        "    GlobalKnownHostsFile /dev/null",
        "    ServerAliveInterval 30",
    ]
    return _lines(*lines)


def _jump(main: str, folder: str) -> str:
    """ssh hands its ``-F`` on to the jump host's ssh, but unquoted: a folder with a space needs the long form."""
    config = folder + "/ssh_config"
    if shlex.quote(config) == config:
        return "ProxyJump " + main
    return "ProxyCommand ssh -F %s -W [%%h]:%%p %s" % (shlex.quote(config.replace("%", "%%")), main)


def _path(folder: str, name: str) -> str:
    return _quoted("%s/%s" % (folder.replace("%", "%%"), name))


def _address_patterns(subnet: str) -> List[str]:
    """ssh knows no subnets, only ``*``: the subnet, rounded up to whole numbers between the dots.

    >>> _address_patterns("10.201.0.32/27"), _address_patterns("10.200.0.0/15")
    (['10.201.0.*'], ['10.200.*', '10.201.*'])
    """
    network = ipaddress.IPv4Network(subnet, strict=False)
    count = min(3, (network.prefixlen + 7) // 8)
    whole = network if network.prefixlen <= count * 8 else network.supernet(new_prefix=count * 8)
    parts = [str(one).split(".")[:count] for one in whole.subnets(new_prefix=count * 8)]
    return [".".join(part) + ".*" for part in parts]


def _quoted(text: str) -> str:
    return '"%s"' % text.replace("\\", "\\\\").replace('"', '\\"')


def _lines(*lines: str) -> str:
    return "\n".join(lines) + "\n"
