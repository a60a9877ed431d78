# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Gives created containers their files: one look at each image, one archive for each container."""
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
from ansible_collections.cluster.compute.plugins.module_utils._core.parallel import (
    default_parallelism,
    first_error,
    map_bounded,
)
from ansible_collections.cluster.compute.plugins.module_utils._docker.client import Engine
from ansible_collections.cluster.compute.plugins.module_utils._ssh import config_files
from ansible_collections.cluster.compute.plugins.module_utils._ssh.container_files import (
    AUTHORITY,
    MARKER,
    SHELLS,
    Bundle,
    ImageContents,
    container_entries,
)
from ansible_collections.cluster.compute.plugins.module_utils._ssh.rootfs import Entry, Tree, described, pack

SURVEYED = ("/etc/passwd", "/etc/group", "/etc/ssh/ssh_config", config_files.KNOWN_HOSTS)


@dataclass(frozen=True)
class Target:
    """A container of the plan that exists in the engine, as far as its files need it."""

    container: Container
    engine_id: str
    image: str
    environment: Mapping[str, str]

    @property
    def ground_key(self) -> Tuple[str, ...]:
        """Containers of one image stand on the same ground: all of a session have the same mounts."""
        return (self.image,)


@dataclass(frozen=True)
class FileInstaller:
    """Equips the containers of one agent."""

    engine: Engine
    plan: Plan
    agent: str
    bundle: Bundle

    def install(self, names: Sequence[str], check: bool) -> Json:
        """Put files into the named containers, or into all that have never been started."""
        live = self._live()
        self._refuse_stranger(live)
        chosen = self._chosen(names, live)
        absent = [one.hostname for one in chosen if one.id not in live]
        if absent and not check:
            raise StateError("%s: %s has no such container: create it first." % (absent[0], self.agent), absent[0])
        targets = self._unequipped([one for one in chosen if one.id in live], live)
        todo = {target.container.hostname for target in targets} | set(absent)
        entries = self._entries(targets)
        if not check:
            self._put(targets, entries)
        installed = [one.hostname for one in chosen if one.hostname in todo]
        return {"changed": bool(todo), "installed": installed, "diff": _diff(targets, entries, absent)}

    def _live(self) -> Dict[str, Json]:
        listed = self.engine.containers(self.plan.session.id)
        return {(one.get("Labels") or {}).get(LABEL_CONTAINER, ""): one for one in listed}

    def _refuse_stranger(self, live: Mapping[str, Json]) -> None:
        """A running container tells whose session it is: other keys would split the session in two."""
        running = next((one for one in live.values() if one.get("State") == "running"), None)
        known = self.engine.read_file(running["Id"], AUTHORITY) if running else None
        if known is not None and known.decode().split()[:2] != self.bundle.authority.split()[:2]:
            raise StateError(
                "Session %s runs on %s with an identity that this controller does not have: repair it from the "
                "controller that launched it, or end it first." % (self.plan.session.name, self.agent),
                self.agent,
            )

    def _chosen(self, names: Sequence[str], live: Mapping[str, Json]) -> List[Container]:
        here = self.plan.on(self.agent)
        for name in names:
            if name not in [one.hostname for one in here]:
                raise InputError("containers", name, "must name containers that the plan has on %s" % self.agent)
        if names:
            return [one for one in here if one.hostname in names]
        return [one for one in here if one.id not in live or live[one.id].get("State") == "created"]

    def _unequipped(self, containers: Sequence[Container], live: Mapping[str, Json]) -> List[Target]:
        def look(container: Container) -> Target | None:
            engine_id = live[container.id]["Id"]
            seen: Any = self.engine.inspect(engine_id, container.hostname) or {}
            environment = config_files.login_environment(seen.get("Config", {}).get("Env") or [], container)
            marker = self.engine.read_file(engine_id, MARKER, container.hostname)
            if marker == self.bundle.marker(container, self.plan.session, environment).encode():
                return None
            return Target(container, engine_id, seen.get("Image", ""), environment)

        outcomes = map_bounded(look, containers, default_parallelism())
        _raise_first(first_error(outcomes))
        return [outcome.value for outcome in outcomes if outcome.value is not None]

    def _entries(self, targets: Sequence[Target]) -> List[List[Entry]]:
        grounds: Dict[Tuple[str, ...], ImageContents] = {}
        made = []
        for target in targets:
            ground = grounds.get(target.ground_key) or survey(self.engine, target, self.plan.session)
            grounds[target.ground_key] = ground
            wanted = container_entries(self.bundle, target.container, self.plan.session, target.environment, ground)
            made.append(ground.tree.place(wanted))
        return made

    def _put(self, targets: Sequence[Target], entries: Sequence[Sequence[Entry]]) -> None:
        now = time.time()

        def put(pair: Tuple[Target, Sequence[Entry]]) -> None:
            target, files = pair
            self.engine.put_archive(target.engine_id, "/", pack(files, now), target.container.hostname)

        _raise_first(first_error(map_bounded(put, list(zip(targets, entries)), default_parallelism())))


def survey(engine: Engine, target: Target, session: Session) -> ImageContents:
    """One look at an image, through a container made from it: the engine takes its time for each file."""
    subject = target.container.hostname

    def has(path: str) -> bool:
        return engine.has_path(target.engine_id, path, subject)

    def read(path: str) -> str:
        return (engine.read_file(target.engine_id, path, subject) or b"").decode("utf-8", "surrogateescape")

    outcomes = map_bounded(read, SURVEYED, default_parallelism())
    _raise_first(first_error(outcomes))
    passwd, group, client_config, known_hosts = [outcome.value or "" for outcome in outcomes]
    return ImageContents(
        tree=Tree(
            stat=lambda path: engine.path_stat(target.engine_id, path, subject),
            mounts=[mount.target for mount in session.mounts],
        ),
        passwd=passwd,
        group=group,
        # Nobody has a password there without an account.
        shadow=read("/etc/shadow") if "\n%s:" % session.user.name in "\n" + passwd else "",
        client_config=client_config,
        known_hosts=known_hosts,
        shell=next((shell for shell in SHELLS if has(shell)), RUNTIME_PATH + "/bin/sh"),
        has_profile=has(session.user.home + "/.profile"),
    )


def _diff(targets: Sequence[Target], entries: Sequence[Sequence[Entry]], absent: Sequence[str]) -> Json:
    """Which files go where, containers with equal ones together: never what is in them."""
    listings: Dict[str, List[str]] = {}
    for name in absent:
        listings.setdefault("    what its image asks for, once the container is created\n", []).append(name)
    for target, files in zip(targets, entries):
        listings.setdefault(described(files), []).append(target.container.hostname)
    after = "".join("%s:\n%s" % (", ".join(names), listing) for listing, names in listings.items())
    return {"before": "", "after": after, "before_header": "containers", "after_header": "containers"}


def _raise_first(error: Exception | None) -> None:
    if error is not None:
        raise error
