# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of containers: each image is read once, and each container gets one archive.

A launch sends the archive to PID 1, which unpacks it: an engine starts a process of its own to unpack one. The module C(ssh) leaves
that to the engine. A container with a read-only root then gets an archive for each of its writable folders.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from ..._shared.codec import Json
from ..._shared.constants import RUNTIME_PATH
from ..._shared.documents.plan import Container, Plan, Session
from ..._shared.documents.step_documents import Difference, InstalledFiles
from ..._shared.errors import ConflictError, InputError, StateError
from ..._shared.names import installed_mark
from ..._shared.parallel import run_all
from ..engine.archives import Entry, pack_archive
from ..engine.client import Engine
from ..engine.device_nodes import device_groups
from ..engine.payloads import writable_folders
from ..engine.removal import state_of
from ..engine.reports import ACTIVE
from . import config_files
from .container_files import AUTHORITY, DIGEST_FILE, SHELLS, ImageContents, SshFiles, file_entries
from .rootfs import Tree, described, split

_UNKNOWN = "    the files for its image, after the container is created\n"
# Let the sshd that PID 1 has started read its files again. Connections that exist stay.
_READ_AGAIN = (
    RUNTIME_PATH + "/bin/sh",
    "-c",
    """for file in /proc/[0-9]*/stat; do
    { read -r pid name _ parent _ <"$file"; } 2>/dev/null || continue
    [ "$name:$parent" = "(sshd):1" ] && kill -HUP "$pid"
done
exit 0""",
)
READ_FILES = ("/etc/passwd", "/etc/group", "/etc/ssh/ssh_config", config_files.KNOWN_HOSTS)


@dataclass(frozen=True)
class Target:
    """A container of the plan that exists in the engine, as far as its files need it."""

    container: Container
    engine_id: str
    image: str
    environment: Mapping[str, str]
    devices: Tuple[Json, ...] = ()


@dataclass(frozen=True)
class Installation:
    """The files of containers by hostname, and in rank order all that get files: others do not exist yet, in check mode only."""

    files: Mapping[str, Sequence[Entry]]
    names: Sequence[str]

    def changes(self) -> InstalledFiles:
        """The files without their content, with equal lists of files shown once."""
        listings: Dict[str, List[str]] = {}
        for name in self.names:
            listing = described(self.files[name]) if name in self.files else _UNKNOWN
            listings.setdefault(listing, []).append(name)
        after = "".join(f"{', '.join(names)}:\n{listing}" for listing, names in listings.items())
        return InstalledFiles(bool(self.names), (Difference("", after, "containers"),), tuple(self.names))

    def archive(self, hostname: str, folders: Sequence[str]) -> bytes:
        """The archive that PID 1 of a container unpacks at its root. ``folders`` are those that it can write to, if not all."""
        return pack_archive([entry for _folder, part in split(self.files[hostname], folders) for entry in part])


