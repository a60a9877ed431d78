# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Text of the files that SSH needs in containers and on the controller."""

from __future__ import annotations

import ipaddress
import re
import shlex
from dataclasses import dataclass
from itertools import chain
from typing import Dict, List, Mapping, Sequence, Tuple

from ..._shared.constants import (
    ALL_ADDRESSES,
    ALL_FAMILIES,
    CONFIG_FOLDER,
    DEFAULT_PATH,
    RUNTIME_PATH,
    SEARCH_PATH,
    SSH_PORT,
)
from ..._shared.documents.plan import Container, Network, Plan, Port
from ..._shared.errors import ComputeError

HOST_KEY = CONFIG_FOLDER + "/ssh_host_ed25519_key"
HOST_CERTIFICATE = HOST_KEY + "-cert.pub"
CLUSTER_KEY = CONFIG_FOLDER + "/id_cluster"
AUTHORIZED_KEYS = CONFIG_FOLDER + "/authorized_keys"
CLIENT_CONFIG = CONFIG_FOLDER + "/ssh_config"
KNOWN_HOSTS = "/etc/ssh/ssh_known_hosts"

# Connections that may be open without a login, and the memory that each of them takes (measured with OpenSSH 9.2).
_FEWEST_STARTUPS, _USUAL_STARTUPS = 10, 100
_STARTUP_MEMORY = 2 << 20
# Seconds between two questions to a silent other side, and how many stay unanswered until the connection is given up.
ALIVE_INTERVAL, ALIVE_COUNT = 30, 6
# sshd sets these at a login. The image's values, such as HOME=/root, would be wrong.
_LOGIN_NAMES = ("HOME", "USER", "LOGNAME", "SHELL", "MAIL", "TERM")
# For a session on the same machine, and for connections that go through main1, which are encrypted once more on the way there.
# OpenSSH 9.0 to 9.9 prefers a post-quantum key exchange, sntrup761, which needs ten times the CPU time of the rest of a login.
# Later releases prefer mlkem768, which is fast: https://www.openssh.com/txt/release-10.0
_QUICK_EXCHANGE = "    KexAlgorithms -sntrup*"
# A line with one of them would be read as another line.
_CONTROL = re.compile(r"[\0\r\n]")
# sshd writes it once it listens, also after it has read its configuration again.
PID_FILE = "/run/sshd/pid"
# What a container calls itself, beside its name.
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
_CLIENT_OPTIONS = (
    "IdentitiesOnly yes",
    "IdentityAgent none",
    "PubkeyAuthentication yes",
    # Its name until OpenSSH 8.5, which later releases know, too.
    "PubkeyAcceptedKeyTypes ssh-ed25519",
    "PreferredAuthentications publickey",
    "PasswordAuthentication no",
    "KbdInteractiveAuthentication no",
    "HostbasedAuthentication no",
    "StrictHostKeyChecking yes",
    # A home that several sessions share may contain the key of another main1.
    "UserKnownHostsFile /dev/null",
    "KnownHostsCommand none",
    "RevokedHostKeys none",
    "CheckHostIP no",
    "VerifyHostKeyDNS no",
    "UpdateHostKeys no",
    "VisualHostKey no",
    # Without the second, ssh says nothing (LogLevel ERROR) when it refuses a key that has no certificate.
    "HostKeyAlgorithms ssh-ed25519-cert-v01@openssh.com,ssh-ed25519",
    "CASignatureAlgorithms ssh-ed25519",
    # mpirun logs in to 64 containers at once, in the CPU share of one. The post-quantum key exchange, which OpenSSH prefers,
    # takes ten times the CPU time of a login. These names are known to every OpenSSH since 6.5; the second is for FIPS mode.
    "KexAlgorithms curve25519-sha256@libssh.org,ecdh-sha2-nistp256",
    "Ciphers aes128-gcm@openssh.com,aes256-gcm@openssh.com,aes128-ctr,aes256-ctr",
    "MACs hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@openssh.com,hmac-sha2-256,hmac-sha2-512",
    "Compression no",
    "RekeyLimit default none",
    "HostName %h",
    "AddressFamily any",
    "CanonicalizeHostname no",
    "ProxyCommand none",
    "ProxyJump none",
    "ProxyUseFdpass no",
    "ControlMaster no",
    "ControlPath none",
    "ControlPersist no",
    "RemoteCommand none",
    "RequestTTY auto",
    "SessionType default",
    "StdinNull no",
    "ForkAfterAuthentication no",
    "PermitLocalCommand no",
    "ExitOnForwardFailure no",
    "ForwardAgent no",
    "ForwardX11 no",
    "GatewayPorts no",
    "Tunnel no",
    "TCPKeepAlive yes",
    "BatchMode no",
    "ConnectionAttempts 5",
    "ConnectTimeout 20",
    "ServerAliveInterval %d" % ALIVE_INTERVAL,
    "ServerAliveCountMax %d" % ALIVE_COUNT,
    "LogLevel ERROR",
)
_LOOPBACK = {ALL_ADDRESSES: "127.0.0.1", ALL_FAMILIES: "::1", "": "127.0.0.1"}


