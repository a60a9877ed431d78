# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A bare host of a Debian release in a container, and its user, who begins with the packages that README.md names."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agents_lab import Lab
from controller import ROOT, Done, run
from readme import packages

# Packages of the lab's image for hosts that are reached by SSH.
OF_LAB = "iproute2 openssh-client openssh-server procps sudo"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
QUIET = "DEBIAN_FRONTEND=noninteractive SUDO_FORCE_REMOVE=yes apt-get -y -qq"


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

    def prepare(self) -> None:
        """The packages that README.md names and no others, and the certificates of this network."""
        self.type(f"{QUIET} purge {OF_LAB} && {QUIET} autoremove --purge").check()
        self.type(f"apt-get update -qq && {QUIET} install {' '.join(packages())}").check()
        run(["docker", "cp", CERTIFICATES, f"{self.name}:{CERTIFICATES}"]).check()


class BareLab(Lab):
    """Hosts without an engine."""

    variables: Mapping[str, Any] = {}


@contextmanager
def newcomer_on(suite: str, options: Sequence[str]) -> Iterator[Newcomer]:
    """A host that is started with these options of ``docker run``, and removed with everything on it."""
    BareLab("newcomer", [suite]).make_images()
    name = f"cluster-compute-test-newcomer-{uuid.uuid4().hex[:8]}"
    image = f"cluster-compute-test/agent-{suite}:1"
    command = ["docker", "run", "--detach", "--name", name, "--hostname", "newcomer", *options, image]
    run([*command, "sh", "-c", "mount -o remount,rw /sys; exec sleep infinity"]).check()
    try:
        yield Newcomer(name)
    finally:
        run(["docker", "rm", "--force", "--volumes", name])
        _clear_groups(name)


def _clear_groups(name: str) -> None:
    """Remove the control groups that the engine of the host has left."""
    for folder in Path("/sys/fs/cgroup").glob(f"*/cluster-compute-test/{name[21:]}"):
        run(["find", str(folder), "-depth", "-type", "d", "-exec", "rmdir", "{}", "+"])


def checkout() -> bytes:
    """An archive with the files that git knows, as a clone has them, with changes that are not committed."""
    listed = run(["git", "ls-files", "-z"], cwd=ROOT).check().text
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for name in filter(None, listed.split("\0")):
            if os.path.lexists(ROOT / name):
                archive.add(ROOT / name, name, recursive=False, filter=_of_root)
    return target.getvalue()


def _of_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    return entry
