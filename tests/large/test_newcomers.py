# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of README.md on bare hosts of newer Debian releases, which have no engine: one machine is controller, head and agent.

Each host is a container of the lab's bare image without the packages that README.md does not name, and has an engine of its own.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from agents_lab import Lab
from controller import ROOT, Done, run
from readme import packages, steps

# What a host inside a container needs for an engine of its own, on a kernel where --privileged may be refused.
RIGHTS = (
    "--cap-add=ALL --cap-drop=SYS_RESOURCE --security-opt=seccomp=unconfined --security-opt=apparmor=unconfined "
    "--security-opt=systempaths=unconfined --cgroupns=host --volume=/sys/fs/cgroup:/sys/fs/cgroup:rw "
    "--volume=/var/lib/docker --tmpfs=/run --tmpfs=/tmp:exec"
).split()
DEVICES = "--device-cgroup-rule=a *:* rwm"
# Packages of the lab's image for hosts that are reached by SSH.
OF_LAB = "iproute2 openssh-client openssh-server procps sudo"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
HOME = "/root/cluster.compute"


class Newcomer:
    """A bare host, and the shell of its user."""

    def __init__(self, name: str) -> None:
        self.name = name

    def type(self, text: str, folder: str = "/root", timeout: float = 900) -> Done:
        command = ["docker", "exec", "-w", folder, self.name, "bash", "-e", "-o", "pipefail", "-c", text]
        return run(command, timeout=timeout)

    def write(self, folder: str, archive: bytes) -> None:
        command = ["docker", "cp", "-", f"{self.name}:{folder}"]
        subprocess.run(command, input=archive, check=True, capture_output=True, timeout=120)


def checkout() -> bytes:
    """The files that git knows, as a clone has them, with changes that are not committed."""
    listed = run(["git", "ls-files", "-z"], cwd=ROOT).check().text
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for name in filter(None, listed.split("\0")):
            if os.path.lexists(ROOT / name):
                archive.add(ROOT / name, name, recursive=False, filter=of_root)
    return target.getvalue()


def of_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    return entry


class BareLab(Lab):
    variables: Mapping[str, Any] = {}


@pytest.fixture(params=["trixie", "sid"])
def newcomer(engine_host: str, request: pytest.FixtureRequest) -> Iterator[Newcomer]:
    BareLab("newcomer", [request.param]).make_images()
    image = f"cluster-compute-test/agent-{request.param}:1"
    name = f"cluster-compute-test-newcomer-{uuid.uuid4().hex[:8]}"
    command = ["docker", "run", "--detach", "--name", name, "--hostname", "newcomer", *RIGHTS, DEVICES, image]
    run([*command, "sh", "-c", "mount -o remount,rw /sys; exec sleep infinity"]).check()
    try:
        yield prepared(Newcomer(name))
    finally:
        run(["docker", "rm", "--force", "--volumes", name])
        clear_groups(name)


def prepared(newcomer: Newcomer) -> Newcomer:
    """The host with the clone and the packages that README.md names, and with the certificates of this network."""
    options = json.dumps({"cgroup-parent": f"/cluster-compute-test/{newcomer.name[21:]}"})
    newcomer.type(f"mkdir -p /etc/docker {HOME}; echo '{options}' >/etc/docker/daemon.json").check()
    quiet = "DEBIAN_FRONTEND=noninteractive SUDO_FORCE_REMOVE=yes apt-get -y -qq"
    newcomer.type(f"{quiet} purge {OF_LAB} && {quiet} autoremove --purge").check()
    newcomer.type(f"apt-get update -qq && {quiet} install {' '.join(packages())}").check()
    newcomer.write(HOME, checkout())
    run(["docker", "cp", CERTIFICATES, f"{newcomer.name}:{CERTIFICATES}"]).check()
    return newcomer


def clear_groups(name: str) -> None:
    """Remove the control groups that the engine of the host has left."""
    for folder in Path("/sys/fs/cgroup").glob(f"*/cluster-compute-test/{name[21:]}"):
        run(["find", str(folder), "-depth", "-type", "d", "-exec", "rmdir", "{}", "+"])


def test_the_readme_on_a_bare_host(newcomer: Newcomer) -> None:
    launch, use, check, build = steps()
    assert "Session demo: RUNNING (cluster session, single-node)" in newcomer.type(launch, HOME).check().text
    assert "Session demo: RUNNING, nothing to do" in newcomer.type(launch, HOME).check().text
    assert "Session train: would be launched" in newcomer.type(check, HOME).check().text
    used = newcomer.type(use, HOME).check().text
    assert used.splitlines()[:2] == ["sub1", "I am rank 2 of 3, the master is main1"]
    assert "Session demo: TERMINATED" in used
    assert newcomer.type("docker ps --all --quiet; docker network ls --quiet --filter type=custom").check().text == ""
    assert "cluster-compute-1.0.0.tar.gz" in newcomer.type(build, HOME).check().text