@dataclass(frozen=True)
class Server:
    """The program that serves SSH in a container, and where it listens: without ``addresses`` at all of them."""

    program: str = RUNTIME_PATH + "/libexec/sshd"
    port: int = SSH_PORT
    pid_file: str = PID_FILE
    addresses: Tuple[str, ...] = ()

    @property
    def is_of_runtime(self) -> bool:
        return self.program.startswith(RUNTIME_PATH + "/")


OF_SESSION = Server()


def server_of(network: Network, container: Container) -> Server:
    """The server of a container. On the network of its agent it listens where other containers and the controller need it."""
    if not network.is_of_host:
        return OF_SESSION
    addresses = {container.address, *(port.host_ip for port in container.ports if port.name == "ssh")}
    # For sshd, "::" is all addresses of IPv6 alone.
    for all_of_them in ((ALL_ADDRESSES, ALL_FAMILIES), (ALL_ADDRESSES,)):
        if all_of_them[-1] in addresses:
            return Server(port=network.ssh_port, addresses=all_of_them)
    return Server(port=network.ssh_port, addresses=tuple(sorted(addresses)))


def login_environment(entries: Sequence[str], container: Container) -> Dict[str, str]:
    """The environment of a login, from ``NAME=value`` entries, without line breaks, which sshd_config cannot express."""
    given = dict(entry.split("=", 1) for entry in entries if "=" in entry)
    given.setdefault("PATH", SEARCH_PATH % DEFAULT_PATH)
    given.setdefault("HOSTNAME", container.hostname)
    left_out = {"", *_LOGIN_NAMES}.difference(container.environment)
    return {name: text for name, text in given.items() if name not in left_out and not _CONTROL.search(name + text)}


def set_env(environment: Mapping[str, str]) -> str:
    """The ``SetEnv`` line of sshd_config. Inside double quotes, only ``"`` and the backslash are special.

    >>> set_env({"A": 'say "hi"', "B": "#1"})
    'SetEnv "A=say \\\\"hi\\\\"" "B=#1"'
    """
    return " ".join(["SetEnv"] + [_quoted("{}={}".format(*item)) for item in sorted(environment.items())])


