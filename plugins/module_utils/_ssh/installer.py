# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Install files into created containers: each image is read once, and each container gets one archive.

A container with a read-only root gets an archive for each of its writable folders.
"""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from ansible_collections.cluster.compute.plugins.module_utils._core.constants import LABEL_CONTAINER, RUNTIME_PATH
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import InputError, StateError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import (
    Container,
    Json,
    Plan,
    Session,
)
from ansible_collections.cluster.compute.plugins.module_utils._core.parallel import default_parallelism, run_all
from ansible_collections.cluster.compute.plugins.module_utils._docker.client import Engine
from ansible_collections.cluster.compute.plugins.module_utils._docker.device_nodes import device_groups
from ansible_collections.cluster.compute.plugins.module_utils._docker.read_only_root import writable_folders
from ansible_collections.cluster.compute.plugins.module_utils._ssh import config_files
from ansible_collections.cluster.compute.plugins.module_utils._ssh.container_files import (
    AUTHORITY,
    DIGEST_FILE,
    SHELLS,
    Bundle,
    ImageContents,
    container_entries,
)
from ansible_collections.cluster.compute.plugins.module_utils._ssh.rootfs import Entry, Tree, described, pack, split

READ_FILES = ("/etc/passwd", "/etc/group", "/etc/ssh/ssh_config", config_files.KNOWN_HOSTS)


@dataclass(frozen=True)
class Target:
    """A container of the plan that exists in the engine, as far as its files need it."""

    container: Container
    engine_id: str
    image: str
    environment: Mapping[str, str]
    devices: Tuple[Json, ...] = ()

    @property
    def contents_key(self) -> str:
        """Containers of one image share its contents: all containers of a session have the same mounts and kinds of devices."""
        return self.image


@dataclass(frozen=True)
class FileInstaller:
    """Installs files into the containers of one agent."""

    engine: Engine
    plan: Plan
    agent: str
    bundle: Bundle

    def install(self, names: Sequence[str], check: bool) -> Json:
        """Install files into these containers; without names, into all that have never been started."""
        live = self._live()
        self._refuse_stranger(live)
        chosen = self._chosen(names, live)
        absent = [container.hostname for container in chosen if container.id not in live]
        if absent and not check:
            raise StateError(
                "%s: %s does not have this container; create it first." % (absent[0], self.agent), absent[0]
            )
        targets = self._targets([container for container in chosen if container.id in live], live)
        todo = {target.container.hostname for target in targets} | set(absent)
        entries = self._entries(targets)
        if not check:
            self._put(targets, entries)
        installed = [container.hostname for container in chosen if container.hostname in todo]
        return {"changed": bool(todo), "installed": installed, "diff": _diff(targets, entries, absent)}

    def _live(self) -> Dict[str, Json]:
        listed = self.engine.containers(self.plan.session.id)
        return {(entry.get("Labels") or {}).get(LABEL_CONTAINER, ""): entry for entry in listed}

    def _refuse_stranger(self, live: Mapping[str, Json]) -> None:
        """Refuse a running session with another certificate authority: its containers would reject each other's keys."""
        running = next((entry for entry in live.values() if entry.get("State") == "running"), None)
        known = self.engine.read_file(running["Id"], AUTHORITY) if running else None
        if known is not None and known.decode().split()[:2] != self.bundle.authority.split()[:2]:
            raise StateError(
                "Session %s runs on %s with an identity that this controller does not have; repair it from the "
                "controller that launched it, or terminate it first." % (self.plan.session.name, self.agent),
                self.agent,
            )

    def _chosen(self, names: Sequence[str], live: Mapping[str, Json]) -> List[Container]:
        here = self.plan.on(self.agent)
        for name in names:
            if name not in [container.hostname for container in here]:
                raise InputError("containers", name, "must name containers that the plan has on %s" % self.agent)
        if names:
            return [container for container in here if container.hostname in names]
        return [
            container for container in here if container.id not in live or live[container.id].get("State") == "created"
        ]

    def _targets(self, containers: Sequence[Container], live: Mapping[str, Json]) -> List[Target]:
        def look(container: Container) -> Target | None:
            engine_id = live[container.id]["Id"]
            seen: Any = self.engine.inspect(engine_id, container.hostname) or {}
            environment = config_files.login_environment(seen.get("Config", {}).get("Env") or [], container)
            installed = self.engine.read_file(engine_id, DIGEST_FILE, container.hostname)
            if installed == self.bundle.content_digest(container, self.plan.session, environment).encode():
                return None
            devices = tuple(seen.get("HostConfig", {}).get("Devices") or ())
            return Target(container, engine_id, seen.get("Image", ""), environment, devices)

        targets = run_all(look, containers, default_parallelism())
        return [target for target in targets if target is not None]

    def _entries(self, targets: Sequence[Target]) -> List[List[Entry]]:
        known: Dict[str, ImageContents] = {}
        made = []
        for target in targets:
            contents = known.get(target.contents_key) or read_contents(self.engine, target, self.plan.session)
            known[target.contents_key] = contents
            wanted = container_entries(self.bundle, target.container, self.plan.session, target.environment, contents)
            made.append(contents.tree.place(wanted))
        return made

    def _put(self, targets: Sequence[Target], entries: Sequence[Sequence[Entry]]) -> None:
        now, folders = time.time(), writable_folders(self.plan.session)

        def put(pair: Tuple[Target, Sequence[Entry]]) -> None:
            target, files = pair
            for folder, part in split(files, folders):
                self.engine.put_archive(target.engine_id, folder, pack(part, now, folder), target.container.hostname)

        run_all(put, list(zip(targets, entries)), default_parallelism())


def read_contents(engine: Engine, target: Target, session: Session) -> ImageContents:
    """Read the contents of an image through a container of it; once per image, because each file takes a request."""
    subject = target.container.hostname

    def has(path: str) -> bool:
        return engine.has_path(target.engine_id, path, subject)

    def read(path: str) -> str:
        return (engine.read_file(target.engine_id, path, subject) or b"").decode("utf-8", "surrogateescape")

    passwd, group, client_config, known_hosts = run_all(read, READ_FILES, default_parallelism())
    return ImageContents(
        tree=Tree(
            stat=lambda path: engine.path_stat(target.engine_id, path, subject),
            mounts=[mount.target for mount in session.mounts],
        ),
        passwd=passwd,
        group=group,
        # Without an account there is no password.
        shadow=read("/etc/shadow") if "\n%s:" % session.user.name in "\n" + passwd else "",
        client_config=client_config,
        known_hosts=known_hosts,
        shell=next((shell for shell in SHELLS if has(shell)), RUNTIME_PATH + "/bin/sh"),
        has_profile=has(session.user.home + "/.profile"),
        config=dict((engine.image(target.image) or {}).get("Config") or {}),
        device_groups=tuple(device_groups(target.devices)),
    )


def _diff(targets: Sequence[Target], entries: Sequence[Sequence[Entry]], absent: Sequence[str]) -> Json:
    """The files of each container without their content, with equal lists of files shown once."""
    listings: Dict[str, List[str]] = {}
    for name in absent:
        listings.setdefault("    the files for its image, after the container is created\n", []).append(name)
    for target, files in zip(targets, entries):
        listings.setdefault(described(files), []).append(target.container.hostname)
    after = "".join("%s:\n%s" % (", ".join(names), listing) for listing, names in listings.items())
    return {"before": "", "after": after, "before_header": "containers", "after_header": "containers"}