@dataclass(frozen=True)
class FileInstaller:
    """Installs files into the containers of one agent."""

    engine: Engine
    plan: Plan
    agent: str
    bundle: SshFiles

    def install(self, names: Sequence[str], check: bool) -> InstalledFiles:
        """Install files into these containers; without names, into all that have never been started."""
        live = self.engine.members(self.plan.session.id)
        self._refuse_stranger(live)
        chosen = self._chosen(names, live)
        absent = [container.hostname for container in chosen if container.id not in live]
        if absent and not check:
            raise StateError(f"{absent[0]}: {self.agent} does not have this container; create it first.", absent[0])
        targets = self._targets([container for container in chosen if container.id in live], live)
        made = self.installation(targets, absent)
        if not check:
            self._put(targets, made)
        return made.changes()

    def refill(self, names: Sequence[str], check: bool) -> InstalledFiles:
        """Write the files again into those of these containers that run here: someone has removed or changed some of them."""
        live = self.engine.members(self.plan.session.id)
        self._refuse_stranger(live)
        here = [one for one in self.plan.on(self.agent) if one.hostname in names and one.id in live]
        running = [one for one in here if state_of(live[one.id]) == "running"]
        targets = run_all(lambda one: self._target(one, live), running)
        made = self.installation(targets, [])
        if not check:
            self._put(targets, made)
            run_all(lambda one: self.engine.execute(one.engine_id, _READ_AGAIN, one.container.hostname), targets)
        return made.changes()

    def lacking(self) -> Tuple[List[Target], List[str]]:
        """The containers without files: never started, or PID 1 did not get them. And the names of those that do not exist."""
        live = self.engine.members(self.plan.session.id)
        self._refuse_stranger(live)

        def look(container: Container) -> Target | None:
            return self._target(container, live) if self._lacks_files(container, live) else None

        here = self.plan.on(self.agent)
        targets = [target for target in run_all(look, here) if target is not None]
        return targets, [container.hostname for container in here if container.id not in live]

    def _refuse_stranger(self, live: Mapping[str, Json]) -> None:
        """Refuse a running session with another certificate authority: its containers would reject each other's keys."""
        running = next((entry for entry in live.values() if entry.get("State") == "running"), None)
        known = self.engine.read_file(running["Id"], AUTHORITY) if running else None
        if known is not None and known.decode("utf-8", "replace").split()[:2] != self.bundle.authority.split()[:2]:
            raise ConflictError(
                f"Session {self.plan.session.name} runs on {self.agent} with an identity that this controller does not have; repair "
                "it from the controller that launched it, or terminate it first.",
                self.agent,
            )

    def _chosen(self, names: Sequence[str], live: Mapping[str, Json]) -> List[Container]:
        here = self.plan.on(self.agent)
        for name in names:
            if name not in [container.hostname for container in here]:
                raise InputError("containers", name, f"must name containers that the plan has on {self.agent}")
        if names:
            return [container for container in here if container.hostname in names]
        return [
            container for container in here if container.id not in live or live[container.id].get("State") == "created"
        ]

    def _targets(self, containers: Sequence[Container], live: Mapping[str, Json]) -> List[Target]:
        """Those of the containers whose files are others."""

        def look(container: Container) -> Target | None:
            target = self._target(container, live)
            installed = self.engine.read_file(target.engine_id, DIGEST_FILE, container.hostname)
            wanted = self.bundle.content_digest(container, self.plan.session, target.environment)
            return None if installed == wanted.encode() else target

        targets = run_all(look, containers)
        return [target for target in targets if target is not None]

    def _target(self, container: Container, live: Mapping[str, Json]) -> Target:
        engine_id = live[container.id]["Id"]
        seen: Any = self.engine.inspect(engine_id, container.hostname) or {}
        environment = config_files.login_environment(seen.get("Config", {}).get("Env") or [], container)
        devices = tuple(seen.get("HostConfig", {}).get("Devices") or ())
        return Target(container, engine_id, seen.get("Image", ""), environment, devices)

    def _lacks_files(self, container: Container, live: Mapping[str, Json]) -> bool:
        listed = live.get(container.id)
        if listed is None or state_of(listed) in ACTIVE:
            return False
        if state_of(listed) == "created":
            return True
        return not self.engine.has_path(listed["Id"], installed_mark(container.id), container.hostname)

    def installation(self, targets: Sequence[Target], absent: Sequence[str]) -> Installation:
        hostnames = [target.container.hostname for target in targets]
        names = [one.hostname for one in self.plan.on(self.agent) if one.hostname in (*hostnames, *absent)]
        return Installation(dict(zip(hostnames, self._entries(targets))), names)

    def _entries(self, targets: Sequence[Target]) -> List[List[Entry]]:
        # All containers of a session have the same mounts, but a role has its own devices. Read an image through its last container,
        # which starts last.
        read = {target.image: target for target in targets}
        known = {image: read_contents(self.engine, target, self.plan.session) for image, target in read.items()}
        made = []
        for target in targets:
            contents = replace(known[target.image], device_groups=tuple(device_groups(target.devices)))
            server = config_files.server_of(self.plan.network, target.container)
            parts = (self.bundle, target.container, self.plan.session, target.environment, contents, server)
            wanted = file_entries(*parts)
            made.append(contents.tree.place(wanted))
        return made

    def _put(self, targets: Sequence[Target], made: Installation) -> None:
        folders = writable_folders(self.plan.session)

        def put(target: Target) -> None:
            for folder, part in split(made.files[target.container.hostname], folders):
                self.engine.put_archive(target.engine_id, folder, pack_archive(part, folder), target.container.hostname)

        run_all(put, targets)


def read_contents(engine: Engine, target: Target, session: Session) -> ImageContents:
    """Read the contents of an image through a container of it; once per image, because each file takes a request."""
    subject = target.container.hostname

    def has(path: str) -> bool:
        return engine.has_path(target.engine_id, path, subject)

    def read(path: str) -> str:
        return engine.read_text(target.engine_id, path, subject)

    passwd, group, client_config, known_hosts = run_all(read, READ_FILES)
    mounts = [mount.target for mount in session.mounts]
    tree = Tree(stat=lambda path: engine.path_stat(target.engine_id, path, subject), mounts=mounts)
    return ImageContents(
        tree=tree,
        passwd=passwd,
        group=group,
        # Without an account there is no password.
        shadow=read("/etc/shadow") if f"\n{session.user.name}:" in "\n" + passwd else "",
        client_config=client_config,
        known_hosts=known_hosts,
        shell=next((shell for shell in SHELLS if is_program(tree, shell)), RUNTIME_PATH + "/bin/sh"),
        has_profile=has(session.user.home + "/.profile"),
        config=dict((engine.image(target.image) or {}).get("Config") or {}),
    )


def is_program(tree: Tree, path: str) -> bool:
    """Return whether everyone can run what is at a path: an image may have a link to nothing there, or keep it for root."""
    return bool((tree.mode(tree.real(path)) or 0) & 0o001)