def startups(size: int, memory: int) -> int:
    """Return how many connections without a login a container accepts. They take at most half of its memory, or the kernel would end
    programs of the session for them.

    >>> startups(4, 64 << 20), startups(4, 1 << 30), startups(1000, 64 << 30)
    (16, 100, 2000)
    """
    return max(_FEWEST_STARTUPS, min(max(_USUAL_STARTUPS, 2 * size), memory // 2 // _STARTUP_MEMORY))


def sshd_config(environment: Mapping[str, str], user: str, startups: int, server: Server = OF_SESSION) -> str:
    """The configuration of sshd. It logs only errors, because its log is also the log of the user's programs."""
    return _lines(
        "Port %d" % server.port,
        *("ListenAddress " + address for address in server.addresses),
        "HostKey " + HOST_KEY,
        "HostCertificate " + HOST_CERTIFICATE,
        "AuthorizedKeysFile " + AUTHORIZED_KEYS,
        # Owners and modes of /etc are those of the image. The file is the session's own.
        "StrictModes no",
        "AllowUsers " + user,
        "PermitRootLogin no",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "UsePAM no",
        "UseDNS no",
        "PidFile " + server.pid_file,
        "LogLevel ERROR",
        "PrintMotd no",
        "PrintLastLog no",
        "X11Forwarding no",
        "PermitUserEnvironment no",
        "AcceptEnv LANG LC_*",
        # mpirun and parallel shells open many connections to a container at the same time. One address gets half of them, so that
        # silent connections from another one do not keep the owner out.
        "MaxStartups %d" % startups,
        # The server of an image may be older than OpenSSH 8.5, which is the first that knows this.
        *(["PerSourceMaxStartups %d" % (startups // 2)] if server.is_of_runtime else []),
        "LoginGraceTime 60",
        "MaxSessions 1000",
        # A client whose network is lost says no goodbye. Its login ends, and with it what `everywhere` runs.
        "ClientAliveInterval %d" % ALIVE_INTERVAL,
        "ClientAliveCountMax %d" % ALIVE_COUNT,
        # A program of its own would start in the environment of the user's programs.
        "Subsystem sftp internal-sftp",
        # Only the first SetEnv directive takes effect, so a single line sets all variables.
        set_env(environment),
    )


def client_config(plan: Plan, port: int = SSH_PORT) -> str:
    """The client configuration in a container: ``ssh sub1`` works. Applies only to names and addresses of this session.

    It sets what can keep a connection from being made: ssh takes the first value that it finds of an option, and an image's
    own ssh goes on with the image's file.
    """
    hosts = [name for name, _address in plan.names] + [address for _name, address in plan.names]
    return _lines(
        "Host " + " ".join([*hosts, *LOCAL_NAMES]),
        "    User " + plan.session.user.name,
        "    Port %d" % port,
        "    IdentityFile " + CLUSTER_KEY,
        "    GlobalKnownHostsFile " + KNOWN_HOSTS,
        *("    " + option for option in _CLIENT_OPTIONS),
    )


def container_config(text: str, hostname: str, server: Server = OF_SESSION) -> str:
    """The client configuration of one container, which is also ``localhost`` there, and proves that it is.

    An ssh that is older than an option, or built without it, ignores it; the image's file gets the same forbearance.
    """
    address = hostname if server.addresses else "127.0.0.1"
    own = ["Host " + " ".join(LOCAL_NAMES), "    HostName " + address, "    HostKeyAlias " + hostname]
    return _lines("IgnoreUnknown *", *own) + text


def included_config(text: str) -> str:
    """The image's client configuration, which includes ours first: ssh uses the first value of an option.

    An ssh that is too old to include a file goes on with the image's.
    """
    include = f"IgnoreUnknown *\nInclude {CLIENT_CONFIG}\n"
    return text if text.startswith(include) else include + text


def authority_line(plan: Plan, authority: str) -> str:
    """The known_hosts line that trusts every container of the session, including containers that are created later."""
    roles = [f"{role}*" for role in dict.fromkeys(container.role for container in plan.containers)]
    subnets = [_address_patterns(subnet) for subnet in (plan.network.subnet, plan.network.fabric) if subnet]
    # Other hosts are in the subnet of the hosts.
    addresses = [address for _name, address in plan.names] if plan.network.is_of_host else chain(*subnets)
    return f"@cert-authority {','.join(roles + list(dict.fromkeys(addresses)))} {authority}"


def known_hosts(text: str, line: str) -> str:
    """The image's known hosts with our line at the top, without duplicates of it."""
    # The other lines are those of the image.
    return "\n".join([line, *[other for other in text.split("\n") if other not in ("", line)], ""])


def pinned_lines(plan: Plan, host_keys: Mapping[str, str]) -> str:
    """Each host key by name and address, for tools without support for certificate authorities."""
    place = (
        "%s,%s %s"
        if plan.network.ssh_port == SSH_PORT
        else f"[%s]:{plan.network.ssh_port},[%s]:{plan.network.ssh_port} %s"
    )
    return _lines(
        *[
            place % (name, address, host_keys[container.hostname])
            for container in plan.containers
            for name, address in plan.network.names_of(container.hostname, container.address)
        ]
    )


def login_profile(path: str, size: int) -> str:
    """For /etc/profile.d: /etc/profile of many images sets another PATH, and a login would lose that of the container.

    In a session of several containers, a terminal also shows what a torchrun without options does.
    """
    hint = "torchrun: without options it trains in this container alone; session_torchrun makes it use all %d" % size
    lines = [
        'if [ -z "${PET_NNODES-}" ] && command -v torchrun >/dev/null 2>&1; then',
        f"    case $- in *i*) echo '{hint}' ;; esac",
        "fi",
    ]
    return _lines("PATH=" + shlex.quote(path), "export PATH", *(lines if size > 1 else []))


def home_profile(user: str) -> str:
    """A ``.profile`` for a home without one. The prompt is ``work@sub1:~$`` in bash and BusyBox, and similar elsewhere.

    Only these two shells expand backslashes in a prompt. They are recognized by the builtin ``help``, because BusyBox
    does not always set a variable with its name.
    """
    return _lines(
        'if [ -n "${BASH_VERSION-}" ] && [ -r "$HOME/.bashrc" ]; then . "$HOME/.bashrc"; fi',
        "case $- in",
        "*i*)",
        f"    PS1='{user}@'\"$HOSTNAME\"':$PWD$ '",
        "    if type help >/dev/null 2>&1; then PS1='\\u@\\h:\\w\\$ '; fi",
        "    ;;",
        "esac",
    )


def ssh_port(plan: Plan) -> Port:
    for port in plan.main.ports:
        if port.name == "ssh":
            return port
    raise ComputeError(f"Session {plan.session.name} publishes no SSH port of {plan.main.hostname}.")


def default_address(plan: Plan) -> str:
    """The default address at which the controller reaches the SSH port of ``main1``."""
    host = ssh_port(plan).host_ip
    return _LOOPBACK.get(host, host)


def controller_config(plan: Plan, address: str, folder: str, proxy: str = "") -> str:
    """The configuration for ``ssh -F FOLDER/ssh_config``: reaches ``main1``, by a ProxyCommand if given, and others through it."""
    main, others = plan.main.hostname, [container.hostname for container in plan.containers[1:]]
    port = ssh_port(plan).host_port
    # A percent sign begins the zone of a link-local address, and a token of ssh.
    place = "    HostName " + address.replace("%", "%%")
    lines = ["Host " + main, place, "    Port %d" % port, "    HostKeyAlias " + main]
    lines += ["    ProxyCommand " + proxy] if proxy else []
    lines += [_QUICK_EXCHANGE] if not proxy and address in _LOOPBACK.values() else []
    if others:
        lines += ["Host " + " ".join(others), "    " + _jump(main, folder), _QUICK_EXCHANGE]
    lines += [
        "Host " + " ".join([main] + others),
        "    User " + plan.session.user.name,
        *(["    Port %d" % plan.network.ssh_port] if plan.network.is_of_host else []),
        "    IdentityFile " + _path(folder, "id_container"),
        "    IdentitiesOnly yes",
        "    StrictHostKeyChecking yes",
        "    UserKnownHostsFile " + _path(folder, "known_hosts"),
        "    GlobalKnownHostsFile /dev/null",
        "    ServerAliveInterval 30",
    ]
    return _lines(*lines)


def _jump(main: str, folder: str) -> str:
    """The jump through ``main1``. ProxyJump passes ``-F`` on without quotes, so a path with a space needs ProxyCommand."""
    config = folder + "/ssh_config"
    if shlex.quote(config) == config:
        return "ProxyJump " + main
    return f"ProxyCommand ssh -F {shlex.quote(config.replace('%', '%%'))} -W [%h]:%p {main}"


def _path(folder: str, name: str) -> str:
    return _quoted(f"{folder.replace('%', '%%')}/{name}")


def _address_patterns(subnet: str) -> List[str]:
    """Patterns that cover a subnet. ssh supports only ``*``, so the subnet is rounded up to whole octets.

    >>> _address_patterns("10.201.0.32/27"), _address_patterns("10.200.0.0/15")
    (['10.201.0.*'], ['10.200.*', '10.201.*'])
    """
    network = ipaddress.IPv4Network(subnet, strict=False)
    count = min(3, (network.prefixlen + 7) // 8)
    whole = network if network.prefixlen <= count * 8 else network.supernet(new_prefix=count * 8)
    parts = [str(whole_subnet).split(".")[:count] for whole_subnet in whole.subnets(new_prefix=count * 8)]
    return [".".join(part) + ".*" for part in parts]


def _quoted(text: str) -> str:
    return '"{}"'.format(text.replace("\\", "\\\\").replace('"', '\\"'))


def _lines(*lines: str) -> str:
    for line in lines:
        if _CONTROL.search(line):
            raise ComputeError(f"A line of a configuration would have control characters: {line!r}.")
    return "\n".join(lines) + "\n"
