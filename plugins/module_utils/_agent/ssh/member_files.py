# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of running containers that name the members of their session, after its size has changed.

A program of the SSH runtime in the container writes them. ``/etc/hosts`` is written in place, because the engine mounts it, and the
lines for a known_hosts file in the home are added as the user, who could replace a directory of it. Then sshd reads its
configuration again: logins that exist stay, and new ones get the new variables. The program ends when sshd accepts logins again.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Dict, List

from ..._shared import label
from ..._shared.constants import CONFIG_FOLDER, RUNTIME_PATH
from ..._shared.documents.plan import Container, Plan
from ..._shared.documents.step_documents import Followed
from ..._shared.names import refers_to_itself
from ..._shared.parallel import run_all
from ..._shared.paths import covers
from ..engine.archives import Entry, pack_archive
from ..engine.client import Engine
from ..engine.payloads import OF_AGENT
from . import config_files
from .container_files import PROFILE, SshFiles, host_texts

_HOSTS = "/etc/hosts"
_NEW_HOSTS, _PINNED = CONFIG_FOLDER + "/hosts", CONFIG_FOLDER + "/known_hosts"
_SERVER = CONFIG_FOLDER + "/sshd_config"
_SHELL = (RUNTIME_PATH + "/bin/sh", "-c")
# Seconds for sshd to listen again: fewer than the engine's answer may take.
_PATIENCE = 30
# The arguments are the number of bytes, the numbers of the user, and the known_hosts file of the home, or nothing.
_WRITE = f"""
runtime={RUNTIME_PATH} config={CONFIG_FOLDER}
box=$runtime/bin/busybox
"$box" head -c "$1" | "$box" tar -x -f - -C / || exit
[ ! -f "{_NEW_HOSTS}" ] || "$box" cat "{_NEW_HOSTS}" >{_HOSTS} || exit
[ -z "$4" ] || "$runtime/bin/setpriv" --reuid "$2" --regid "$3" --clear-groups -- "$box" sh -c '
    [ -f "$1" ] || exit 0
    while IFS= read -r line; do
        "$0" grep -q -x -F -e "$line" "$1" || echo "$line" >>"$1"
    done' "$box" "$4" <"{_PINNED}"
"$box" rm -f "{_NEW_HOSTS}" "{_PINNED}"
state= wakes=
. "$runtime/libexec/secrets.sh"
(sshd_settings >/dev/null) || exit
"$box" rm -f "{config_files.PID_FILE}"
for file in /proc/[0-9]*/stat; do
    {{ read -r pid name _ parent _ <"$file"; }} 2>/dev/null || continue
    [ "$name:$parent" = "(sshd):1" ] || continue
    kill -HUP "$pid" && wakes=1
done
[ -n "$wakes" ] || exit 0
# Until sshd listens again, it refuses logins.
turns={_PATIENCE * 10}
until [ -s "{config_files.PID_FILE}" ]; do
    [ "$turns" -gt 0 ] || exit 83
    turns=$((turns - 1))
    "$box" sleep 0.1
done
"""


