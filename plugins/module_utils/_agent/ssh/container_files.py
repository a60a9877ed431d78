# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The bundle that the controller sends to an agent, and the files that a container gets from it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import Dict, List, Mapping, Sequence, Set, Tuple

from ..._shared.codec import Json, Sealed, digest, non_default_fields
from ..._shared.constants import CONFIG_FOLDER, RESTART_ALL, RUNTIME_PATH
from ..._shared.documents.plan import Container, Session, User
from ..._shared.documents.topology import apps_of, timeout_text
from ..._shared.errors import ComputeError
from ..._shared.names import installed_mark, run_folder
from ..engine.archives import Entry
from . import config_files, host_lists
from .app_files import INDEX, app_entries, index_entry, index_lines
from .rootfs import Tree

AUTHORITY = CONFIG_FOLDER + "/ca.pub"
# Holds a digest of the installed files.
DIGEST_FILE = CONFIG_FOLDER + "/equipped"
ID_CONTAINER = "id_container"
PROFILE = "/etc/profile.d/00-cluster-compute.sh"
SHELLS = ("/bin/bash", "/bin/sh")
# The seconds that PID 1 waits for secrets.
_PATIENCE = 60


@dataclass(frozen=True)
class SshFiles(Sealed):
    """Everything that only the controller can generate. Secret: it contains private keys.

    ``hosts`` has the host key of each container, and the certificate for it. ``user_key`` is the key with which the user logs
    in, for the home of a main1 with apps, whose pages let the user download it.
    """

    authority: str
    known_hosts: str
    pinned: str
    authorized_keys: str
    cluster_key: str
    cluster_public: str
    client_config: str
    hostfile: str
    hosts: Mapping[str, Tuple[str, str]]
    tokens: Mapping[str, str] = field(default_factory=dict)
    hostnames: str = ""
    user_key: str = ""

    def __repr__(self) -> str:
        return f"Bundle({','.join(self.hosts)})"

    def content_digest(self, container: Container, session: Session, environment: Mapping[str, str]) -> str:
        """A digest of a container's files, without the secrets. A container with the same digest needs no files."""
        public = [self.known_hosts, self.pinned, self.authorized_keys, self.client_config, self.hostfile]
        scripts = [session.bootstrap, session.command, session.command_timeout, session.grace, session.limits]
        scripts += [_patience(session), _restarts(session, container)]
        own = [container.id, container.hostname, container.address]
        apps = apps_of(session, container)
        if container.rank == 0 or apps:
            scripts.append(non_default_fields(apps))
        if session.roles:
            scripts += [self.hostnames, session.command_of(container)]
        return digest([public, scripts, own, asdict(session.user), dict(environment)])


@dataclass(frozen=True)
class ImageContents:
    """The content of an image before files are installed."""

    tree: Tree
    passwd: str = ""
    group: str = ""
    shadow: str = ""
    client_config: str = ""
    known_hosts: str = ""
    shell: str = RUNTIME_PATH + "/bin/sh"
    has_profile: bool = False
    config: Json = field(default_factory=dict)
    device_groups: Tuple[int, ...] = ()


def file_entries(
    bundle: SshFiles,
    container: Container,
    session: Session,
    environment: Mapping[str, str],
    contents: ImageContents,
    server: config_files.Server = config_files.OF_SESSION,
) -> List[Entry]:
    """Every file of one container; a folder that needs an owner or a mode comes before its files."""
    user = session.user
    return [
        *_server(bundle, container, session, environment, server),
        *_client(
            bundle, user, contents, config_files.container_config(bundle.client_config, container.hostname, server)
        ),
        *_accounts_of(user, contents),
        *_home(bundle, user, contents, has_key=container.rank == 0),
        *_scripts(session, container),
        *_apps(bundle, container, session, contents),
        *_host_lists(bundle, container, session),
        Entry(PROFILE, _bytes(config_files.login_profile(environment["PATH"], session.size)), optional=True),
        Entry(DIGEST_FILE, _bytes(bundle.content_digest(container, session, environment))),
        Entry(installed_mark(container.id), b""),
    ]


