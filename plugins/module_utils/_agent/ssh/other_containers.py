# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""SSH in containers that run and that something else, such as Docker Compose, has started: their files, their names, a server.

The engine mounts ``/etc/hosts`` into a container, so a program in the container rewrites that file in place. The server is a
process of the container beside its own programs. It and the names last until the container stops.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, List, Mapping, Sequence, Tuple

from ..._shared import label
from ..._shared.codec import Json, digest
from ..._shared.constants import CONFIG_FOLDER, DEFAULT_PATH, RUNTIME_PATH, SEARCH_PATH
from ..._shared.documents.plan import Container, Mount, Plan, Resources, Session
from ..._shared.documents.step_documents import Difference, InstalledFiles, RunningContainer
from ..._shared.errors import EngineError, StateError
from ..._shared.parallel import run_all
from ..engine.archives import Entry, pack_archive
from ..engine.client import Engine
from ..engine.runtime import find_runtime
from . import config_files
from .container_files import DIGEST_FILE, SHELLS, SshFiles, login_entries
from .container_set import with_hosts
from .installer import Target, read_contents
from .rootfs import described

_HOSTS = "/etc/hosts"
_CONFIG = CONFIG_FOLDER + "/sshd_config"
_PID_FILE = CONFIG_FOLDER + "/sshd.pid"
_LOG = CONFIG_FOLDER + "/sshd.log"
_SERVERS = ("/usr/sbin/sshd", "/usr/local/sbin/sshd", "/usr/bin/sshd", "/usr/local/bin/sshd", "/sbin/sshd")
# The process of our server, if the file of its ID still means it: a restarted container gives the number to another process.
_FIND = """
config=$1 file=$2 log=$3 program=$4
pid='' line=''
{ read -r pid <"$file"; } 2>/dev/null
[ -z "$pid" ] || { read -r line <"/proc/$pid/cmdline"; } 2>/dev/null
case $line in *"$config"*) ;; *) pid='' ;; esac
"""
_IS_SERVED = _FIND + '[ -n "$pid" ]'
# sshd writes its process ID when it listens, and removes the file when it has closed its port.
_SERVE = (
    _FIND
    + """
mkdir -p /run/sshd
chmod 755 /run/sshd
folder=${program%/*}
# What the image says to its own programs is not for the server of the runtime.
[ ! -f "$folder/own_environment.sh" ] || { . "$folder/own_environment.sh"; forget_image_settings; }
set -- -f "$config"
[ ! -x "$folder/sshd-session" ] || set -- "$@" -o "SshdSessionPath=$folder/sshd-session" -o PerSourcePenalties=no
[ ! -x "$folder/sshd-auth" ] || set -- "$@" -o "SshdAuthPath=$folder/sshd-auth"
"$program" -t "$@" || exit
[ -z "$pid" ] || kill "$pid"
: >"$log"
tries=0
while [ -n "$pid" ] && [ -e "$file" ] && [ $((tries += 1)) -lt 100 ]; do sleep 0.1; done
rm -f "$file"
"$program" "$@" -D -E "$log" </dev/null >/dev/null 2>&1 &
tries=0
while kill -0 "$!" 2>/dev/null && [ $((tries += 1)) -lt 100 ]; do
    [ ! -s "$file" ] || exit 0
    sleep 0.1
done
cat "$log"
exit 1
"""
)
_WRITE_HOSTS = f'printf %s "$1" >{_HOSTS}'


@dataclass(frozen=True)
class MissingParts:
    """The files, the names, or the server that a container lacks."""

    target: Target
    server: config_files.Server
    shell: str
    entries: Sequence[Entry]
    hosts: Tuple[str, str]
    is_served: bool

    @property
    def hostname(self) -> str:
        return self.target.container.hostname

    @property
    def lacks_names(self) -> bool:
        return self.hosts[0] != self.hosts[1]

    @property
    def lacks_server(self) -> bool:
        return bool(self.entries) or not self.is_served

    def diffs(self) -> List[Difference]:
        """The files without their content, and the change of ``/etc/hosts``."""
        found = []
        if self.lacks_server:
            after = described(self.entries) + f"    {self.server.program} on port {self.server.port}\n"
            found.append(Difference("", after, self.hostname))
        if self.lacks_names:
            found.append(Difference(*self.hosts, f"{self.hostname}:{_HOSTS}"))
        return found


def found_containers(engine: Engine, names: Sequence[str], network: str) -> List[RunningContainer]:
    """The running containers that have these names, with their addresses. Raises StateError for one that cannot be in a set."""
    seen = [(name, engine.inspect(name, name)) for name in names]
    running = [(name, found) for name, found in seen if found and (found.get("State") or {}).get("Running")]
    return [_described(engine, name, found, network) for name, found in running]


