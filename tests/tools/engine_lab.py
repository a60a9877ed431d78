# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tools for tests of the modules for an engine: a BusyBox image, a substitute for the SSH runtime, and plans."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import traceback
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

from ansible.errors import AnsibleError
from played import task_of

from ansible_collections.cluster.compute.plugins.module_utils._shared import label
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import digest
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import (
    Container,
    Mount,
    Network,
    Plan,
    Port,
    Resources,
    Session,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError

ROOT = Path(__file__).resolve().parents[2]
IMAGE = "cluster-compute-test/busybox:1"
RUNTIME = "cluster-compute-test-runtime"
AGENT = "agent1"
MIB = 1 << 20
MODULE_LIMIT = 600  # seconds

# Behaves as the environment variable BEHAVIOUR demands: sleeps, or exits at once.
INIT = """#!/bin/sh
trap 'exit 0' TERM
echo "init says: ${BEHAVIOUR:-sleep}"
case "${BEHAVIOUR:-sleep}" in
    sleep) ;;
    *) echo "cannot go on" >&2; exit 3 ;;
esac
while :; do sleep 60 & wait $!; done
"""


@dataclass
class Shape:
    """The properties of a plan for a test."""

    size: int = 3
    name: str = field(default_factory=lambda: "test-" + uuid.uuid4().hex[:8])
    subnet: int = 77
    image: str = IMAGE
    launch: str = field(default_factory=lambda: str(uuid.uuid4()))
    agents: tuple[str, ...] = ()
    driver: str = "bridge"
    mtu: int | None = None
    ports: tuple[Port, ...] = ()
    mounts: tuple[Mount, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    resources: Resources = field(default_factory=lambda: Resources(500, 64 * MIB, 16 * MIB))

    def plan(self) -> Plan:
        session = Session(
            id=str(uuid.uuid4()),
            name=self.name,
            owner="tester",
            group="default",
            launch=self.launch,
            mode="single-node" if self.driver == "bridge" else "multi-node",
            size=self.size,
            image=self.image,
            request="0123456789abcdef",
            mounts=self.mounts,
        )
        base = f"10.213.{self.subnet}"
        labels = {
            label.SCHEMA: "1",
            label.SESSION: session.id,
            label.NAME: session.name,
            label.OWNER: session.owner,
            label.LAUNCH: session.launch,
        }
        name = f"tester-{self.name}-{session.id[:8]}"
        network = Network(name, self.driver, base + ".0/24", base + ".1", base + ".128/25", mtu=self.mtu, labels=labels)
        return Plan(session, network, tuple(self._container(session, rank, base, labels) for rank in range(self.size)))

    def _container(self, session: Session, rank: int, base: str, labels: dict[str, str]) -> Container:
        role, index = ("sub", rank) if rank else ("main", 1)
        identity = session.id if not rank else str(uuid.uuid5(uuid.UUID(session.id), f"sub{rank}"))
        own = {
            label.CONTAINER: identity,
            label.ROLE: role,
            label.INDEX: str(index),
            label.RANK: str(rank),
            label.RESOURCES: json.dumps(self.resources.to_json()),
            label.SPEC: digest([session.image, rank, self.environment]),
        }
        return Container(
            id=identity,
            name=f"tester.{self.name}.{role}{index}",
            hostname=f"{role}{index}",
            role=role,
            index=index,
            rank=rank,
            local_rank=rank,
            agent=self.agents[rank] if self.agents else AGENT,
            address=f"{base}.{rank + 2}",
            resources=self.resources,
            ports=() if rank else self.ports,
            environment={"BACKENDAI_CLUSTER_HOST": f"{role}{index}", **self.environment},
            labels={**labels, **own},
        )


def relaunched(plan: Plan) -> Plan:
    """The same plan with the identifier of another launch."""
    launch = str(uuid.uuid4())
    containers = tuple(replace(each, labels={**each.labels, label.LAUNCH: launch}) for each in plan.containers)
    return replace(plan, session=replace(plan.session, launch=launch), containers=containers)


def with_container(plan: Plan, rank: int, **changes: Any) -> Plan:
    """The same plan with changes to a single container."""
    containers = list(plan.containers)
    containers[rank] = replace(containers[rank], **changes)
    return replace(plan, containers=tuple(containers))


def busybox() -> bytes:
    """The program of a static BusyBox: from this machine, or from Debian's package, which is not installed."""
    found = shutil.which("busybox")
    if found:
        return Path(found).read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        subprocess.run(["apt-get", "download", "-qq", "busybox-static"], cwd=folder, check=True, capture_output=True)
        package = next(Path(folder).glob("busybox-static_*.deb"))
        subprocess.run(["dpkg-deb", "-x", str(package), folder], check=True)
        return next(path for path in Path(folder).glob("**/bin/busybox") if path.is_file()).read_bytes()


def archive(files: dict[str, tuple[bytes, int]], links: dict[str, str] | None = None) -> bytes:
    """A tar archive of files (content and mode) and links."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, (content, mode) in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), mode
            tar.addfile(member, io.BytesIO(content))
        for name, target in (links or {}).items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            tar.addfile(member)
    return buffer.getvalue()


def make_image(client: Any) -> None:
    """Create an image with BusyBox only, its own PATH, and an entrypoint that exits at once.

    The image stays: tests that run side by side share it.
    """
    if client.images(IMAGE):
        return
    applets = ("sh", "sleep", "cat", "ls", "df", "id", "hostname", "wget", "nc", "ping", "env", "kill", "grep", "dd")
    raw = archive({"bin/busybox": (busybox(), 0o755)}, {"bin/" + name: "busybox" for name in applets})
    changes = ["ENV PATH=/bin:/opt/own/bin", "ENV OWN=image", 'ENTRYPOINT ["/bin/false"]', "USER 65534"]
    repository, _colon, tag = IMAGE.rpartition(":")
    client.import_image_from_data(raw, repository=repository, tag=tag, changes=changes)


def make_runtime(client: Any) -> None:
    """Create a volume that takes the place of the SSH runtime: its init only waits."""
    client.create_volume(RUNTIME)
    host = client.create_host_config(binds={RUNTIME: {"bind": "/opt/cluster-compute", "mode": "rw"}})
    made = client.create_container(
        IMAGE, ["true"], volumes=["/opt/cluster-compute"], host_config=host, entrypoint=["/bin/sh"]
    )
    client.put_archive(made["Id"], "/opt/cluster-compute", archive({"bin/init": (INIT.encode(), 0o755)}))
    client.remove_container(made["Id"], v=True)


def run_module(module: str, *, check: bool = False, diff: bool = False, **options: Any) -> dict[str, Any]:
    """The result of the action of a public module with these options, whose steps run as ``run_step`` runs them."""
    action_class = import_module("ansible_collections.cluster.compute.plugins.action." + module).ActionModule
    task = task_of(module, options, check=check, diff=diff)
    action = action_class(task, None, None, None, SimpleNamespace(template=lambda value: value), None)
    action.is_here = lambda: False
    action.task_vars = {"inventory_hostname": options.get("agent") or "me"}
    action.counted_step = action.step
    action._is_pipelining_enabled = lambda _style: False
    action._execute_module = lambda name, module_args, task_vars: _run(
        name.rpartition(".")[2], module_args, check, diff
    )
    try:
        result: dict[str, Any] = action.act()
    except ComputeError as error:
        return error.failure.to_result()
    except AnsibleError as error:
        return {"failed": True, "msg": str(error)}
    return result


def run_step(
    call: str,
    *,
    agent: str = "me",
    docker_host: str = "",
    timeout: int = 60,
    check: bool = False,
    diff: bool = False,
    **params: Any,
) -> dict[str, Any]:
    """The result of a step of an agent in a process of its own."""
    args = {"call": call, "params": params, "agent": agent, "docker_host": docker_host, "timeout": timeout}
    return _run("agent_step", args, check, diff)


def _run(module: str, args: Any, check: bool, diff: bool) -> dict[str, Any]:
    """Run a module as Ansible does, as a process that reads its arguments and prints a document; return the document.

    The process is a fork: a new one would import the collection first, which takes longer than most steps.
    """
    asked = {**args, "_ansible_check_mode": check, "_ansible_diff": diff}
    main = import_module("ansible_collections.cluster.compute.plugins.modules." + module).main
    with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile("w+") as said:
        json.dump({"ANSIBLE_MODULE_ARGS": asked}, given)
        given.seek(0)
        pid = os.fork()
        if pid == 0:
            _run_module(main, given.fileno(), said.fileno())
        os.waitpid(pid, 0)
        said.seek(0)
        text = said.read()
    try:
        result: dict[str, Any] = json.loads(text.strip().splitlines()[-1])
    except (IndexError, ValueError):
        raise AssertionError(text) from None
    return result


def _run_module(main: Callable[[], None], given: int, said: int) -> NoReturn:
    """Become the process of a module, with these descriptors as its input and output."""
    try:
        for source, target in ((given, 0), (said, 1), (said, 2)):
            os.dup2(source, target)
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
        sys.argv = [""]  # Ansible would take an argument for those of the module.
        signal.alarm(MODULE_LIMIT)
        main()
    except SystemExit:
        pass
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