def login_entries(
    bundle: SshFiles,
    container: Container,
    session: Session,
    environment: Mapping[str, str],
    contents: ImageContents,
    server: config_files.Server,
    digest_text: str,
) -> List[Entry]:
    """The files of a container that something else has started: those that SSH needs, and the lists of hosts.

    Nothing is written into an existing home, whose owner could replace a directory of it meanwhile.
    """
    user = session.user
    is_new = contents.tree.mode(contents.tree.real(user.home)) is None
    return [
        *_server(bundle, container, session, environment, server),
        *_client(
            bundle, user, contents, config_files.container_config(bundle.client_config, container.hostname, server)
        ),
        *_accounts_of(user, contents),
        *([Entry(user.home, None, 0o755, user.uid, user.gid, optional=True)] if is_new else []),
        *_host_lists(bundle, container, session),
        Entry(DIGEST_FILE, _bytes(digest_text)),
    ]


def _apps(bundle: SshFiles, container: Container, session: Session, contents: ImageContents) -> List[Entry]:
    """The apps of the container. One without apps gets an empty list: its image may have been made from another with apps."""
    apps = apps_of(session, container)
    if container.rank and not apps:
        return [Entry(INDEX, b"")]
    return [*app_entries(apps, bundle.tokens, session.user, contents.config), index_entry(index_lines(apps))]


def host_texts(bundle: SshFiles, container: Container, session: Session) -> Dict[str, str]:
    has_gpus = any(role.compute and role.gpus for role in session.roles) or bool(container.resources.gpus)
    return host_lists.files(bundle.hostfile, has_gpus, bundle.hostnames)


def _host_lists(bundle: SshFiles, container: Container, session: Session) -> List[Entry]:
    texts = host_texts(bundle, container, session)
    return [Entry(path, _bytes(content), optional=True) for path, content in texts.items()]


def _scripts(session: Session, container: Container) -> List[Entry]:
    """Return what PID 1 reads (see init.sh): the bootstrap script, the command on main1, and the writable volumes.

    Empty files are written too: an image committed from a container of another session contains that session's scripts.
    """
    volumes = [mount.target + "\n" for mount in session.mounts if mount.type == "volume" and mount.mode == "rw"]
    is_main = container.rank == 0
    texts = {
        "bootstrap": session.bootstrap,
        "command": session.command_of(container),
        "timeout": timeout_text(session) if is_main else "",
        "restarts": _restarts(session, container),
        "grace": "%d\n" % session.grace,
        "limits": session.limits,
        "volumes": "".join(volumes),
        "secrets": _patience(session),
        "container": container.id + "\n",
    }
    scripts = [Entry(f"{CONFIG_FOLDER}/{name}", _bytes(text), 0o755) for name, text in texts.items()]
    return [*scripts, Entry(run_folder(container.id), mode=0o755)]


def _patience(session: Session) -> str:
    """The seconds that PID 1 waits for secrets; empty without a secret."""
    return "%d\n" % _PATIENCE if session.secrets else ""


def _restarts(session: Session, container: Container) -> str:
    """Return how often PID 1 starts a failed command again; empty for never."""
    may_restart = session.on_failure in ("restart", RESTART_ALL)
    return "%d\n" % session.restarts if session.command_of(container) and may_restart else ""


def _server(
    bundle: SshFiles,
    container: Container,
    session: Session,
    environment: Mapping[str, str],
    server: config_files.Server = config_files.OF_SESSION,
) -> List[Entry]:
    key, certificate = bundle.hosts[container.hostname]
    startups = config_files.startups(session.size, container.resources.memory)
    config = config_files.sshd_config(environment, session.user.name, startups, server)
    return [
        Entry(CONFIG_FOLDER, mode=0o755),
        Entry(CONFIG_FOLDER + "/sshd_config", _bytes(config), 0o600),
        Entry(config_files.HOST_KEY, _bytes(key), 0o600),
        Entry(config_files.HOST_CERTIFICATE, _bytes(certificate + "\n")),
        Entry(config_files.AUTHORIZED_KEYS, _bytes(bundle.authorized_keys)),
        Entry(AUTHORITY, _bytes(bundle.authority + "\n")),
    ]


def _client(bundle: SshFiles, user: User, contents: ImageContents, config: str) -> List[Entry]:
    """The files of the ssh client. The cluster key lies outside the home, because a data folder may be mounted there."""
    return [
        Entry(config_files.CLUSTER_KEY, _bytes(bundle.cluster_key), 0o600, user.uid, user.gid),
        Entry(config_files.CLIENT_CONFIG, _bytes(config)),
        Entry("/etc/ssh/ssh_config", _bytes(config_files.included_config(contents.client_config))),
        Entry(config_files.KNOWN_HOSTS, _bytes(config_files.known_hosts(contents.known_hosts, bundle.known_hosts))),
    ]