def _described(engine: Engine, name: str, found: Json, network: str) -> RunningContainer:
    if ((found.get("Config") or {}).get("Labels") or {}).get(label.SESSION):
        raise StateError(
            f"{name}: {engine.where} has it as a container of a session, which has SSH already; leave it out.", name
        )
    networks = dict((found.get("NetworkSettings") or {}).get("Networks") or {})
    chosen = [network] if network else sorted(networks)
    own = networks.get(chosen[0]) if len(chosen) == 1 else None
    if not own or not own.get("IPAddress"):
        has = ", ".join(sorted(networks)) or "none"
        rule = "set the option network to a network in which all containers have IPv4 addresses"
        raise StateError(f"{name}: {engine.where} has no single address for it (its networks: {has}); {rule}.", name)
    limits = found.get("HostConfig") or {}
    memory = int(limits.get("Memory") or engine.info().memory)
    resources = Resources(int(limits.get("NanoCpus") or 0) // 1_000_000, memory)
    place = (own["NetworkID"], own["IPAddress"], int(own["IPPrefixLen"]))
    return RunningContainer(name, found["Id"], *place, resources)


@dataclass(frozen=True)
class SetInstaller:
    """Brings SSH into the containers of a set on one agent."""

    engine: Engine
    plan: Plan
    agent: str
    bundle: SshFiles
    port: int

    def install(self, *, check: bool) -> InstalledFiles:
        lacks = run_all(self._lack, self.plan.on(self.agent))
        changed = [lack for lack in lacks if lack.lacks_server or lack.lacks_names]
        if not check:
            run_all(self._supply, changed)
        diffs = tuple(diff for lack in changed for diff in lack.diffs())
        return InstalledFiles(bool(changed), diffs, tuple(lack.hostname for lack in changed))

    def _lack(self, container: Container) -> MissingParts:
        seen: Any = self.engine.inspect(container.id, container.hostname) or {}
        server, shell = self._server(container)
        target = _target(container, seen, server)
        mounts = tuple(Mount("", str(mount["Destination"])) for mount in seen.get("Mounts") or ())
        session = replace(self.plan.session, mounts=mounts)
        text = (self.engine.read_file(container.id, _HOSTS, container.hostname) or b"").decode("utf-8", "replace")
        code, _output = self._run(container, shell, _IS_SERVED, server)
        entries = self._entries(target, session, server)
        return MissingParts(target, server, shell, entries, (text, with_hosts(text, self.plan)), is_served=code == 0)

    def _entries(self, target: Target, session: Session, server: config_files.Server) -> List[Entry]:
        """The files of a container; none if it has them."""
        container, environment = target.container, target.environment
        wanted = digest(
            [self.bundle.content_digest(container, self.plan.session, environment), server.program, server.port]
        )
        if self.engine.read_file(container.id, DIGEST_FILE, container.hostname) == wanted.encode():
            return []
        contents = read_contents(self.engine, target, session)
        return contents.tree.place(
            login_entries(self.bundle, container, session, environment, contents, server, wanted)
        )

    def _server(self, container: Container) -> Tuple[config_files.Server, str]:
        """The server that the container has, and its shell: the SSH runtime first, because it is the same everywhere."""
        name = container.hostname
        runtime = config_files.Server(port=self.port, pid_file=_PID_FILE)
        for program, shells in ((runtime.program, (RUNTIME_PATH + "/bin/sh",)), *((one, SHELLS) for one in _SERVERS)):
            if self.engine.has_path(container.id, program, name):
                shell = next((shell for shell in shells if self.engine.has_path(container.id, shell, name)), "")
                if shell:
                    return replace(runtime, program=program), shell
        volume = find_runtime(self.engine) or "its volume, which provision_agents.yml makes,"
        raise StateError(
            f"{name}: {container.name} on {self.agent} has no SSH server: install OpenSSH's server in its image, or mount the SSH "
            f"runtime read-only ({volume} at {RUNTIME_PATH}).", name)  # fmt: skip

    def _supply(self, lack: MissingParts) -> None:
        container = lack.target.container
        if lack.entries:
            self.engine.put_archive(container.id, "/", pack_archive(lack.entries), lack.hostname)
        if lack.lacks_names:
            command = [lack.shell, "-c", _WRITE_HOSTS, "sh", lack.hosts[1]]
            self._check(container, "write /etc/hosts", self.engine.execute(container.id, command, lack.hostname))
        if lack.lacks_server:
            self._check(container, "start the SSH server", self._run(container, lack.shell, _SERVE, lack.server))

    def _run(self, container: Container, shell: str, script: str, server: config_files.Server) -> Tuple[int, str]:
        command = [shell, "-c", script, "sh", _CONFIG, _PID_FILE, _LOG, server.program]
        return self.engine.execute(container.id, command, container.hostname)

    def _check(self, container: Container, what: str, answer: Tuple[int, str]) -> None:
        code, output = answer
        if not code:
            return
        reason = output.splitlines()[0].rstrip(". \r") if output else "exit code %d" % code
        advice = "set the option port to a free one" if "in use" in output else "correct that in the container"
        raise EngineError(
            f"{container.hostname}: {container.name} on {self.agent} could not {what}: {reason}; {advice}.", self.agent
        )


def _target(container: Container, seen: Mapping[str, Any], server: config_files.Server) -> Target:
    entries = ["PATH=" + DEFAULT_PATH, *((seen.get("Config") or {}).get("Env") or [])]
    environment = config_files.login_environment(entries, container)
    if server.is_of_runtime and RUNTIME_PATH not in environment["PATH"]:
        environment["PATH"] = SEARCH_PATH % environment["PATH"]
    devices = tuple((seen.get("HostConfig") or {}).get("Devices") or ())
    return Target(container, container.id, str(seen.get("Image") or ""), environment, devices)