@dataclass(frozen=True)
class MemberFiles:
    """The files of the containers of one agent that run."""

    engine: Engine
    plan: Plan
    agent: str
    bundle: SshFiles

    def follow(self, *, check: bool) -> Followed:
        """Write the files of containers that name other members. The containers of this launch have been made with these members."""
        launch, live = self.plan.session.launch, self.engine.members(self.plan.session.id)
        former = {key: one for key, one in live.items() if one["Labels"].get(label.LAUNCH) != launch}
        up = {identity: one["Id"] for identity, one in former.items() if one["State"] == "running"}
        running = [container for container in self.plan.on(self.agent) if container.id in up]
        archives = run_all(lambda one: self._archive(one, up[one.id]), running)
        stale = [(container, archive) for container, archive in zip(running, archives) if archive]
        if not check:
            run_all(lambda pair: self._write(*pair, up[pair[0].id]), stale)
        return Followed(bool(stale), tuple(container.hostname for container, _archive in stale))

    def _archive(self, container: Container, identity: str) -> bytes:
        """The archive for a container; empty if its files name these members already."""
        size, found = self.plan.session.size, self.engine.read_text(identity, _HOSTS, container.hostname)
        environment = self._environment(container, identity)
        # The engine mounts it read-only on a read-only root. Its DNS server answers for new names.
        hosts = found if self.plan.session.read_only_root else hosts_text(found, self.plan)
        startups = config_files.startups(size, container.resources.memory)
        own = config_files.server_of(self.plan.network, container)
        server = config_files.sshd_config(environment, self.plan.session.user.name, startups, own)
        if hosts == found and server == self.engine.read_text(identity, _SERVER, container.hostname):
            return b""
        known = config_files.known_hosts(
            self.engine.read_text(identity, config_files.KNOWN_HOSTS, container.hostname), self.bundle.known_hosts
        )
        lists = host_texts(self.bundle, container, self.plan.session)
        lists[PROFILE] = config_files.login_profile(environment["PATH"], size)
        texts = {
            **{path: text for path, text in lists.items() if not self._is_mounted(path)},
            config_files.CLIENT_CONFIG: config_files.container_config(
                self.bundle.client_config, container.hostname, own
            ),
            config_files.KNOWN_HOSTS: known,
            _PINNED: self.bundle.pinned,
            **({_NEW_HOSTS: hosts} if hosts != found else {}),
        }
        entries = [Entry(path, text.encode("utf-8", "surrogateescape")) for path, text in texts.items()]
        return pack_archive([*entries, Entry(_SERVER, server.encode(), 0o600)])

    def _environment(self, container: Container, identity: str) -> Dict[str, str]:
        """The environment of a login, with the variables of the plan in place of those that the container was created with."""
        seen = self.engine.inspect(identity, container.hostname) or {}
        # The container was created with what extends a variable of its image.
        kept = {name for name, text in container.environment.items() if refers_to_itself(name, text)}.union(OF_AGENT)
        own = [f"{name}={text}" for name, text in container.environment.items() if name not in kept]
        entries = [*((seen.get("Config") or {}).get("Env") or ()), *own]
        return config_files.login_environment(entries, container)

    def _write(self, container: Container, archive: bytes, identity: str) -> None:
        user = self.plan.session.user
        pinned = user.home + "/.ssh/known_hosts"
        arguments = [str(len(archive)), str(user.uid), str(user.gid), "" if self._is_mounted(pinned) else pinned]
        self.engine.feed(identity, [*_SHELL, _WRITE, "sh", *arguments], archive, container.hostname)

    def _is_mounted(self, path: str) -> bool:
        return any(covers(mount.target, path) for mount in self.plan.session.mounts)


def hosts_text(text: str, plan: Plan) -> str:
    """The text of ``/etc/hosts`` with the members of the plan; lines of others, and further names of members, are kept."""
    names = {address: name for name, address in plan.names}
    subnets = [ipaddress.ip_network(text) for text in (plan.network.subnet, plan.network.fabric) if text]

    former = re.compile("(%s)[0-9]+" % "|".join({re.escape(container.role) for container in plan.containers}))

    def is_kept(line: str) -> bool:
        address, *rest = line.split() or [""]
        try:
            is_member = any(ipaddress.ip_address(address) in subnet for subnet in subnets)
        except ValueError:
            return True
        if plan.network.is_of_host:  # other hosts are in its subnet, too
            return not (len(rest) == 1 and former.fullmatch(rest[0]))
        return not is_member or (address in names and rest != [names[address]])

    kept: List[str] = [line for line in text.splitlines() if is_kept(line)]
    return "".join(f"{line}\n" for line in [*kept, *(f"{address}\t{name}" for address, name in names.items())])