def _accounts_of(user: User, contents: ImageContents) -> List[Entry]:
    entries = [
        Entry("/etc/passwd", _bytes(merged_passwd(contents.passwd, user, contents.shell))),
        Entry("/etc/group", _bytes(merged_group(contents.group, user, contents.device_groups))),
    ]
    shadow = merged_shadow(contents.shadow, user)
    if shadow != contents.shadow:
        entries.append(Entry("/etc/shadow", _bytes(shadow), 0o600))
    return entries


def _home(bundle: SshFiles, user: User, contents: ImageContents, has_key: bool) -> List[Entry]:
    """The home, with copies of the keys for tools that read them only there; nothing if the home is a mount."""
    folder = user.home + "/.ssh"
    files = [
        (folder + "/id_ed25519", bundle.cluster_key, 0o600),
        (folder + "/id_ed25519.pub", bundle.cluster_public, 0o644),
        (folder + "/known_hosts", bundle.pinned, 0o600),
    ]
    if has_key and bundle.user_key:
        files.append((f"{user.home}/{ID_CONTAINER}", bundle.user_key, 0o600))
    if not contents.has_profile:
        files.append((user.home + "/.profile", config_files.home_profile(user.name), 0o644))
    entries = [Entry(user.home, None, 0o755), Entry(folder, None, 0o700)]
    entries += [Entry(path, _bytes(text), mode) for path, text, mode in files]
    return [Entry(item.path, item.content, item.mode, user.uid, user.gid, optional=True) for item in entries]


def _bytes(text: str) -> bytes:
    """Encode a text; bytes of an image's file that are not UTF-8 are kept."""
    return text.encode("utf-8", "surrogateescape")


# The accounts.
NOLOGIN = "/usr/sbin/nologin"
NOGROUP_GID = 65534


def merged_passwd(text: str, user: User, shell: str) -> str:
    """Insert the user after root: if several names share a uid, ``id`` shows the first."""
    lines = text.split("\n")
    root = _named(lines, "root") or ["root:x:0:0:root:/root:" + shell]
    own = "%s:x:%d:%d::%s:%s" % (user.name, user.uid, user.gid, user.home, shell)
    others = _except(lines, {"root", user.name})
    daemon = [] if _named(lines, "sshd") else [_daemon(lines, user)]
    return _joined(root[:1] + [own] + others + daemon)


def merged_group(text: str, user: User, device_groups: Sequence[int] = ()) -> str:
    """Insert the user's group after the group of root, and make the user a member of the groups that may use devices."""
    lines = text.split("\n")
    root = _named(lines, "root") or ["root:x:0:"]
    others = _except(lines, {"root", user.name})
    for gid in device_groups:
        same = next((place for place, line in enumerate(others) if line.split(":")[2:3] == [str(gid)]), None)
        if same is None:
            others.append("device%d:x:%d:%s" % (gid, gid, user.name))
            continue
        fields = (others[same].split(":") + [""])[:4]
        members = [name for name in fields[3].split(",") if name not in ("", user.name)]
        others[same] = ":".join([*fields[:3], ",".join([*members, user.name])])
    return _joined(root[:1] + ["%s:x:%d:" % (user.name, user.gid)] + others)


def merged_shadow(text: str, user: User) -> str:
    """Unlock the user: sshd accepts no key for a password that begins with ``!``. A user without a line is not locked."""
    lines = text.split("\n")
    if not _named(lines, user.name):
        return text
    return _joined(_except(lines, {user.name}) + [f"{user.name}:*:::::::"])


def _named(lines: List[str], name: str) -> List[str]:
    return [line for line in lines if line.startswith(name + ":")]


def _except(lines: List[str], names: Set[str]) -> List[str]:
    return [line for line in lines if line.strip() and line.split(":", 1)[0] not in names]


def _daemon(lines: List[str], user: User) -> str:
    """The account that sshd drops its privileges to, under an unused uid: one of the system's, if the image leaves one."""
    taken = {line.split(":")[2] for line in lines if line.count(":") >= 3} | {str(user.uid)}
    uid = next((uid for uid in chain(range(999, 0, -1), range(1001, NOGROUP_GID)) if str(uid) not in taken), 0)
    if not uid:
        raise ComputeError("The image uses all user IDs below %d: sshd needs an unused one." % NOGROUP_GID)
    return "sshd:x:%d:%d::/run/sshd:%s" % (uid, NOGROUP_GID, NOLOGIN)


def _joined(lines: List[str]) -> str:
    return "\n".join(lines) + "\n"
